"""Runs a route without brokers, with its retries and dead letters; what happened is returned as data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from awoke.app.app import App
from awoke.declare.routing import Route
from awoke.errors import ConfigError
from awoke.testing.memory.encoding import parts_for
from awoke.testing.memory.process import MemoryProcess, route_of
from awoke.testing.memory.producing import Sent
from awoke.testing.memory.running import MemoryRun
from awoke.testing.route_results import Place, RouteRun, result_of
from awoke.waiting.drive import drive

Result = TypeVar("Result")

LIMIT_S = 3_600.0
"""The time for which a run goes on where messages are tried again. It takes no time: see `run_route`."""


def run_route(
    app: App, topic: str, messages: Iterable[Any], /, *, group: str | None = None, limit_s: float = LIMIT_S
) -> RouteRun:
    """Runs messages through the app's route of a topic, without brokers; returns what happened.

    A message is one of `awoke.testing.message`, or a value. Its handler runs as in a process, with arguments,
    middleware, retries, dead letters and hooks. All that it sends by the app's producer is kept. Delays take no time,
    and have no jitter; a run ends when they would exceed `limit_s`. Start-up functions of the app are not called. Not
    simulated: `tick`, the rate and the delay of `Flow`, batches that wait for more messages. Blocks as long as the
    handler does.

    Raises:
        ConfigError: the app has no such route, or several; an async handler, on a thread whose event loop runs: there
        await `arun_route`. EncodeError: a value can't be encoded for the topic. What a function of `Depends` raises
        that lives as long as the process; KeyboardInterrupt, or an outcome of pytest's, if a handler raises it.
    """
    route = route_of(app, topic, group)
    return on_own_loop(run_flow(app, route, messages, limit_s), "arun_route", is_async=route.is_async)


async def arun_route(
    app: App, topic: str, messages: Iterable[Any], /, *, group: str | None = None, limit_s: float = LIMIT_S
) -> RouteRun:
    """As `run_route`, on the running event loop."""
    return await run_flow(app, route_of(app, topic, group), messages, limit_s)


def on_own_loop(flow: Coroutine[Any, Any, Result], name: str, *, is_async: bool) -> Result:
    """Runs a flow to its end; on an event loop of its own, where it calls async functions.

    Raises:
        ConfigError: a loop runs on this thread.
    """
    if not is_async:
        return drive(flow)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(flow)
    flow.close()
    raise ConfigError(f"an event loop runs on this thread: await awoke.testing.{name}(…)", name)


Take = Callable[[Place | None, Sent], object]
"""Takes a record that was sent, and the place of the message that led to it; None behind the last message."""


async def run_flow(
    app: App, route: Route, messages: Iterable[Any], limit_s: float, take: Take = lambda place, sent: None
) -> RouteRun:
    """Runs messages through a route; returns what happened. A flow."""
    sent: list[Sent] = []

    def on_sent(each: Sent) -> None:
        sent.append(each)
        take(run.place, each)

    process = MemoryProcess(app, route, on_sent)
    run = MemoryRun(process, parts_for(app, route, messages), limit_s)
    await run.run()
    error = process.stopped_by
    if error is not None and not isinstance(error, Exception | SystemExit):
        raise error
    return result_of(process, run, sent)
