"""The virtual clock by itself: what it moves, and how it is taken and given back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from awoke._native import Signal
from awoke.rpc.caller.connection import RetryPause
from awoke.runtime.jobs.scope import Pause, StopToken
from awoke.swarm.health import RestartPolicy
from awoke.testing import VirtualClock
from awoke.waiting import clock as _clock
from tests.support.waiting import ahang, became, wait_until

HOUR_S = 3_600.0


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as taken:
        yield taken


def test_the_clock_moves_by_what_it_is_told_and_not_by_itself(clock: VirtualClock) -> None:
    before_s, before_ms = _clock.monotonic_s(), _clock.wall_ms()
    assert (clock.now_s, clock.next_due_s()) == (0.0, None)
    clock.advance(HOUR_S)
    assert (clock.now_s, _clock.monotonic_s() - before_s) == pytest.approx((HOUR_S, HOUR_S))
    assert _clock.wall_ms() - before_ms == HOUR_S * 1_000


def test_a_process_has_one_virtual_clock(clock: VirtualClock) -> None:
    with pytest.raises(RuntimeError, match="one virtual clock at a time"), VirtualClock():
        pass
    clock.advance(1)


def test_a_clock_that_is_not_taken_says_so() -> None:
    with pytest.raises(RuntimeError, match="with VirtualClock"):
        VirtualClock().advance(1)


def test_time_does_not_go_back(clock: VirtualClock) -> None:
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_each_moment_comes_in_its_order(clock: VirtualClock) -> None:
    async def waits() -> list[list[bool]]:
        tasks = [asyncio.create_task(_clock.wait(Signal(), seconds)) for seconds in (20, 10, 30)]
        await asyncio.sleep(0)
        ended = []
        for task in (tasks[1], tasks[0], tasks[2]):
            await clock.aadvance(10)
            await task
            ended.append([each.done() for each in tasks])
        return ended

    assert asyncio.run(waits()) == [[False, True, False], [True, True, False], [True, True, True]]


def test_a_task_sees_the_moment_that_has_ended_its_wait(clock: VirtualClock) -> None:
    async def wakes() -> float:
        await _clock.wait(Signal(), 10)
        became(lambda: clock.now_s != 10, within_s=0.1, every_s=0.01)  # The clock has time to move on.
        return clock.now_s

    async def waits() -> list[float]:
        tasks = [asyncio.create_task(wakes()) for _ in range(3)]
        await asyncio.sleep(0)
        await clock.aadvance(60)
        return await asyncio.gather(*tasks)

    assert asyncio.run(waits()) == [10, 10, 10]
    assert (clock.now_s, clock.next_due_s()) == (60, None)


def test_a_task_that_is_cancelled_does_not_hold_up_the_clock(clock: VirtualClock) -> None:
    async def waits() -> None:
        task = asyncio.create_task(_clock.wait(Signal(), 10))
        await asyncio.sleep(0)
        task.cancel()
        await clock.aadvance(60)

    asyncio.run(waits())
    assert (clock.now_s, clock.next_due_s()) == (60, None)


def test_a_wait_ends_at_its_signal_before_its_moment(clock: VirtualClock) -> None:
    async def waits() -> bool:
        signal = Signal()
        task = asyncio.create_task(_clock.wait(signal, HOUR_S))
        await asyncio.sleep(0)
        assert clock.next_due_s() == HOUR_S
        signal.set()
        return await task

    assert asyncio.run(waits())
    assert clock.next_due_s() is None


def test_a_wait_on_a_thread_is_ended_by_the_clock_and_by_its_signal(clock: VirtualClock) -> None:
    token, ended = StopToken(), threading.Event()

    def wait() -> None:
        with token.thread():
            while not token.wait(HOUR_S):
                ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: clock.next_due_s() is not None, "the thread waits", every_s=0.01)
    clock.advance(HOUR_S)
    assert ended.is_set()
    token.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("pause", [RetryPause(Signal(), HOUR_S), Pause(StopToken(), HOUR_S)])
def test_a_back_off_on_a_loop_is_over_at_its_moment(clock: VirtualClock, pause: Pause) -> None:
    async def waits() -> bool:
        task = asyncio.ensure_future(_awaited(pause))
        await asyncio.sleep(0)
        await clock.arun_until_idle()
        return await task

    assert asyncio.run(waits()) is False
    assert clock.now_s == pytest.approx(HOUR_S)


async def _awaited(pause: Pause) -> bool:
    return await pause


def test_a_block_is_cancelled_at_its_time(clock: VirtualClock) -> None:
    async def waits() -> None:
        async def block() -> None:
            async with _clock.timeout(HOUR_S):
                await ahang()

        task = asyncio.create_task(block())
        await asyncio.sleep(0)
        await clock.aadvance(HOUR_S)
        await task

    with pytest.raises(TimeoutError):
        asyncio.run(waits())


def test_a_block_that_ends_in_time_leaves_nothing(clock: VirtualClock) -> None:
    async def block() -> int:
        async with _clock.timeout(HOUR_S):
            return 1

    assert asyncio.run(block()) == 1
    assert clock.next_due_s() is None


def test_a_supervisor_counts_restarts_by_the_clock(clock: VirtualClock) -> None:
    policy = RestartPolicy(restarts_max=2)
    failed = [policy.after(0, exit_code=1, ran_s=0.0).restart_in_s for _ in range(3)]
    assert failed[2] is None, "it gives up"
    clock.advance(HOUR_S)
    assert policy.after(0, exit_code=1, ran_s=0.0).restart_in_s is not None


def test_work_that_does_not_end_is_named() -> None:
    with VirtualClock(settle_timeout_s=0.0) as clock:
        waiting = Signal().begin_wait(1.0)
        with pytest.raises(TimeoutError, match="a wait that a moment of the clock has ended"):
            clock.advance(1)
        assert waiting.done()
