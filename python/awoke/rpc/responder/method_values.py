"""Reads the arguments of a method and writes its results: as JSON, or in the formats that it names."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.declare.annotations import contradicts
from awoke.errors import EncodeError
from awoke.payloads.formats import json, pydantic_models
from awoke.payloads.formats.format import Format, type_of
from awoke.payloads.formats.json_types import check_readable, check_writable
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc import forms
from awoke.rpc.errors import Internal
from awoke.rpc.forms import Read, Write

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


class MethodForms:
    """The formats of a method: of its only argument, and of its results. Any thread."""

    def __init__(self, method: str, argument: Any, result: Any) -> None:
        self._method, self._said = method, (argument, result)
        self.argument, self.result = argument, result
        """None: JSON."""
        self._service, self._parameter = "", ""
        self._schemas = Schemas.none()
        self._read: Read | None = None
        self._write: Write = json.encode

    def prepare(self, parameters: Mapping[str, Any], result: Any) -> None:
        """Finds the formats: those that were said, or those of the annotations.

        Raises:
            TypeError: The format is not that of the only parameter, or contradicts an annotation.
        """
        argument, returns = self._said
        annotated = forms.only_form(parameters) if argument is None else None
        self.argument, self.result = argument or annotated, returns or forms.form_in(result)
        if self.argument is not None:
            if len(parameters) != 1:
                raise TypeError(f"argument= is the format of the only parameter, and there are {len(parameters)}")
            (self._parameter, hint), *_ = parameters.items()
            _check_agrees("argument", self.argument, hint)
        if self.result is not None:
            _check_agrees("returns", self.result, result)

    def open(self, service: str, schemas: Schemas) -> None:
        """Makes the functions that read and write, with these schemas.

        Raises:
            ConfigError: A format can't be here.
        """
        self._service, self._schemas = service, schemas
        if self.argument is not None:
            self._read = forms.reader(self.argument, forms.argument_topic(service, self._method), schemas)
        if self.result is not None:
            self._write = forms.writer(self.result, forms.result_topic(service, self._method), schemas)

    def read(self, body: bytes) -> dict[str, Any]:
        """Returns the only argument by its name.

        Raises:
            msgspec.ValidationError: It can't be read. SchemaNeeded; RegistryError.
        """
        assert self._read is not None
        return {self._parameter: self._read(body)}

    def check_loaded(self) -> None:
        """Checks that a result can be written at once, as far as is known before there is one.

        Raises:
            SchemaNeeded: A schema is not loaded yet.
        """
        if isinstance(self.result, Format):
            self.result.check_loaded(forms.result_topic(self._service, self._method), "value", self._schemas)

    def write(self, result: Any) -> bytes:
        """Returns a result as a body.

        Raises:
            Internal: It does not fit. SchemaNeeded: A schema is not loaded yet.
        """
        try:
            return self._write(result)
        except EncodeError as error:
            raise Internal(f"the result can't be written as {forms.name_of(self.result) or 'JSON'}: {error}") from error


def _check_agrees(option: str, form: Any, hint: Any) -> None:
    """Checks that the type of a format may be that of an annotation.

    Raises:
        TypeError: They contradict one another.
    """
    said = type_of(form)
    if said is not None and contradicts(said, forms.plain(hint)):
        raise TypeError(f"{option}= is a format of {said!r}, and the annotation says {forms.plain(hint)!r}")


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
