"""JSON whose schema is in a registry: JSON Schema of the type, or of the subject where values are dicts."""

from __future__ import annotations

import itertools
import json as standard_json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from awoke.errors import ConfigError
from awoke.payloads.formats import json, pydantic_models
from awoke.payloads.formats.format import Description, Encode, Payload
from awoke.payloads.formats.json_bounds import bounded, check_patterns
from awoke.payloads.formats.registry_formats import Read, RegistryFormat, check_kind
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part, RegisteredSchema, Schema, SubjectName, topic_name
from awoke.payloads.registry.schemas import Schemas, Wanted
from awoke.preconditions.extras import needs

ERRORS_MAX = 100
"""The errors of a value of which the most telling one is shown."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"

Validate = Callable[[Any], None]


class JsonSchemaFormat(RegistryFormat):
    """JSON with the schemas of a registry; made by `awoke.json_schema`."""

    def __init__(
        self, value_type: Any, own: dict[str, Any] | None, subject: SubjectName, wire: wire_format.Wire
    ) -> None:
        super().__init__(value_type, subject, wire)
        self._own = own
        """The schema that the program has; None: the subject's latest."""
        self._schema = None if own is None else Schema(standard_json.dumps(own), "JSON")
        self._decode = None if is_untyped(value_type) else json.json_decoder(value_type)

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

    def writer(self, value: Any, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes JSON; it validates where the registry's schema is not the program's own."""
        name = None if self._own is None else self._own.get("title")
        registered = schemas.for_writing(self._subject(topic, part, name), self._schema)
        check_kind(registered, "JSON")
        before, headers = self.framing(registered, part)
        is_own = self._own is not None and standard_json.loads(registered.schema.text) == self._own
        validate = None if is_own and self._decode is not None else validator(registered, schemas)

        def encode(value: Any) -> Payload:
            data = json.encode(value)
            if validate is not None:
                validate(msgspec.json.decode(data))
            return before + data, headers

        return encode

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
) -> JsonSchemaFormat:
    """Returns the format of values that are written as JSON, with JSON Schemas of the registry.

    A type of msgspec's or pydantic's is checked by its own library, which is faster. None: values are dicts, lists and
    plain values, and each is validated by the schema of its message. `schema` is the program's own; left out, it is
    made of the type. `subject` and `wire` are as in `awoke.avro`.

    Raises:
        ConfigError: JSON can't be read as the type; the schema is no JSON Schema; jsonschema is not installed.
    """
    try:
        own = standard_json.loads(schema) if isinstance(schema, str) else schema
        if own is None and not is_untyped(value_type):
            own = schema_of(value_type)
        if own is not None:
            needs("jsonschema", "registry").validators.validator_for(own).check_schema(own)
        return JsonSchemaFormat(value_type, own, subject, wire)
    except ConfigError:
        raise
    except Exception as error:  # jsonschema's, msgspec's and pydantic's, of which not all may be installed.
        text = str(error).partition("\n")[0]
        raise ConfigError(
            f"awoke.json_schema({getattr(value_type, '__qualname__', value_type)}): {text}", "value"
        ) from None


def schema_of(value_type: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a type, titled with the name of its class."""
    if pydantic_models.mentions_model(value_type):
        return {"$schema": DRAFT, **pydantic_models.json_schema_of(value_type)}
    title = getattr(value_type, "__name__", str(value_type))
    return {"$schema": DRAFT, "title": title, **msgspec.json.schema(value_type)}


def is_untyped(value_type: Any) -> bool:
    """Tells whether values are what JSON itself tells apart, and only the schema says more."""
    return value_type in (None, Any, dict, dict | None)


def validator(registered: RegisteredSchema, schemas: Schemas) -> Validate:
    """Returns the function that checks values by a schema of the registry, and raises ValueError.

    Raises:
        SchemaNeeded: A schema that it refers to is not loaded yet.
    """
    jsonschema = needs("jsonschema", "registry")
    referencing = needs("referencing", "registry")
    specification = needs("referencing.jsonschema", "registry").DRAFT202012
    schema = standard_json.loads(registered.schema.text)
    resources = [
        (name, referencing.Resource.from_contents(standard_json.loads(each.text), specification))
        for name, each in schemas.references(registered.schema).items()
    ]
    check_patterns([schema, *(each.contents for _, each in resources)])
    made = bounded(jsonschema, jsonschema.validators.validator_for(schema))(
        schema, registry=referencing.Registry().with_resources(resources)
    )

    def validate(value: Any) -> None:
        error = jsonschema.exceptions.best_match(itertools.islice(made.iter_errors(value), ERRORS_MAX))
        if error is not None:
            # Not the library's own text, which has the value.
            text = f"it breaks the rule {error.validator!r} of schema {registered.id} - at `{error.json_path}`"
            raise ValueError(text)

    return validate
