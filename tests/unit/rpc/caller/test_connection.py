"""A caller's connection: opened on first use with the user's properties before awoke's, and closed once."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from awoke.errors import ClosedError, UnknownTopic
from awoke.rpc.caller import connection as module
from awoke.rpc.caller.connection import CallerConnection, Opening, ServiceAddress
from awoke.settings import Settings
from awoke.waiting.drive import until
from tests.unit.rpc.caller.fakes import LONG_S, RESULT, WAYS, FakeCaller, Run, connection_of

ADDRESS = ServiceAddress("shop.rpc.calls", "shop.rpc.replies", "shop", "web", 1, 2, 3, b"hunter2")
TOPICS = ("shop.rpc.calls", "shop.rpc.replies")


class Fakes:
    """The parts that opening uses, in the order of their use."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.error: Exception | None = None

    def ensure(self, settings: Settings, topics: Any, partitions: int) -> None:
        self.steps.append(("ensure", tuple(topics), partitions))

    def check(self, settings: Settings, service: str, topics: Any) -> None:
        self.steps.append(("check", service, tuple(topics)))

    def connect(self, producing: Any, consuming: Any, address: Any, timeout_s: float, box: Any) -> Any:
        self.steps.append(("connect", dict(producing), dict(consuming), address, timeout_s))
        if self.error is not None:
            raise self.error
        return "native"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    fakes = Fakes()
    monkeypatch.setattr(module, "topics", SimpleNamespace(ensure=fakes.ensure, check=fakes.check))
    monkeypatch.setattr(module, "_native", SimpleNamespace(Caller=fakes.connect))
    return fakes


def opening(*, creates_topics: bool = False, **settings: Any) -> Opening:
    return Opening("shop", Settings(startup_timeout_s=7.0, **settings), ADDRESS, None, creates_topics, 5)


def producing(fakes: Fakes, **kafka: str) -> dict[str, str]:
    """Returns librdkafka's properties for the requests."""
    source = opening(kafka=kafka).open()[1]
    source.close()
    found: dict[str, str] = fakes.steps[-1][1]
    return found


@pytest.mark.parametrize(
    ("creates_topics", "step"), [(False, ("check", "shop", TOPICS)), (True, ("ensure", TOPICS, 5))]
)
def test_topics_are_checked_or_made_before_the_caller_connects(
    fakes: Fakes, creates_topics: bool, step: tuple[Any, ...]
) -> None:
    native, source = opening(creates_topics=creates_topics).open()
    source.close()
    first, (kind, _, _, address, timeout_s) = fakes.steps
    assert first == step
    assert (kind, address, timeout_s) == ("connect", ADDRESS, 7.0)
    assert cast(Any, native) == "native"


def test_a_caller_that_can_not_connect_leaves_no_thread_behind(fakes: Fakes) -> None:
    fakes.error = UnknownTopic("gone")
    with pytest.raises(UnknownTopic, match="gone"):
        opening().open()


def test_requests_linger_for_a_millisecond_at_most_and_are_dropped_after_30_s(fakes: Fakes) -> None:
    found = producing(fakes)
    assert (found["linger.ms"], found["message.timeout.ms"]) == ("1", "30000")
    assert "linger.ms" not in fakes.steps[-1][2], "these are for requests only"


def test_the_properties_of_the_user_come_first(fakes: Fakes) -> None:
    assert producing(fakes, **{"linger.ms": "5"})["linger.ms"] == "5"


@pytest.mark.parametrize("name", ["message.timeout.ms", "delivery.timeout.ms"])
def test_both_names_of_the_time_out_of_a_request_decide(fakes: Fakes, name: str) -> None:
    found = producing(fakes, **{name: "1000"})
    assert {each: found[each] for each in found if each.endswith("ry.timeout.ms") or each == name} == {name: "1000"}
    assert found.get("message.timeout.ms", "1000") == "1000"


def test_the_secret_of_a_service_is_not_shown() -> None:
    assert "hunter2" not in repr(ADDRESS)
    assert "shop.rpc.calls" in repr(ADDRESS)


def unused() -> CallerConnection:
    return connection_of(FakeCaller(RESULT))


async def paused(connection: CallerConnection, delay_s: float) -> bool:
    return await until(connection.pause(delay_s))


@WAYS
def test_a_pause_ends_with_its_time_or_at_once_when_closed(run: Run) -> None:
    connection = unused()
    assert run(paused(connection, 0.0)) is False
    assert not connection.is_closed
    connection.refuse_calls()
    assert run(paused(connection, LONG_S)) is True
    assert connection.is_closed


def test_closing_ends_the_pauses_of_all_threads_and_tasks() -> None:
    connection, results, together = unused(), list[bool](), threading.Barrier(3)

    def wait() -> None:
        together.wait(30)
        results.append(connection.pause(LONG_S).wait())

    async def run() -> list[bool]:
        tasks = [asyncio.create_task(paused(connection, LONG_S)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.to_thread(together.wait, 30)
        connection.refuse_calls()
        return await asyncio.wait_for(asyncio.gather(*tasks), 30)

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert asyncio.run(run()) == [True, True, True]
    for thread in threads:
        thread.join(30)
    assert results == [True, True]


def test_another_thread_ends_the_pause_of_a_task() -> None:
    connection = unused()

    async def run() -> bool:
        task = asyncio.create_task(paused(connection, LONG_S))
        await asyncio.to_thread(connection.refuse_calls)
        return await asyncio.wait_for(task, 30)

    assert asyncio.run(run()) is True


def test_a_task_that_was_cancelled_or_whose_loop_has_ended_is_not_woken() -> None:
    connection = unused()

    async def run() -> None:
        task = asyncio.create_task(paused(connection, LONG_S))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    async def leave() -> None:
        waiting = iter(connection.pause(LONG_S).__await__())
        next(waiting)  # It waits on a loop that ends before it.
        left.append(waiting)

    left: list[object] = []
    asyncio.run(run())
    asyncio.run(leave())
    connection.refuse_calls()
    assert connection.is_closed
    left.clear()


def test_closing_again_does_nothing() -> None:
    connection = unused()
    connection.refuse_calls()
    connection.refuse_calls()
    assert connection.pause(LONG_S).wait() is True


def test_a_caller_that_was_closed_before_its_first_use_is_not_opened() -> None:
    connection = unused()
    connection.close(0.0)
    with pytest.raises(ClosedError):
        connection.open()
