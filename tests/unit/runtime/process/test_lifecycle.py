"""The start-up and shutdown functions of one run: their order, their errors, and one that hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context
from typing import Any

import pytest

import awoke
from awoke.declare.lifecycle import Lifecycle
from awoke.observe.events import ShutdownFailed
from awoke.runtime.process.lifecycle import LifecycleRun, until

LONG_S = 60.0


def run_async(function: Callable[[], Any]) -> Future[Any]:
    """Stands for the runtime's event loop."""
    done: Future[Any] = Future()
    done.set_result(asyncio.run(function()))
    return done


class Case:
    """A run, and the functions that were called in it."""

    def __init__(self) -> None:
        self.called, self.failed = list[str](), list[ShutdownFailed]()
        self.lifecycle, events = Lifecycle(), awoke.Events()
        events.subscribe(ShutdownFailed, self.failed.append)
        self.run = LifecycleRun(self.lifecycle, events, run_async, Context())

    def add(self, name: str, error: BaseException | None = None) -> None:
        """Registers a start-up function, and a shutdown function which may raise this."""
        self.lifecycle.add_startup(lambda: self.called.append(f"start {name}"))

        def stop() -> None:
            self.called.append(f"stop {name}")
            if error is not None:
                raise error

        self.lifecycle.add_shutdown(stop)

    def shut_down(self) -> list[str]:
        return self.run.shut_down(time.monotonic() + LONG_S)


def test_shutdown_functions_are_called_in_reverse_order() -> None:
    case = Case()
    for name in ("a", "b"):
        case.add(name)
    case.run.start_up()
    assert case.shut_down() == []
    assert case.called == ["start a", "start b", "stop b", "stop a"]


def test_a_start_that_fails_calls_no_later_function_and_undoes_the_earlier_ones() -> None:
    case = Case()

    def refuse() -> None:
        raise OSError("no database")

    case.add("a")
    case.lifecycle.add_startup(refuse)
    case.lifecycle.add_shutdown(lambda: case.called.append("stop refused"))
    case.add("c")
    with pytest.raises(OSError, match="no database"):
        case.run.start_up()
    case.shut_down()
    assert case.called == ["start a", "stop a"]


@pytest.mark.parametrize("error", [ValueError("no good"), SystemExit(3)])
def test_every_shutdown_function_is_called_whatever_the_others_raise(error: BaseException) -> None:
    case = Case()
    case.add("a")
    case.add("b", error)
    case.run.start_up()
    assert case.shut_down() == []
    assert case.called[2:] == ["stop b", "stop a"]
    assert [each.error for each in case.failed] == [error]


def test_without_a_start_and_a_second_time_nothing_is_shut_down() -> None:
    case = Case()
    case.add("a")
    assert case.shut_down() == []
    assert case.called == []
    case.run.start_up()
    case.shut_down()
    case.shut_down()
    assert case.called == ["start a", "stop a"]


def test_what_starts_behind_the_start_up_functions_is_closed_before_the_shutdown_functions() -> None:
    case = Case()
    case.add("a")
    case.run.start_up()
    case.run.also(lambda: case.called.append("open"), lambda: case.called.append("close"), "dependencies")
    assert case.shut_down() == []
    assert case.called == ["start a", "open", "close", "stop a"]


def test_what_fails_to_start_there_is_closed_all_the_same() -> None:
    case = Case()

    def refuse() -> None:
        raise OSError("no database")

    case.add("a")
    case.run.start_up()
    with pytest.raises(OSError, match="no database"):
        case.run.also(refuse, lambda: case.called.append("close"), "dependencies")
    case.shut_down()
    assert case.called == ["start a", "close", "stop a"]


def test_async_functions_run_on_the_event_loop_one_after_the_other() -> None:
    case = Case()

    async def start() -> None:
        asyncio.get_running_loop()
        case.called.append("start a")

    async def stop() -> None:
        raise ValueError("no good")

    case.lifecycle.add_startup(start)
    case.lifecycle.add_shutdown(stop)
    case.add("b")
    case.run.start_up()
    case.shut_down()
    assert case.called == ["start a", "start b", "stop b"]
    assert [str(each.error) for each in case.failed] == ["no good"]


def test_a_shutdown_function_that_hangs_is_named_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    case, release = Case(), threading.Event()

    def stop_that_hangs() -> None:
        release.wait(LONG_S)

    case.lifecycle.add_shutdown(stop_that_hangs)
    case.run.start_up()
    assert case.run.shut_down(time.monotonic() + 0.01) == ["awoke-shutdown"]
    release.set()
    (thread,) = [each for each in threading.enumerate() if each.name == "awoke-shutdown"]
    thread.join(30)
    assert "stop_that_hangs" in caplog.text


def test_a_wait_that_is_cancelled_leaves_the_future_to_the_others() -> None:
    async def run() -> None:
        done: Future[None] = Future()
        cancelled, other = asyncio.create_task(until(done)), asyncio.create_task(until(done))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        await asyncio.to_thread(done.set_result, None)
        await asyncio.wait_for(other, 30)

    asyncio.run(run())


def test_a_future_may_be_done_before_the_wait_and_after_the_end_of_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    done: Future[None] = Future()

    async def begin_to_wait() -> None:
        task = asyncio.create_task(until(done))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(begin_to_wait())
    done.set_result(None)  # Which tells the loop that has gone.
    assert caplog.text == "", "a future logs what its callbacks raise"
    asyncio.run(asyncio.wait_for(until(done), 30))
