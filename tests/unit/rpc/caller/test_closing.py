"""The pauses of a caller: each ends with its time, or at once when the caller is closed."""

from __future__ import annotations

import asyncio
import threading

from awoke.rpc.caller.closing import Closing
from awoke.waiting.drive import until
from tests.unit.rpc.caller.fakes import LONG_S, WAYS, Run


async def paused(closing: Closing, delay_s: float) -> bool:
    return await until(closing.pause(delay_s))


@WAYS
def test_a_pause_ends_with_its_time_or_at_once_when_closed(run: Run) -> None:
    closing = Closing()
    assert run(paused(closing, 0.0)) is False
    assert not closing.is_closed
    closing.close()
    assert run(paused(closing, LONG_S)) is True
    assert closing.is_closed


def test_closing_ends_the_pauses_of_all_threads_and_tasks() -> None:
    closing, results, together = Closing(), list[bool](), threading.Barrier(3)

    def wait() -> None:
        together.wait(30)
        results.append(closing.wait(LONG_S))

    async def run() -> list[bool]:
        tasks = [asyncio.create_task(paused(closing, LONG_S)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.to_thread(together.wait, 30)
        closing.close()
        return await asyncio.wait_for(asyncio.gather(*tasks), 30)

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert asyncio.run(run()) == [True, True, True]
    for thread in threads:
        thread.join(30)
    assert results == [True, True]


def test_another_thread_ends_the_pause_of_a_task() -> None:
    closing = Closing()

    async def run() -> bool:
        task = asyncio.create_task(paused(closing, LONG_S))
        await asyncio.to_thread(closing.close)
        return await asyncio.wait_for(task, 30)

    assert asyncio.run(run()) is True


def test_a_task_that_was_cancelled_or_whose_loop_has_ended_is_not_woken() -> None:
    closing = Closing()

    async def run() -> None:
        task = asyncio.create_task(paused(closing, LONG_S))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    async def leave() -> None:
        waiting = closing.wait_on_loop(LONG_S)
        waiting.send(None)  # It waits on a loop that ends before it.
        left.append(waiting)

    left: list[object] = []
    asyncio.run(run())
    asyncio.run(leave())
    closing.close()
    assert closing.is_closed
    left.clear()


def test_closing_again_does_nothing() -> None:
    closing = Closing()
    closing.close()
    closing.close()
    assert closing.wait(LONG_S) is True
