"""Bodies of a caller's requests, and its readers of results: JSON, or the format that a call names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from awoke.payloads.formats import json, protobuf_classes
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas, load_here
from awoke.rpc import forms, protocol
from awoke.rpc.forms import Read, Write

KEPT_MAX = 256
"""Readers and writers that are kept, each for a method and a type or a format."""


class CallerForms:
    """Reads and writes the values of one caller's calls. Any thread."""

    def __init__(self, service: str, schemas: Schemas, *, is_own: bool = False) -> None:
        self._service, self._schemas, self._is_own = service, schemas, is_own
        self._writer = lru_cache(KEPT_MAX)(self._make_writer)
        self.reader = lru_cache(KEPT_MAX)(self._make_reader)
        """Returns the function that reads the results of a method as this type or format. Raises ConfigError."""

    def body(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], argument: Any) -> bytes:
        """Returns arguments as a body: in the format that `argument` names, or else JSON.

        A schema that is missing is loaded on this thread.

        Raises:
            TypeError: Not one argument, or by name and in order; EncodeError; RegistryError: the registry does not give
            the schema; SchemaNeeded: an event loop runs on this thread, which must not wait.
        """
        if argument is None:
            is_message = protobuf_classes.is_message
            if kwargs or len(args) != 1 or not is_message(type(args[0])):  # type: ignore[arg-type]
                return protocol.arguments_of(args, kwargs)
            argument = type(args[0])
        values = [*args, *kwargs.values()]
        if len(values) != 1:
            raise TypeError(f"{method}: a call with argument= takes exactly one argument, {len(values)} were given")
        write = self._writer(method, argument)
        try:
            return write(values[0])
        except SchemaNeeded as needed:
            body: bytes = load_here(write, needed, values[0])
            return body

    def close(self) -> None:
        """Closes the registry's client, if it is the caller's own."""
        if self._is_own:
            self._schemas.close()

    def _make_writer(self, method: str, argument: Any) -> Write:
        form = forms.checked(argument, "argument")
        return forms.writer(form, forms.argument_topic(self._service, method), self._schemas)

    def _make_reader(self, method: str, returns: Any) -> Read:
        form = returns if forms.is_form(returns) else forms.form_in(returns)
        if form is None:
            return json.result_decoder(returns)
        return forms.reader(form, forms.result_topic(self._service, method), self._schemas)
