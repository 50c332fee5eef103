"""Runs an app beside other code in an event loop: `async with app.serving():`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from awoke.runtime.process.context import RunnableApp
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.process.signals import embedded_brokers
from awoke.settings import KafkaValue

Result = TypeVar("Result")


@contextlib.asynccontextmanager
async def serving(
    app: RunnableApp,
    *,
    bootstrap_servers: str | None,
    workers: int | None,
    embedded: bool,
    kafka: Mapping[str, KafkaValue] | None,
) -> AsyncIterator[AppRunner]:
    """Runs an app until the block ends; see `App.serving`."""
    with contextlib.ExitStack() as stack:
        if embedded:
            bootstrap_servers = stack.enter_context(embedded_brokers(app))
        app.use(bootstrap_servers=bootstrap_servers, workers=workers, kafka=kafka)
        runner = AppRunner(app, on_fatal_error=lambda error: runner.stop_soon())
        try:
            await on_thread(runner.start, "awoke-starting")
            yield runner
        finally:
            await on_thread(runner.stop, "awoke-stopping")
        if runner.fatal_error is not None:
            raise runner.fatal_error


async def on_thread(function: Callable[[], Result], name: str) -> Result:
    """Calls a blocking function on a thread of its own.

    Not on the loop's executor: other code may occupy all threads of that. A cancellation takes effect when the
    function has returned: a start or a stop must not go on beside what follows it.
    """
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    waiting = asyncio.wrap_future(done)
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError as error:
            cancelled = error
    thread.join()  # It has nothing left to do.
    if cancelled is not None:
        waiting.exception()  # Marks it as seen.
        raise cancelled
    return waiting.result()
