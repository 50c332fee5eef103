"""Arguments and results of calls at the command line: written by the schema of a registry, and read as JSON."""

from __future__ import annotations

import json as standard_json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from awoke.errors import AwokeError, ConfigError, DecodeError, EncodeError
from awoke.payloads.decoding.registered import RegisteredFormat, is_of_all, reason
from awoke.payloads.formats import json
from awoke.payloads.formats.format import Decode, Encode, Format, Headers, Payload
from awoke.payloads.formats.protobuf_schemas import Indexes
from awoke.payloads.registry.errors import RegistryRefused
from awoke.payloads.registry.schema import Part, topic_name
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.payloads.registry.wire_format import HEADERS
from awoke.rpc.forms import result_topic
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
        from awoke.cli.encoding.documents import writer  # Here, because calls with JSON do not need it.

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


PARAMETER = re.compile(r"\(\s*\w+\s*:\s*([\w.]+)")
"""The annotation of the first parameter in a signature."""


def chosen(places: Mapping[Indexes, str], signature: str) -> tuple[Indexes, str]:
    """Returns place and name of the message that a method takes: the only one, or the one that its signature names.

    Raises:
        ValueError: The schema has several, and the signature names none of them.
    """
    found = PARAMETER.search(signature)
    named = found[1].rpartition(".")[2] if found is not None else ""
    fitting = [each for each in places.items() if len(places) == 1 or each[1].rpartition(".")[2] == named]
    if len(fitting) != 1:
        text = f"it has the messages {', '.join(places.values())}, and the method's signature does not name one of them"
        raise ValueError(f"{text}: call the method in Python")
    return fitting[0]


IN_PYTHON = "a result in another format, as MessagePack, is read in Python: caller.call(…, returns=…)"


class RawFormat(Format):
    """Leaves a result as its bytes, and the headers that say how to read them."""

    reads_headers = True

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that keeps bytes and headers together."""
        return lambda data, headers: (data, tuple((name, value or b"") for name, value in headers))


class ResultTexts:
    """Makes JSON of the results of one method, as `RawFormat` leaves them."""

    def __init__(self, service: str, method: str, schemas: Schemas) -> None:
        self._name = f"{service}.{method}"
        self._decode: Any = RegisteredFormat(schemas).decoder(result_topic(service, method), "value", schemas)

    def json(self, result: Payload | None) -> str:
        """Returns a result as JSON; bytes in it are base64. Blocks for a schema that is not there yet.

        Raises:
            DecodeError: It is neither JSON, nor can it be read by a schema of the registry. ConfigError: No registry is
            set. RegistryError: The registry does not answer.
        """
        if result is None:
            return "null"
        data, headers = result
        if names_schema(data, headers):
            return self._registered(data, headers)
        try:
            return standard_json.dumps(msgspec.json.decode(data), ensure_ascii=False)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            found = DecodeError(f"the result of {self._name} can't be read as JSON: {error}; {IN_PYTHON}")
        raise found

    def _registered(self, data: bytes, headers: Headers) -> str:
        try:
            text: str = self._decode(data, headers).json
        except ConfigError as error:
            text = f"{self._name} was executed, and its result names a schema of a registry: {error}"
            raise ConfigError(text, error.property) from None
        except Exception as error:
            if is_of_all(error):
                raise AwokeError(f"{self._name} was executed, and its result can't be read: {error}") from None
            raise DecodeError(f"the result of {self._name} is not decoded: {reason(error)}") from None
        return text


def names_schema(data: bytes, headers: Headers) -> bool:
    """Returns whether a result looks as if it named a schema. No JSON begins with a zero byte."""
    return data[:1] == b"\0" or any(name == HEADERS["value"] for name, _ in headers)
