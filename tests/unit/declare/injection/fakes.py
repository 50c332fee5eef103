"""Messages, the values of an assignment, and the parameters of a handler, without an app that runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import awoke
from awoke.declare.injection.parameters import Dependency, Parameters, parameters_of
from awoke.declare.injection.sources import Assignment
from awoke.declare.injection.values import Scoped
from tests.unit.runtime.fakes import FakeApp

WHERE = "route 'orders': handle"


class FakeMessage:
    """A message of `orders[0]` at offset 7."""

    topic, partition, offset = "orders", 0, 7

    def __init__(self, value: Any = b"value", headers: Sequence[tuple[str, bytes | None]] = ()) -> None:
        self.value, self.key, self.headers = value, b"key", list(headers)


class FakeAssignments:
    """The values of the only assignment that there is; `made` are counted."""

    def __init__(self, **values: Any) -> None:
        self._values: dict[Any, Any] = {Assignment: Assignment("orders", 0)}
        self._is_made, self.times_made = False, 0

    def known(self) -> Mapping[Any, Any] | None:
        return self._values if self._is_made else None

    async def made(self) -> Mapping[Any, Any]:
        self._is_made, self.times_made = True, self.times_made + 1
        return self._values


def parameters(function: Callable[..., Any], **options: Any) -> Parameters:
    """Returns the parameters of a handler that is defined where this is called."""
    return parameters_of(function, sys._getframe(1), WHERE, **options)


def names(found: Parameters) -> list[str]:
    """Returns the names of the parameters that are passed by name."""
    return [each.name for each in found.by_name]


def dependency(found: Parameters, name: str) -> Dependency:
    """Returns the function of `Depends` behind a parameter."""
    (source,) = [each.source for each in found.by_name if each.name == name]
    assert isinstance(source, Dependency)
    return source


def app() -> Any:
    """Returns what gives handlers a producer, settings, events and callers."""
    return FakeApp(awoke.Events())


def process(of: Any = None, made: Mapping[Any, Any] | None = None) -> Scoped:
    """Returns the values of a process of an app."""
    return Scoped(app() if of is None else of, made or {})
