"""The keys and values of a table as bytes and back: for the app that has the table, and for those that ask for rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from awoke.errors import AwokeError, ConfigError, DecodeError, EncodeError
from awoke.payloads.formats.format import Format, decoder_of, format_of, writer_of
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.payloads.topics import Topic


class RowFormats:
    """Writes and reads the keys and values of one table. Any thread.

    Its functions never wait: `SchemaNeeded` leaves them for a schema that is not loaded yet.
    """

    def __init__(self, owner: str, changelog: Topic, key: Any, value: Any, default: Format, schemas: Schemas) -> None:
        """`owner` names the table in errors: `table 'totals'`.

        Raises:
            ConfigError: a format keeps something in headers, and a row has none; a type can't be written.
        """
        self._owner = owner
        self.encode_key, self._decode_key = self._coders("key", key, changelog, default, schemas)
        """Returns a key as bytes. Raises EncodeError for one of another type."""
        self.encode, self._decode = self._coders("value", value, changelog, default, schemas)
        """Returns a value as bytes. Raises EncodeError for one of another type."""

    def read_key(self, data: bytes) -> Any:
        """Returns a key.

        Raises:
            DecodeError: it does not decode.
        """
        return data if self._decode_key is None else self._read(self._decode_key, data, "key")

    def read(self, data: bytes) -> Any:
        """Returns a value.

        Raises:
            DecodeError: it does not decode.
        """
        return data if self._decode is None else self._read(self._decode, data, "row")

    def _read(self, decode: Callable[[bytes], Any], data: bytes, what: str) -> Any:
        try:
            return decode(data)
        except SchemaNeeded:
            raise
        except Exception as error:
            raise DecodeError(f"a {what} of {self._owner} does not decode: {error}") from error

    def _coders(
        self, part: Part, said: Any, changelog: Topic, default: Format, schemas: Schemas
    ) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any] | None]:
        """Returns the functions that write and read its keys or values; no second one for bytes."""
        format = format_of(said, default)
        if format.reads_headers:
            text = f"{self._owner}: {part}={said!r} keeps something in the headers of a message; a row has none"
            raise ConfigError(text, part)
        if said in (None, bytes):
            return _only_bytes(self._owner, part), None
        write = writer_of(said if isinstance(said, Format) else format, str(changelog), part, default, schemas)

        def encode(value: Any) -> bytes:
            try:
                data, headers = write(value)
            except AwokeError:
                raise
            except Exception as error:
                # Not the library's own text, which may quote the value.
                text = f"{self._owner}: a {part} of type {type(value).__qualname__} is not one of its {part}s"
                raise EncodeError(f"{text}, {said!r}: {type(error).__name__}") from None
            if headers:
                raise EncodeError(f"{self._owner}: a row has no headers, which this format of its {part}s needs")
            return data

        return encode, decoder_of(format, str(changelog), part, schemas)


def _only_bytes(owner: str, part: Part) -> Callable[[Any], bytes]:
    def encode(value: Any) -> bytes:
        if type(value) is bytes:
            return value
        if isinstance(value, str):
            return value.encode()
        text = f"{owner}: its {part}s are bytes, not {type(value).__name__}; say {part}=… where it is made"
        raise EncodeError(text)

    return encode
