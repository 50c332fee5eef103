"""The generators that functions of `Depends` have returned: begun, and closed behind their `yield`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from awoke.errors import HandlerDidNotRun
from awoke.text.printable import text_of

Failed = list[tuple[str, BaseException]]
"""The names of the functions that raised while they were closed, and the errors."""

Open = tuple[Any, str]
"""A generator, or an async one, that may be begun, and the name of its function."""

DONE: Any = object()
"""A generator that has ended yields no more than this."""


def first(value: Any, name: str) -> Any:
    """Returns what a generator has yielded first.

    Raises:
        HandlerDidNotRun: It is `DONE`: the generator yields nothing.
    """
    if value is DONE:
        raise HandlerDidNotRun(f"{name}: ended without a yield, so there is no value")
    return value


async def close(opened: list[Open], error: BaseException | None = None) -> Failed:
    """Finishes all generators, the last one first, with the error that ends the scope. Waits for async ones only."""
    failed: Failed = []
    while opened:
        generator, name = opened.pop()
        try:
            await _finish(generator, name, error)
        except BaseException as raised:
            failed.append((name, raised))
    return failed


async def _finish(generator: Any, name: str, error: BaseException | None) -> None:
    """Goes on behind the `yield`, where an error that ends the scope is raised."""
    is_async = isinstance(generator, AsyncGenerator)
    try:
        if error is None:
            value = await anext(generator, DONE) if is_async else next(generator, DONE)
        else:
            value = await generator.athrow(error) if is_async else generator.throw(error)
    except BaseException as raised:
        ends = StopAsyncIteration if is_async else StopIteration  # The other one is user code's own error.
        if raised is not error and not isinstance(raised, ends):
            raise
        return
    if value is not DONE:
        if is_async:
            await generator.aclose()
        else:
            generator.close()
        raise HandlerDidNotRun(f"{name}: yields more than once")


def add_notes(error: BaseException, failed: Failed) -> None:
    """Says in an error that ends a scope which functions failed to close because of it."""
    for name, raised in failed:
        error.add_note(f"{name} failed, too, while it was closed: {type(raised).__name__}: {text_of(raised)}")
