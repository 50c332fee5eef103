"""Reads the results of a call without knowing their format: JSON, or what names a schema of a registry."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from awoke.errors import AwokeError, ConfigError, DecodeError
from awoke.payloads.decoding.registered import RegisteredFormat, is_of_all, reason
from awoke.payloads.formats.format import Encoded, Encoder, Format, HeaderDecoder, Headers, Place
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.registry.wire_format import HEADERS
from awoke.rpc.forms import result_place

IN_PYTHON = "a result in another format, as MessagePack, is read in Python: caller.call(…, returns=…)"


class RawFormat(Format):
    """Leaves a result as its bytes, and the headers that say how to read them."""

    value_type = None
    reads_headers = True
    needs_registry = False

    def decoder(self, place: Place, schemas: Schemas) -> HeaderDecoder:
        """Returns the function that keeps bytes and headers together."""
        return lambda data, headers: Encoded(data, tuple((name, value or b"") for name, value in headers))

    def encoder(self, place: Place, schemas: Schemas) -> Encoder:
        """Raises TypeError: nothing is written."""
        raise TypeError("this format only reads")


class Results:
    """Makes JSON of the results of one method, as `RawFormat` leaves them."""

    def __init__(self, service: str, method: str, schemas: Schemas) -> None:
        self._name = f"{service}.{method}"
        self._decode: Any = RegisteredFormat(schemas).decoder(result_place(service, method), schemas)

    def json(self, result: Encoded | None) -> str:
        """Returns a result as JSON; bytes in it are base64. Blocks for a schema that is not there yet.

        Raises:
            DecodeError: It is neither JSON, nor can it be read by a schema of the registry. ConfigError: No registry is
            set. RegistryError: The registry does not answer.
        """
        if result is None:
            return "null"
        if names_schema(*result):
            return self._registered(*result)
        try:
            return json.dumps(msgspec.json.decode(result.data), ensure_ascii=False)
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
