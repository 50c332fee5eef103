"""JSON whose schema is in a registry: JSON Schema of the type, or of the subject where values are dicts."""

from __future__ import annotations

import json as standard_json
from collections.abc import Iterable
from typing import Any

import msgspec

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats import json, pydantic_models
from awoke.payloads.formats.by_type import is_mixed
from awoke.payloads.formats.class_fields import names_of, private_in, takes_class
from awoke.payloads.formats.format import Description, Direction, Encode, Payload
from awoke.payloads.formats.json_validation import validator, validator_class
from awoke.payloads.formats.model_round_trips import check_round_trip
from awoke.payloads.formats.registry_formats import Read, RegistryFormat, check_kind
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part, RegisteredSchema, Schema, SubjectName, topic_name, topic_record_name
from awoke.payloads.registry.schemas import Schemas, Wanted

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class JsonSchemaFormat(RegistryFormat):
    """JSON with the schemas of a registry; made by `awoke.json_schema`."""

    def __init__(
        self,
        value_type: Any,
        own: dict[str, Any] | None,
        subject: SubjectName,
        wire: wire_format.Wire,
        direction: Direction = "both",
        *,
        accepts_other_subjects: bool = False,
    ) -> None:
        super().__init__(value_type, subject, wire, direction)
        self._own = own
        """The schema that the program has; None: the subject's latest."""
        self._schema = None if own is None else Schema(standard_json.dumps(own), "JSON")
        self._decode = None if is_untyped(value_type) else json.json_decoder(value_type)
        self._is_of_topic = self._decode is None and not accepts_other_subjects
        """True if a subject of its topic must have the schema of a message: it is all that checks the value."""

    def description(self) -> Description:
        """Returns the schema that the program has."""
        return Description("application/json", self._own)

    def reader(self, registered: RegisteredSchema, schemas: Schemas) -> Read:
        """Returns the function that reads JSON as the format's type; dicts are validated by the schema."""
        check_kind(registered, "JSON")
        if self._decode is not None:
            return self._decode
        validate, decode = validator(registered, schemas), msgspec.json.decode

        def read(payload: bytes) -> Any:
            value = decode(payload)
            validate(value)
            return value

        return read

    def check_subject(self, registered: RegisteredSchema, topic: str, part: Part, schemas: Schemas) -> None:
        """Refuses a schema that no subject of the topic has, where the schema alone says what a value must be.

        Otherwise the sender of a message chooses among all schemas of the registry, of which some allow anything.
        """
        if not self._is_of_topic:
            return
        check_kind(registered, "JSON")
        document = standard_json.loads(registered.schema.text)
        title = document.get("title") if isinstance(document, dict) else None
        name = title if isinstance(title, str) and title else None
        names = (topic_name, topic_record_name, self._subject) if name else (topic_name,)
        subjects = list(dict.fromkeys(each(topic, part, name) for each in names))
        if not any(schemas.has(subject, registered.schema) for subject in subjects):
            said = " or ".join(map(repr, subjects))
            remedy = "register it there, or say accepts_other_subjects=True"
            raise ValueError(f"schema {registered.id} is of another subject than {said}; {remedy}")

    def writer(self, value: Any, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes JSON; it validates where the registry's schema is not the program's own."""
        kind: Any = type(value)
        if not is_untyped(self.value_type) and not takes_class(self.value_type, kind):
            raise EncodeError(f"a value of type {kind.__qualname__} is none of {names_of(self.value_type)}")
        name = None if self._own is None else self._own.get("title")
        registered = schemas.for_writing(self._subject(topic, part, name), self._schema)
        check_kind(registered, "JSON")
        before, headers = self.framing(registered, part)
        is_own = self._own is not None and standard_json.loads(registered.schema.text) == self._own
        validate = None if is_own and self._decode is not None else validator(registered, schemas)
        write = json.writer_of(kind, self._direction == "write")
        if self._direction != "write" and is_mixed(self.value_type):
            write = json.proved_writer(self.value_type)

        def encode(value: Any) -> Payload:
            return before + write(value), headers

        if validate is None:
            return encode
        check = validate

        def encode_valid(value: Any) -> Payload:
            data = write(value)
            check(msgspec.json.decode(data))
            return before + data, headers

        return encode_valid

    def expected(self, topic: str, part: Part) -> Iterable[Wanted]:
        """Returns the schema of the type."""
        name = None if self._own is None else self._own.get("title")
        if name is not None or self._subject is topic_name:
            yield Wanted(self._subject(topic, part, name), self._schema)


def json_schema(
    value_type: Any = None,
    *,
    schema: str | dict[str, Any] | None = None,
    subject: SubjectName = topic_name,
    wire: wire_format.Wire = "prefix",
    direction: Direction = "both",
    accepts_other_subjects: bool = False,
) -> JsonSchemaFormat:
    """Returns the format of values that are written as JSON, with JSON Schemas of the registry.

    A type of msgspec's or pydantic's is checked by its own library, which is faster. None: values are dicts, lists and
    plain values, and each is validated by the schema of its message, which a subject of its topic must have
    (`orders-value`, `orders-Title`, or that of `subject`). With `accepts_other_subjects` any schema of the registry
    will do: for a route that reads dead letters, or a copy of a topic under another name. `schema` is the program's
    own; left out, it is made of the type. `subject`, `wire` and `direction` are as in `awoke.avro`.

    Raises:
        ConfigError: JSON can't be read as the type, or it can't read what it writes; the schema is no JSON Schema;
        jsonschema is not installed.
    """
    try:
        own = standard_json.loads(schema) if isinstance(schema, str) else schema
        if not is_untyped(value_type):
            check_round_trip(value_type, direction)
            if direction != "read" and (private := private_in(value_type)) is not None:
                raise TypeError(f"{private} begins with an underscore: msgspec neither writes nor reads it")
            own = schema_of(value_type, direction) if own is None else own
        if own is not None:
            validator_class(own).check_schema(own)
        return JsonSchemaFormat(
            value_type, own, subject, wire, direction, accepts_other_subjects=accepts_other_subjects
        )
    except ConfigError:
        raise
    except Exception as error:  # jsonschema's, msgspec's and pydantic's, of which not all may be installed.
        text = str(error).partition("\n")[0]
        raise ConfigError(
            f"awoke.json_schema({getattr(value_type, '__qualname__', value_type)}): {text}", "value"
        ) from None


def schema_of(value_type: Any, direction: Direction = "both") -> dict[str, Any]:
    """Returns the JSON Schema of what a type writes, or of what it reads if it only reads, with its name as title."""
    if pydantic_models.mentions_model(value_type):
        return {"$schema": DRAFT, **pydantic_models.json_schema_of(value_type, direction == "read")}
    title = getattr(value_type, "__name__", str(value_type))
    return {"$schema": DRAFT, "title": title, **msgspec.json.schema(value_type)}


def is_untyped(value_type: Any) -> bool:
    """Tells whether values are what JSON itself tells apart, and only the schema says more."""
    return value_type in (None, Any, dict, dict | None)
