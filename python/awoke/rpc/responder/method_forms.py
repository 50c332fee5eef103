"""The formats of one method: of its only argument, and of its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awoke.declare.annotations import contradicts
from awoke.errors import EncodeError
from awoke.payloads.formats.format import Format, type_of
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc import forms
from awoke.rpc.errors import Internal
from awoke.rpc.forms import Read, Write


class MethodForms:
    """Reads the argument of a method and writes its results, where they are not JSON. Any thread."""

    def __init__(self, method: str, argument: Any, result: Any) -> None:
        self._method, self._said = method, (argument, result)
        self.argument, self.result = argument, result
        """None: JSON."""
        self._service, self._parameter = "", ""
        self._schemas = Schemas.none()
        self._read: Read | None = None
        self._write: Write | None = None

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
        assert self._write is not None
        try:
            return self._write(result)
        except EncodeError as error:
            raise Internal(f"the result can't be written as {forms.name_of(self.result)}: {error}") from error


def _check_agrees(option: str, form: Any, hint: Any) -> None:
    """Checks that the type of a format may be that of an annotation.

    Raises:
        TypeError: They contradict one another.
    """
    said = type_of(form)
    if said is not None and contradicts(said, forms.plain(hint)):
        raise TypeError(f"{option}= is a format of {said!r}, and the annotation says {forms.plain(hint)!r}")
