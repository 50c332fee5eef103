"""Writes the argument of a method by the schema that a registry has for it, from words of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awoke.cli.calling.protobuf_arguments import chosen
from awoke.cli.encoding.documents import writer
from awoke.errors import AwokeError, ConfigError, EncodeError
from awoke.payloads.formats import json
from awoke.payloads.formats.format import Decode, Encode, Format, Payload
from awoke.payloads.registry.errors import RegistryRefused
from awoke.payloads.registry.schema import Part, topic_name
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.text.printable import printable

WRITABLE = ("Avro", "JsonSchema", "Protobuf")
"""The formats that the registry has schemas of, as methods name them."""


class ArgumentFormat(Format):
    """Writes the fields of a record by the latest schema of the argument's subject.

    `description` is that of the method, as `caller.methods()` returns it.

    Raises:
        AwokeError: The method takes its argument in a format that can't be written at the shell.
    """

    reads_headers = True
    needs_registry = True

    def __init__(self, description: Mapping[str, Any]) -> None:
        self._kind, self._method = printable(description["argument_format"]), description["name"]
        self._signature = str(description.get("signature", ""))
        if self._kind not in WRITABLE:
            text = f"{self._method} takes its argument as {self._kind}, which can't be written at the shell"
            raise AwokeError(f"{text}: call it in Python, with caller.call(…, argument=…)")

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Raises TypeError: nothing is read."""
        raise TypeError("this format only writes")

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes fields. It raises EncodeError where they do not fit the schema."""
        subject = topic_name(topic, part)

        def encode(fields: dict[str, Any]) -> Payload:
            registered = schemas.for_writing(subject, None)
            try:
                write = writer(registered, schemas, lambda places: chosen(places, self._signature))
                return write(fields, json.encode(fields)), ()
            except SchemaNeeded:
                raise
            except ValueError as error:
                text = f"the argument of {self._method} can't be written by schema {registered.id} of {subject!r}"
                raise EncodeError(f"{text}: {error}; see: awoke schema show {subject}") from None

        return encode

    def explained(self, error: AwokeError) -> AwokeError:
        """Returns an error of the registry's with what needs the registry."""
        before = f"{self._method} takes its argument as {self._kind}, by a schema of a registry"
        if isinstance(error, ConfigError):
            return ConfigError(f"{before}: {error}", error.property)
        after = "; a class without awoke.protobuf has none: call it in Python" if self._kind == "Protobuf" else ""
        return AwokeError(f"{before}: {error}{after if isinstance(error, RegistryRefused) else ''}")
