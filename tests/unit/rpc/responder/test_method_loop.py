"""An event loop receives calls: as they come, a few in each turn, and again when it is time to ask."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, cast

import pytest

from awoke.observe.events import Events
from awoke.rpc.responder.method_loop import CALLS_OF_TURN, LoopReceiver, MethodLoop
from tests.support.waiting import Collected
from tests.unit.rpc.responder.fakes import FakeAdmission, FakeCall

WITHIN_S = 30.0


class Case:
    """A receiver on the running loop."""

    def __init__(self) -> None:
        self.admission, self.received = FakeAdmission(), list[Any]()
        self.came = asyncio.Condition()
        self.receiver = LoopReceiver(cast(Any, self.admission), asyncio.get_running_loop(), self._begin)

    def _begin(self, call: Any) -> None:
        self.received.append(call)

        async def tell() -> None:
            async with self.came:
                self.came.notify_all()

        self.told = asyncio.get_running_loop().create_task(tell())

    async def wait_for(self, calls: int) -> None:
        async with asyncio.timeout(WITHIN_S), self.came:
            await self.came.wait_for(lambda: len(self.received) >= calls)


def run(test: Callable[[Case], Awaitable[None]]) -> None:
    """Runs a test with a receiver, whose scheduler is closed in the end."""

    async def run() -> None:
        case = Case()
        await test(case)
        case.admission.calls.put(None)

    asyncio.run(run())


def test_calls_are_received_as_they_come() -> None:
    async def test(case: Case) -> None:
        case.admission.calls.put(1)
        case.receiver.start()
        assert case.received == [1], "what was there before"
        case.admission.calls.put(2)
        await case.wait_for(2)
        await asyncio.to_thread(case.admission.calls.put, 3)
        await case.wait_for(3)
        assert case.received == [1, 2, 3]

    run(test)


def test_tasks_run_between_many_calls() -> None:
    async def test(case: Case) -> None:
        for number in range(2 * CALLS_OF_TURN + 1):
            case.admission.calls.put(number)
        case.receiver.start()
        assert len(case.received) == CALLS_OF_TURN
        await case.wait_for(2 * CALLS_OF_TURN + 1)

    run(test)


def test_it_asks_again_when_it_was_told_to() -> None:
    async def test(case: Case) -> None:
        case.admission.again_s = 0.001
        case.receiver.start()
        case.admission.calls.is_silent = True
        case.admission.calls.put(1)
        await case.wait_for(1)

    run(test)


def test_an_error_keeps_no_later_call_away(caplog: pytest.LogCaptureFixture) -> None:
    async def test(case: Case) -> None:
        for error in [RuntimeError("an error of awoke's own")] * 3 * CALLS_OF_TURN:
            case.admission.calls.put(error)
        case.admission.calls.put(1)
        case.receiver.start()
        await case.wait_for(1)

    run(test)
    assert caplog.text.count("could not be received") == 3 * CALLS_OF_TURN


def test_a_call_that_cannot_begin_keeps_no_later_call_away(caplog: pytest.LogCaptureFixture) -> None:
    async def test(case: Case) -> None:
        begin = case._begin

        def begin_later(call: Any) -> None:
            case.receiver._begin = begin
            raise RuntimeError("an error of awoke's own")

        case.receiver._begin = begin_later
        case.admission.calls.put(1)
        case.admission.calls.put(2)
        case.receiver.start()
        await case.wait_for(1)
        assert case.received == [2]

    run(test)
    assert "could not be received" in caplog.text


def test_it_ends_with_the_scheduler() -> None:
    async def test(case: Case) -> None:
        case.receiver.start()
        loop, descriptor = asyncio.get_running_loop(), case.receiver._notifier.fileno()
        case.admission.calls.put(None)
        async with asyncio.timeout(WITHIN_S):
            while case.admission.calls.is_ended is False:
                await asyncio.sleep(0)
        assert not loop.remove_reader(descriptor), "it was removed"

    run(test)


def method_loop(run_call: Callable[[Any], Any]) -> MethodLoop:
    return MethodLoop(cast(Any, FakeAdmission()), run_call, lambda error: None, Context, Events())


def test_a_call_that_comes_when_the_loop_has_ended_is_left_to_its_next_reader() -> None:
    """A thread may have received it before the scheduler closed, and begin it after the loop's end."""
    loop = method_loop(lambda call: None)
    loop.thread.start()
    loop.close()
    loop.thread.join(WITHIN_S)
    assert not loop.thread.is_alive()
    loop.begin_soon(cast(Any, FakeCall()))
    loop.close()


def test_tasks_that_methods_have_left_are_cancelled_at_the_end() -> None:
    told, begun = Collected[str](), threading.Event()

    async def left() -> None:
        try:
            begun.set()
            await asyncio.get_running_loop().create_future()
        finally:
            told.add("cancelled")

    kept = []

    async def begin() -> None:
        kept.append(asyncio.create_task(left()))

    loop = method_loop(lambda call: begin())
    loop.thread.start()
    loop.begin_soon(cast(Any, FakeCall()))
    assert begun.wait(WITHIN_S)
    loop.close()
    loop.thread.join(WITHIN_S)
    assert told.items == ["cancelled"]
