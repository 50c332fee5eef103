"""Reads the arguments of a method from a request, as the annotations of its parameters say."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.payloads.formats import json, pydantic_models
from awoke.payloads.formats.json_types import check_readable, check_writable

_parts = msgspec.json.Decoder(list[msgspec.Raw])


class Arguments:
    """The parameters of one method.

    Raises:
        TypeError, ValueError, NameError, msgspec.MsgspecError: JSON can't be read as the type of a parameter.
    """

    def __init__(self, function: Callable[..., Any], hints: Mapping[str, Any]) -> None:
        self._readers: dict[str, Callable[[bytes], Any]] = {}
        """Of parameters that pydantic reads: msgspec leaves their JSON as it is."""
        fields = [self._field(each, hints) for each in inspect.signature(function).parameters.values()]
        self._names = tuple(name for name, *_ in fields)
        named = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        self._decode = msgspec.json.Decoder(named, dec_hook=json.read_model).decode

    def read(self, body: bytes) -> dict[str, Any]:
        """Returns the named arguments of a request's body, an object of JSON, or an array of them in order.

        Raises:
            msgspec.MsgspecError, UnicodeDecodeError: One is missing, unknown, or of a wrong kind; names it.
        """
        values = msgspec.structs.asdict(self._decode(self._named(body) if body[:1] == b"[" else body or b"{}"))
        for name, read in self._readers.items():
            if isinstance(values[name], msgspec.Raw):
                values[name] = read(bytes(values[name]))
        return values

    def _field(self, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> tuple[Any, ...]:
        name, hint = parameter.name, hints.get(parameter.name, Any)
        if parameter.default is None:
            hint = hint | None
        if pydantic_models.mentions_model(hint):
            self._readers[name] = pydantic_models.decoder_for(hint, f"$.{name}")
            hint = msgspec.Raw
        else:
            check_readable(hint)
        return (name, hint) if parameter.default is parameter.empty else (name, hint, parameter.default)

    def _named(self, body: bytes) -> bytes:
        values = _parts.decode(body)
        if len(values) > len(self._names):
            raise msgspec.ValidationError(f"takes {len(self._names)} arguments, {len(values)} were given")
        pairs = zip(self._names, values, strict=False)
        return b"{" + b",".join(json.encode(name) + b":" + bytes(value) for name, value in pairs) + b"}"


def check_result(function: Callable[..., Any], result: Any, is_stream: bool) -> None:
    """Checks that the results of a method can be written as JSON, as far as its annotation says what they are.

    Raises:
        TypeError: They can't be.
    """
    if hasattr(function, "__wrapped__"):
        return  # The decorator may make something else of them.
    if is_stream:
        result, *_ = typing.get_args(result) or (Any,)
    check_writable(result)
