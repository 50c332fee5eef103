"""A call that blocks the event loop of async functions is told: with its place, in the log and the metrics."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import awoke
from awoke.observe.events import LoopBlocked
from awoke.observe.loop_watch import BLOCKED_S, LoopWatch
from awoke.testing.runs import Runs
from tests.support.waiting import Collected


def blocking_call() -> None:
    """Block, as a client without async does, until it was noticed."""
    assert noticed.wait(30)


noticed = threading.Event()


def test_a_blocking_call_in_an_async_handler_is_told_with_its_place(
    awoke_run: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    noticed.clear()
    app, told = awoke.App("blocked", metrics_port=0), Collected[LoopBlocked]()

    def notice(event: LoopBlocked) -> None:
        told.add(event)
        noticed.set()

    app.events.subscribe(LoopBlocked, notice)

    @app.on("orders")
    async def charge(message: awoke.Message[bytes]) -> None:
        blocking_call()

    probe = awoke_run(app)
    probe.send("orders", b"")
    probe.idle()
    (event,) = told.items
    assert (event.loop, event.function) == ("awoke-loop", "blocking_call")
    assert f"{__file__}:" in event.place
    assert event.for_s >= BLOCKED_S
    assert "blocks the event loop" in caplog.text
    assert "in charge" in caplog.text
    assert (
        'awoke_blocked_loops_total{function="blocking_call",loop="awoke-loop"} 1.0'
        in probe.runner.metrics_text().decode()
    )


def test_a_loop_that_works_in_short_steps_is_not_told(awoke_run: Runs) -> None:
    app, told = awoke.App("busy"), Collected[LoopBlocked]()
    app.events.subscribe(LoopBlocked, told.add)

    @app.on("orders")
    async def charge(message: awoke.Message[bytes]) -> None:
        until_s = time.monotonic() + 2 * BLOCKED_S
        while time.monotonic() < until_s:
            await asyncio.sleep(0)

    probe = awoke_run(app)
    probe.send("orders", b"")
    probe.idle()
    assert told.items == []


def test_a_watch_that_is_stopped_while_it_looks_ends() -> None:
    watch = LoopWatch("a loop", awoke.Events())
    watch.new_loop().close()

    class Late(threading.Event):
        def clear(self) -> None:
            watch._is_closed = True  # As `stop` does, from another thread, just before.
            self.set()
            super().clear()

    watch._changed = Late()
    thread = threading.Thread(target=watch._watch, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
