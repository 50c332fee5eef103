"""Writes documents of JSON in the latest schemas of subjects, for the messages of a command."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from awoke.cli.encoding.avro_values import fitting
from awoke.cli.encoding.protobuf_values import Choose, protobuf_writer
from awoke.cli.registry_options import registry_at
from awoke.errors import AwokeError, ConfigError
from awoke.payloads.decoding.registered import reason
from awoke.payloads.formats.avro import parsed
from awoke.payloads.formats.json_validation import validator
from awoke.payloads.formats.protobuf_schemas import Indexes
from awoke.payloads.formats.registry_formats import check_kind
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part, RegisteredSchema
from awoke.payloads.registry.schemas import Schemas, loading
from awoke.preconditions.extras import needs

WriteDocument = Callable[[bytes], bytes]
"""Returns the bytes of a message for a document; raises ValueError or AwokeError, which says why it can't."""
Write = Callable[[Any, bytes], bytes]
"""Returns the bytes of a message for a value of JSON and its text: the id of the schema, and the value.

It raises ValueError where the value does not fit; the error names the field, and has no part of the value.
"""


class WrittenSubject(NamedTuple):
    """A subject in whose latest schema keys or values are written."""

    part: Part
    name: str
    message: str | None = None
    """The message of a Protobuf schema that has several."""


class SubjectWriters:
    """Writes the messages of a command. A context manager: leaving it closes the connections to the registry.

    Raises:
        ConfigError: No registry is set.
    """

    def __init__(self, registry_url: str | None) -> None:
        registry = registry_at(registry_url)
        self._schemas = Schemas(lambda: registry)

    def writer(self, subject: WrittenSubject) -> WriteDocument:
        """Returns the function that writes documents by the latest schema of a subject. Blocks for the registry.

        Raises:
            RegistryError: The registry does not answer, or has no such subject. ConfigError: The schema has several
            messages, and none is chosen; a library is not installed. AwokeError: The schema can't be used.
        """
        registered: RegisteredSchema
        write: Write
        registered, write = loading(self._writer)(subject)
        where = f"the {subject.part} can't be written by schema {registered.id} of {subject.name!r}"

        def encode(document: bytes) -> bytes:
            try:
                value = msgspec.json.decode(document)
            except (ValueError, RecursionError) as error:  # msgspec's own error, and that of wrong UTF-8.
                raise ValueError(f"the {subject.part} is no JSON: {error}") from None
            try:
                return write(value, document)
            except (ValueError, AwokeError) as error:
                text = f"{where}: {error}; see: awoke schema show {subject.name}"
            except Exception as error:  # Of a library. Its text may quote the value.
                text = f"{where}: {type(error).__name__}"
            raise ValueError(text)

        return encode

    def _writer(self, subject: WrittenSubject) -> tuple[RegisteredSchema, Write]:
        registered = self._schemas.for_writing(subject.name, None)
        try:
            return registered, writer(registered, self._schemas, lambda places: chosen(places, subject))
        except AwokeError:
            raise
        except Exception as error:  # Of a library, about the schema.
            raise AwokeError(f"schema {registered.id} of {subject.name!r} can't be used: {reason(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._schemas.close()


def chosen(places: Mapping[Indexes, str], subject: WrittenSubject) -> tuple[Indexes, str]:
    """Returns place and name of the message that is written: the one that the option names, or else the only one.

    Messages inside of others are written only if the option names them.

    Raises:
        ConfigError: There is no such message, or several.
    """
    if subject.message is None:
        found = [each for each in places.items() if len(each[0]) == 1]
    else:
        found = [each for each in places.items() if each[1] == subject.message]
    if len(found) == 1:
        return found[0]
    option, names = f"--{subject.part}-message", ", ".join(places.values()) or "none"
    what = "it takes the name of one" if subject.message is None else f"{subject.message!r} is none of them"
    text = f"the schema of {subject.name!r} has the messages {names}: {option}: {what}"
    raise ConfigError(text, option)


def writer(registered: RegisteredSchema, schemas: Schemas, choose: Choose) -> Write:
    """Returns the function that writes values by a schema. `choose` picks the message of a Protobuf schema.

    Raises:
        ValueError: The schema can't be used. SchemaNeeded: One that it refers to is not loaded yet. ConfigError: A
        library is not installed.
    """
    if registered.schema.kind == "AVRO":
        return _avro_writer(registered, schemas)
    if registered.schema.kind != "PROTOBUF":
        return _json_writer(registered, schemas)
    write = protobuf_writer(registered, schemas, choose)
    return lambda value, text: write(value)


def _avro_writer(registered: RegisteredSchema, schemas: Schemas) -> Write:
    schema, write = parsed(registered, schemas).root, needs("fastavro", "registry").schemaless_writer
    fit, before = fitting(schema), wire_format.prefix(registered.id)

    def encode(value: Any, text: bytes) -> bytes:
        made, stream = fit(value), io.BytesIO()
        stream.write(before)
        try:
            write(stream, schema, made)
        except Exception as error:  # Of any type. Its text may quote the value, so the error is not kept.
            where = str(error).rpartition(" on field ")[2] if " on field " in str(error) else ""
            at = f" at field {where!r}" if where.isidentifier() else ""
            found = ValueError(f"fastavro can't write it: {type(error).__name__}{at}")
        else:
            return stream.getvalue()
        raise found

    return encode


def _json_writer(registered: RegisteredSchema, schemas: Schemas) -> Write:
    check_kind(registered, "JSON")
    validate, before = validator(registered, schemas), wire_format.prefix(registered.id)

    def encode(value: Any, text: bytes) -> bytes:
        validate(value)
        return before + text  # As it is written: numbers may have more digits than Python's.

    return encode
