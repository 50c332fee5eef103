"""Single flight: one flow a key, its result and its errors for all, and no wait for a flow that was abandoned."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from awoke.errors import AwokeError
from awoke.payloads.registry import single_flight
from awoke.payloads.registry.single_flight import SingleFlight
from awoke.waiting.drive import drive
from tests.support.waiting import WITHIN_S, Collected


class Waits:
    """A flow that ends when the test says so, and counts its runs."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.runs = 0
        self.go, self.begun = threading.Event(), threading.Event()
        self._error = error

    async def __call__(self) -> int:
        self.runs += 1
        self.begun.set()
        assert self.go.wait(WITHIN_S)
        if self._error is not None and self.runs == 1:
            raise self._error
        return self.runs


def run(flights: SingleFlight[int], flow: Waits) -> object:
    """Runs the flow on the calling thread; returns its result, or the class of its error."""
    try:
        return drive(flights.run("key", flow))
    except Exception as error:
        return type(error)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Collected[int]:
    """Gets an item for each thread that begins to wait for the flow of another."""
    begun = Collected[int]()
    wait = single_flight._Shared.wait

    def noted(self: single_flight._Shared[int]) -> int:
        begun.add(1)
        return wait(self)

    monkeypatch.setattr(single_flight._Shared, "wait", noted)
    return begun


@pytest.mark.parametrize(("error", "result"), [(None, 1), (AwokeError("broken"), AwokeError)])
def test_threads_share_one_run_with_its_result_or_error(
    error: AwokeError | None, result: object, waits: Collected[int]
) -> None:
    flights, flow = SingleFlight[int](), Waits(error)
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(run, flights, flow) for _ in range(8)]
        waits.wait_for(7)
        flow.go.set()
        assert [each.result(WITHIN_S) for each in runs] == [result] * 8
    assert flow.runs == 1


def test_a_later_call_runs_anew() -> None:
    flights, flow = SingleFlight[int](), Waits()
    flow.go.set()
    assert [run(flights, flow), run(flights, flow)] == [1, 2]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError()])
def test_another_error_is_the_runners_own_and_the_others_run_again(error: BaseException, waits: Collected[int]) -> None:
    flights, flow = SingleFlight[int](), Waits(error)
    raised = Collected[BaseException]()

    def lead() -> None:
        try:
            drive(flights.run("key", flow))
        except BaseException as own:
            raised.add(own)

    leader = threading.Thread(target=lead)
    leader.start()
    assert flow.begun.wait(WITHIN_S)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(run, flights, flow) for _ in range(4)]
        waits.wait_for(4)
        flow.go.set()
        found = [each.result(WITHIN_S) for each in runs]
    leader.join(WITHIN_S)
    assert raised.items == [error]
    assert all(isinstance(each, int) and each >= 2 for each in found)


def test_other_keys_do_not_wait() -> None:
    flights = SingleFlight[int]()

    async def inner() -> int:
        return 2

    async def outer() -> int:
        return await flights.run("b", inner) + 1

    assert drive(flights.run("a", outer)) == 3


async def test_tasks_share_one_run() -> None:
    flights, runs, go = SingleFlight[int](), [], asyncio.Event()

    async def flow() -> int:
        runs.append(1)
        await go.wait()
        return len(runs)

    tasks = [asyncio.create_task(flights.run("key", flow)) for _ in range(5)]
    while not runs:
        await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*tasks) == [1] * 5


async def test_a_cancelled_task_takes_no_other_with_it() -> None:
    flights, runs, go = SingleFlight[int](), [], asyncio.Event()

    async def flow() -> int:
        runs.append(1)
        await go.wait()
        return len(runs)

    first, second, third = (asyncio.create_task(flights.run("key", flow)) for _ in range(3))
    while not runs:
        await asyncio.sleep(0)
    first.cancel()  # The one that runs the flow.
    third.cancel()  # One that waits.
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(asyncio.CancelledError):
        await third
    go.set()
    assert await second == 2
