"""Measures what an injected argument, a middleware function and a context of its own cost for each message.

Each row is the time of one call as a worker makes it, without brokers: medians over several rounds, which take turns.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import statistics
import time
import types
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from typing import Annotated, Any, NamedTuple

import awoke
from awoke.declare.injection.parameters import parameters_of
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.message_loop import is_still
from awoke.runtime.process.dependencies import ProcessDependencies


class FakeMessage(NamedTuple):
    """A message without brokers."""

    value: bytes = b"value"
    key: bytes = b"key"
    headers: tuple[tuple[str, bytes], ...] = (("tenant", b"acme"),)
    topic: str = "orders"
    partition: int = 0
    offset: int = 0


def plain(message: Any) -> None:
    """Takes the message only."""


def with_producer(message: Any, producer: awoke.Producer) -> None:
    """Takes what is the same for all messages."""


def with_five(
    message: Any,
    producer: awoke.Producer,
    logger: logging.Logger,
    value: awoke.Value[bytes],
    key: awoke.Key[bytes],
    tenant: Annotated[str, awoke.Header("tenant")],
) -> None:
    """Takes five arguments."""


def with_header(message: Any, tenant: Annotated[str, awoke.Header("tenant")]) -> None:
    """Takes a header."""


def pool() -> str:
    """Lives as long as the process."""
    return "pool"


def with_pool(message: Any, pool: Annotated[str, awoke.Depends(pool, "process")]) -> None:
    """Takes what lives as long as the process."""


def returns() -> str:
    """Is called for each message."""
    return "value"


def with_function(message: Any, value: Annotated[str, awoke.Depends(returns)]) -> None:
    """Takes what a function returns for each message."""


def session() -> Iterator[str]:
    """Is opened and closed for each message."""
    yield "session"


def with_session(message: Any, value: Annotated[str, awoke.Depends(session)]) -> None:
    """Takes what is opened and closed for each message."""


def around(message: Any, call_next: Callable[[Any], Any]) -> Any:
    """Goes on with the message."""
    return call_next(message)


async def around_async(message: Any, call_next: Callable[[Any], Any]) -> Any:
    """Goes on with the message, around either kind of handler."""
    return await call_next(message)


def no_loop(flow: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
    """Stands for an event loop: nothing here needs one."""
    raise NotImplementedError


def call_of(function: Callable[..., Any], *incoming: Callable[..., Any]) -> Callable[[Any], Any]:
    """Returns the call of a handler, as a worker makes it."""
    app = awoke.App("bench", bootstrap_servers="127.0.0.1:1")
    app.on("orders", incoming=incoming)(function)

    dependencies = ProcessDependencies(app.dependencies, app.all_routes, app.events, no_loop)
    dependencies.open()
    context: Any = types.SimpleNamespace(app=app, dependencies=dependencies)
    calls = HandlerCalls(app.routes["orders"], context)
    if calls.is_late:
        calls.bind()
    return calls.function


opened = contextlib.contextmanager(session)


def returns_by_hand(message: Any) -> None:
    """As `with_function`, written by hand."""
    with_function(message, value=returns())


def session_by_hand(message: Any) -> None:
    """As `with_session`, written by hand."""
    with opened() as value:
        with_session(message, value=value)


def in_context(message: Any) -> None:
    """Calls the handler as the message loop does: in a copy of the job's context."""
    JOB.copy().run(plain, message)


def in_task(message: Any) -> None:
    """Calls the handler as the message loop does an `async def`: its task's context is compared afterwards."""
    plain(message)
    is_still(JOB)


JOB = copy_context()

ROWS: list[tuple[str, Callable[..., Any], list[Callable[..., Any]], int]] = [
    ("the message only", plain, [], 0),
    ("the producer", with_producer, [], 1),
    ("a header", with_header, [], 1),
    ("producer, logger, value, key, header", with_five, [], 5),
    ("a function of scope process", with_pool, [], 1),
    ("a function of scope job", with_function, [], 1),
    ("a function of scope job with a yield", with_session, [], 1),
    ("the same by hand: a function", returns_by_hand, [], 1),
    ("the same by hand: a context manager", session_by_hand, [], 1),
    ("middleware: def", plain, [around], 1),
    ("middleware: async def", plain, [around_async], 1),
    ("middleware: five of def", plain, [around] * 5, 5),
    ("a context of its own: def", in_context, [], 1),
    ("a context of its own: async def", in_task, [], 1),
]


def seconds(call: Callable[[Any], Any], calls: int) -> float:
    """Returns the time of one call."""
    message = FakeMessage()
    began_s = time.perf_counter()
    for _ in range(calls):
        call(message)
    return (time.perf_counter() - began_s) / calls


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=50_000)
    options = parser.parse_args()
    assert not parameters_of(plain, None, "bench").by_name
    calls = [call_of(function, *incoming) for _, function, incoming, _ in ROWS]
    taken = [[seconds(call, options.calls) for call in calls] for _ in range(options.rounds)]
    medians = [statistics.median(column) for column in zip(*taken, strict=True)]
    print("| Handler gets | us a call | us an argument, or a function |\n|---|---|---|")
    for (name, _, _, count), median in zip(ROWS, medians, strict=True):
        more = f"{(median - medians[0]) / count * 1e6:.2f}" if count else ""
        print(f"| {name} | {median * 1e6:.2f} | {more} |")


if __name__ == "__main__":
    main()
