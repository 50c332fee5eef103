"""Reads the results of a call without knowing their format: JSON, or what names a schema of a registry."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from awoke.errors import AwokeError, ConfigError, DecodeError
from awoke.payloads.decoding.registered import RegisteredFormat, is_of_all, reason
from awoke.payloads.formats.format import Decode, Format, Headers, Payload
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.registry.wire_format import HEADERS
from awoke.rpc.forms import result_topic

IN_PYTHON = "a result in another format, as MessagePack, is read in Python: caller.call(…, returns=…)"


class RawFormat(Format):
    """Leaves a result as its bytes, and the headers that say how to read them."""

    reads_headers = True

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that keeps bytes and headers together."""
        return lambda data, headers: (data, tuple((name, value or b"") for name, value in headers))


class Results:
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
            return json.dumps(msgspec.json.decode(data), ensure_ascii=False)
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
