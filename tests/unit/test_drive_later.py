"""A flow gives the same result on a worker thread, on an event loop and on the callback thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from awoke.waiting.drive import FlowLock, drive, drive_later, elsewhere, until
from tests.support.waiting import Collected
from tests.unit.runtime.fakes import FakeHandle

WITHIN_S = 30.0


async def both(*handles: FakeHandle) -> list[str]:
    answers = []
    for handle in handles:
        try:
            answers.append(await until(handle))
        except ValueError as error:
            answers.append(str(error))
    return answers


def test_a_worker_waits_for_each_handle_and_errors_are_raised_in_the_flow() -> None:
    good, bad = FakeHandle(), FakeHandle(ValueError("refused"))
    assert drive(both(bad, good)) == ["refused", "answer"]
    assert (good.waits, bad.waits) == (1, 1)


def test_an_event_loop_runs_the_flow_without_blocking() -> None:
    good, bad = FakeHandle(is_answered=False), FakeHandle(ValueError("refused"), is_answered=False)

    async def serve() -> list[str]:
        task = asyncio.create_task(both(bad, good))
        for handle in (bad, good):
            await asyncio.wait([task], timeout=0)
            handle.answer()
        return await task

    assert asyncio.run(serve()) == ["refused", "answer"]
    assert (good.waits, bad.waits) == (0, 0)


@pytest.mark.parametrize("is_on_loop", [False, True])
def test_what_is_driven_later_goes_on_at_the_callback_thread(is_on_loop: bool) -> None:
    handle, ended = FakeHandle(is_answered=False), Collected[tuple[str, str]]()

    async def flow() -> None:
        ended.add(("began", threading.current_thread().name))
        await until(FakeHandle())
        answer = await until(handle)
        ended.add((answer, threading.current_thread().name))

    async def serve() -> None:
        drive_later(flow())

    here = threading.current_thread().name
    asyncio.run(serve()) if is_on_loop else drive_later(flow())
    assert ended.items == [("began", here)], "it does not block"
    handle.answer()
    assert ended.wait_for(2)[1] == ("answer", "awoke-callbacks")


def test_an_error_ends_a_driven_flow_with_it() -> None:
    async def flow() -> None:
        await until(FakeHandle(ValueError("refused")))

    with pytest.raises(ValueError, match="refused"):
        drive(flow())


def test_a_blocking_call_leaves_the_event_loop_and_outlives_a_cancelled_wait() -> None:
    release, ended = threading.Event(), threading.Event()

    def block() -> str:
        assert release.wait(WITHIN_S)
        ended.set()
        return threading.current_thread().name

    async def serve() -> None:
        task = asyncio.create_task(elsewhere(block))
        await asyncio.wait([task], timeout=0)
        task.cancel()
        await asyncio.wait([task])
        release.set()

    asyncio.run(serve())
    assert ended.wait(WITHIN_S)
    assert drive(elsewhere(block)) == threading.current_thread().name, "a worker calls it itself"


def test_a_lock_lets_one_flow_in_at_a_time() -> None:
    async def enter(lock: FlowLock, inside: list[int], most: list[int]) -> None:
        async with lock:
            inside.append(1)
            most.append(len(inside))
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0)
            inside.pop()

    async def serve() -> list[int]:
        lock, inside, most = FlowLock(), list[int](), list[int]()
        await asyncio.gather(*(enter(lock, inside, most) for _ in range(4)))
        return most

    assert asyncio.run(serve()) == [1, 1, 1, 1]

    lock, entered = FlowLock(), Collected[int]()

    async def flow() -> None:
        async with lock:
            entered.add(1)

    lock._threads.acquire()
    waiting = [threading.Thread(target=lambda: drive(flow())) for _ in range(3)]
    for each in waiting:
        each.start()
    assert entered.items == []
    lock._threads.release()
    entered.wait_for(3)
    for each in waiting:
        each.join()


def test_a_driver_keeps_nothing_of_a_flow_that_ended() -> None:
    import weakref

    class Kept:
        pass

    kept = Kept()
    freed = weakref.ref(kept)

    async def flow(kept: Any) -> None:
        await until(FakeHandle())

    drive(flow(kept))
    del kept
    assert freed() is None
