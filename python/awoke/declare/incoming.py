"""Middleware of incoming messages: functions around the decoding and the handler of each message, or of each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import CORO_CREATED, getcoroutinestate
from types import CoroutineType
from typing import Any

from awoke.declare.handlers import kind_of
from awoke.declare.signatures import signature_of
from awoke.errors import ConfigError, HandlerDidNotRun
from awoke.waiting.drive import run_now

Incoming = Callable[[Any, Callable[[Any], Any]], Any]
"""Takes a message, or a batch, and the function that goes on with it, whose result it returns."""


def check_incoming(function: Any, where: str) -> None:
    """Checks a function that is called around handlers.

    Raises:
        ConfigError: It is no function, has a `yield`, or does not take two arguments.
    """
    if not callable(function):
        raise ConfigError(f"{where}: takes a function, not {function!r}", "incoming")
    if "generator" in kind_of(function):
        raise ConfigError(f"{where}: {_name(function)} has a yield; call the second argument instead", "incoming")
    try:
        signature_of(function).bind("message", "call_next")
    except TypeError as error:
        text = f"{where}: {_name(function)} is called with the message and the function that goes on with it: {error}"
        raise ConfigError(text, "incoming") from None
    except ValueError:
        return  # A function of a C library without a known signature.


def check_suits(function: Incoming, where: str, handler: str, *, is_async: bool) -> None:
    """Checks that middleware can be called around a handler.

    Raises:
        ConfigError: It is `def`, and the handler is `async def`.
    """
    if is_async and kind_of(function) == "def":
        text = f"{where}: {_name(function)} is def, and can't go around {handler}, which is async def"
        raise ConfigError(f"{text}; make it async def: it then serves both kinds of handlers", "incoming")


def around(functions: Sequence[Incoming], call: Callable[[Any], Any], *, is_async: bool) -> Callable[[Any], Any]:
    """Returns a call with middleware around it, the first function outermost."""
    for function in reversed(functions):
        if is_async:
            call = _awaited(function, call)
        elif kind_of(function) == "async def":
            call = _driven(function, call)
        else:
            call = _around(function, call)
    return call


def _around(function: Incoming, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda received: function(received, call)


def _driven(function: Incoming, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Calls an `async def` around a `def`: it may await the handler, and nothing else."""

    async def call_next(received: Any) -> Any:
        return call(received)

    around_def = _awaited(function, call_next)
    return lambda received: run_now(around_def(received), _name(function))


def _awaited(function: Incoming, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Calls an `async def`, and checks that it has awaited what it called: else the handler has not run."""
    name = _name(function)

    async def awaited(received: Any) -> Any:
        called: list[Any] = []

        def call_next(received: Any) -> Any:
            called.append(call(received))
            return called[-1]

        try:
            result = await function(received, call_next)
        except BaseException:
            _end_unawaited(called)
            raise
        if _end_unawaited(called):
            raise HandlerDidNotRun(f"{name}: has called call_next and not awaited it, so the handler has not run")
        return result

    return awaited


def _end_unawaited(called: list[Any]) -> bool:
    """Closes the coroutines that were not awaited, so that Python does not warn of them; returns whether one was."""
    found = [each for each in called if isinstance(each, CoroutineType) and getcoroutinestate(each) == CORO_CREATED]
    for each in found:
        each.close()
    return bool(found)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", function))
