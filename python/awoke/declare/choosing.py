"""Several handlers of one topic: each message goes to the first that takes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from awoke._native import Message
from awoke.declare import handlers
from awoke.declare.annotations import types_of
from awoke.declare.injection.parameters import Parameters, parameters_of
from awoke.errors import ConfigError, NoHandler

Function = TypeVar("Function", bound=Callable[..., Any])

Takes = Callable[[Message[Any, Any]], bool]
"""Tells whether a handler takes a message."""


class Case(NamedTuple):
    """A handler, and the messages that it takes."""

    takes: Takes | None
    """None for all messages that no other handler takes."""
    function: Callable[..., Any]
    parameters: Parameters
    value_type: Any
    """The type of the values that it takes; None for any."""
    key_type: Any = None
    """The type of their keys; None for any."""

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__qualname__", self.function))


class Handlers:
    """Several handlers of one topic, which become one route: `app.on("orders", dead_letter=…)(handlers)`.

    A message goes to the first handler, in the order of their decorators, that takes it; if none does, to the default.
    Without a default it fails with `NoHandler`, and is exhausted at once. All handlers are `def`, or all are `async
    def`. The route needs no `value=` where the handlers say their types: it is then their union.
    """

    def __init__(self) -> None:
        self._cases: list[Case] = []
        self._default: Case | None = None
        self.is_used = False
        """True when a route has been made of them: no handler may follow."""

    def of_type(self, kind: type) -> Callable[[Function], Function]:
        """Calls the decorated function with messages whose value is of this class.

        Raises:
            ConfigError: It is no class. From the decorator: the function can't be called with a message; a route was
                made of the handlers before.
        """
        if not isinstance(kind, type):
            raise ConfigError(f"of_type takes a class, not {kind!r}", "of_type")
        return self._decorator(lambda message: isinstance(message.value, kind), kind)

    def with_header(self, name: str, value: str | bytes | None = None) -> Callable[[Function], Function]:
        """Calls the decorated function with messages that have a header of this name, with this value (None: any).

        Of several headers of the name, the last one counts.

        Raises:
            ConfigError: `value` is neither text nor bytes. From the decorator, as `of_type`.
        """
        if value is not None and not isinstance(value, str | bytes):
            raise ConfigError(f"with_header: the value of a header is bytes or text, not {value!r}", "with_header")
        wanted = value.encode() if isinstance(value, str) else value

        def takes(message: Message[Any, Any]) -> bool:
            found = [each for header, each in message.headers if header == name]
            return bool(found) and (wanted is None or found[-1] == wanted)

        return self._decorator(takes)

    def when(self, takes: Takes) -> Callable[[Function], Function]:
        """Calls the decorated function with messages for which `takes` is true.

        An error of `takes` is the message's failure.

        Raises:
            ConfigError: It is no function, or is `async def`. From the decorator, as `of_type`.
        """
        handlers.check_plain(takes, "when")
        return self._decorator(takes)

    def default(self, function: Function) -> Function:
        """Calls the decorated function with messages that no other handler takes.

        Raises:
            ConfigError: There is a default already; else as `of_type`.
        """
        if self._default is not None:
            raise ConfigError(f"there is a default already: {self._default.name}", "default")
        self._default = self._case(None, function, None, sys._getframe(1))
        return function

    @property
    def cases(self) -> list[Case]:
        """The handlers in the order in which they are asked, the default last."""
        return self._cases + ([] if self._default is None else [self._default])

    @property
    def value_type(self) -> Any:
        """The type of all values that they take: a union of those that they say; None if none says one."""
        return union(each.value_type for each in self.cases)

    @property
    def key_type(self) -> Any:
        """The type of all keys that they take, in the same way."""
        return union(each.key_type for each in self.cases)

    @property
    def is_async(self) -> bool:
        """True if they are `async def`."""
        return any(handlers.kind_of(each.function).startswith("async") for each in self.cases)

    @property
    def name(self) -> str:
        """Their names, for logs."""
        return ", ".join(each.name for each in self.cases) or "awoke.Handlers()"

    def __call__(self, message: Message[Any, Any]) -> Any:
        """Calls the handler that takes a message, with the message only: for tests."""
        return choice([(each.takes, each.function) for each in self.cases])(message)

    def check(self, where: str) -> None:
        """Checks that a route can be made of them.

        Raises:
            ConfigError: There is none, or some are `def` and others `async def`.
        """
        if not self.cases:
            raise ConfigError(f"{where}: there is no handler yet; decorate them before the route is made", "handler")
        kinds = {handlers.kind_of(each.function).startswith("async") for each in self.cases}
        if len(kinds) > 1:
            raise ConfigError(f"{where}: all handlers must be def, or all async def: {self.name}", "handler")
        self.is_used = True

    def _decorator(self, takes: Takes, kind: Any = None) -> Callable[[Function], Function]:
        def decorate(function: Function) -> Function:
            self._cases.append(self._case(takes, function, kind, sys._getframe(1)))
            return function

        return decorate

    def _case(self, takes: Takes | None, function: Any, kind: Any, around: FrameType) -> Case:
        where = f"handlers: {getattr(function, '__qualname__', function)}"
        if self.is_used:
            raise ConfigError(f"{where}: comes too late: a route was made of the handlers before", "handler")
        handlers.check_function(function, where, may_yield=True)
        parameters = parameters_of(function, around, where)
        value_type, key_type = types_of(function, around)
        value_type = kind or value_type or parameters.value_type
        return Case(takes, function, parameters, value_type, key_type or parameters.key_type)


def union(kinds: Iterable[Any]) -> Any:
    """Returns the union of types, without those that are None; None if there is none."""
    found = dict.fromkeys(each for each in kinds if each is not None)
    return reduce(or_, found) if found else None


def choice(cases: list[tuple[Takes | None, Callable[[Any], Any]]]) -> Callable[[Any], Any]:
    """Returns the call of the first handler that takes a message."""

    def call(message: Message[Any, Any]) -> Any:
        for takes, function in cases:
            if takes is None or takes(message):
                return function(message)
        place = (message.topic, message.partition, message.offset)
        raise NoHandler(
            f"{place[0]}[{place[1]}]@{place[2]}: no handler takes this message, and there is no default", *place
        )

    return call
