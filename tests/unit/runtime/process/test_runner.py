"""An app from its start to its stop: the order, what fails on the way, and what stops it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, cast

import pytest

import awoke
from awoke._native import Job
from awoke.observe.events import ClientError
from awoke.runtime.extension import Extension
from awoke.runtime.process.runner import AppRunner
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import Collected
from tests.unit.runtime.fakes import FakeJob, FakePartition

WITHIN_S = 30.0
ERROR = ValueError("no good")


def handle(message: Any) -> None: ...


class Case:
    """An app with one route, and its runner."""

    def __init__(self, cluster: MockCluster, **options: Any) -> None:
        topic = unique("orders")
        cluster.create_topic(topic, 1)
        self.app = awoke.App(unique("shop"), bootstrap_servers=cluster.bootstrap_servers)
        self.app.on(topic)(handle)
        self.other_topic = unique("others")
        cluster.create_topic(self.other_topic, 1)
        self.heard = Collected[str]()
        self.app.events.subscribe("*", lambda event: self.heard.add(event.name))
        self.errors = Collected[BaseException]()
        self.runner = AppRunner(self.app, self.errors.add, **options)

    def heard_of_app(self) -> list[str]:
        return [name for name in self.heard.items if name.startswith("app.")]


@pytest.fixture
def case(mock_cluster: MockCluster) -> Case:
    return Case(mock_cluster)


def test_an_app_starts_and_stops_once(case: Case) -> None:
    case.runner.start()
    assert not case.runner.has_ended
    assert case.runner.stop(WITHIN_S)
    assert case.runner.has_ended
    assert case.runner.stop(WITHIN_S)
    assert case.heard_of_app() == ["app.started", "app.stopping", "app.stopped"]


def test_start_up_functions_run_before_the_group_is_joined_and_shutdown_functions_after_it_is_left(case: Case) -> None:
    members: list[bool] = []
    case.app.on_startup(lambda: members.append(case.runner.own.member is None))
    case.app.on_shutdown(lambda: members.append("app.stopping" in case.heard.items))
    case.runner.start()
    assert members == [True]
    case.runner.stop(WITHIN_S)
    assert members == [True, True]


def test_an_app_without_a_route_does_not_start() -> None:
    runner = AppRunner(awoke.App("empty"))
    with pytest.raises(awoke.ConfigError, match="has no route"):
        runner.start()
    assert runner.has_ended
    assert runner.stop()


def test_a_start_that_fails_ends_what_it_began(case: Case) -> None:
    called: list[str] = []

    def refuse() -> None:
        raise ERROR

    case.app.on_startup(lambda: called.append("start"))
    case.app.on_startup(refuse)
    case.app.on_shutdown(lambda: called.append("stop"))
    with pytest.raises(ValueError, match="no good"):
        case.runner.start()
    assert called == ["start", "stop"]
    assert case.runner.has_ended
    assert case.runner.own.member is None
    assert case.heard_of_app() == ["app.stopped"]


class Noted(Extension):
    """Notes what it is told, in the order of all extensions of a test."""

    def __init__(self, name: str, said: list[str], case: Case, failing: str = "") -> None:
        self.name, self._said, self._case, self._failing = name, said, case, failing

    def _note(self, step: str) -> None:
        self._said.append(f"{step} {self.name}")
        if step == self._failing:
            raise ERROR

    def start(self) -> None:
        self._note("start")

    def before_joining(self) -> None:
        assert self._case.runner.own.member is None
        self._note("prepare")

    def assigned(self, group: str, topic: str, partition: int) -> None:
        self._note(f"{group == self._case.app.name} {partition} to")

    def stop(self, timeout_s: float) -> None:
        assert timeout_s >= 1.0
        assert "app.stopped" in self._case.heard.items
        self._note("stop")


def test_extensions_start_before_start_up_functions_and_stop_last_in_reverse_order(case: Case) -> None:
    said, handled = list[str](), threading.Event()
    case.app.on_startup(lambda: said.append("start up"))
    case.app.on_shutdown(lambda: said.append("shut down"))

    def note(message: awoke.Message[bytes]) -> None:
        said.append("message")
        handled.set()

    case.app.on(case.other_topic, start=0, group="other")(note)
    case.app.producer.produce(case.other_topic, b"1").wait(WITHIN_S)
    runner = case.runner = AppRunner(case.app)
    runner.extensions = [Noted(name, said, case) for name in "ab"]
    runner.start()
    assert handled.wait(WITHIN_S)
    assert runner.stop(WITHIN_S)
    begun = ["start a", "start b", "start up", "prepare a", "prepare b"]
    assert said[:5] == begun
    assert said.index("False 0 to a") < said.index("False 0 to b") < said.index("message")
    assert said[-3:] == ["shut down", "stop b", "stop a"]


@pytest.mark.parametrize("step", ["start", "prepare"])
def test_an_extension_that_fails_at_start_ends_the_start_and_all_are_stopped(case: Case, step: str) -> None:
    said = list[str]()
    case.runner.extensions = [Noted("a", said, case, step), Noted("b", said, case)]
    with pytest.raises(ValueError, match="no good"):
        case.runner.start()
    assert said[-3:] == [f"{step} a", "stop b", "stop a"]
    assert (case.runner.has_ended, case.runner.own.member) == (True, None)


def test_an_extension_that_fails_at_stop_keeps_no_other_from_stopping(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    said = list[str]()
    case.runner.extensions = [Noted("a", said, case), Noted("b", said, case, "stop")]
    case.runner.start()
    assert not case.runner.stop(WITHIN_S)
    assert said[-2:] == ["stop b", "stop a"]
    assert "Noted could not be stopped" in caplog.text


def test_functions_of_the_process_live_between_the_start_up_and_the_shutdown_functions(case: Case) -> None:
    called: list[str] = []

    def pool() -> Iterator[str]:
        called.append("open" if runner.own.member is None else "too late")
        yield "pool"
        called.append("close")

    def handle_with(message: Any, it: Annotated[str, awoke.Depends(pool, scope="process")]) -> None: ...

    case.app.on(case.other_topic)(handle_with)
    case.app.on_startup(lambda: called.append("start"))
    case.app.on_shutdown(lambda: called.append("stop"))
    runner = AppRunner(case.app)
    runner.start()
    assert called == ["start", "open"]
    assert runner.stop(WITHIN_S)
    assert called == ["start", "open", "close", "stop"]


def test_a_function_of_the_process_that_fails_ends_the_start(case: Case) -> None:
    called: list[str] = []

    async def pool() -> AsyncIterator[str]:
        yield "pool"
        called.append("close")

    async def refuse(of: Annotated[str, awoke.Depends(pool, scope="process")]) -> str:
        raise ERROR

    async def handle_with(message: Any, it: Annotated[str, awoke.Depends(refuse, scope="process")]) -> None: ...

    refuse.__annotations__["of"] = Annotated[str, awoke.Depends(pool, scope="process")]
    case.app.on(case.other_topic)(handle_with)
    runner = AppRunner(case.app)
    with pytest.raises(ValueError, match="no good"):
        runner.start()
    assert (called, runner.has_ended, runner.own.member) == (["close"], True, None)


def test_an_argument_that_the_app_can_not_give_ends_the_start(case: Case) -> None:
    def handle_with(message: Any, prices: Annotated[Any, awoke.Service("")]) -> None: ...

    case.app.on(case.other_topic)(handle_with)
    runner = AppRunner(case.app)
    with pytest.raises(awoke.ConfigError, match="a caller needs the name of a service"):
        runner.start()
    assert (runner.has_ended, runner.own.member) == (True, None)


def test_an_app_that_was_stopped_before_its_start_does_not_start(case: Case) -> None:
    case.app.stop()
    case.runner.start()
    assert case.runner.has_ended
    assert case.runner.stop()
    assert case.heard_of_app() == []


def test_requests_to_stop_stop_the_app_on_one_thread_of_its_own(case: Case) -> None:
    release = threading.Event()
    case.app.on_shutdown(lambda: release.wait(WITHIN_S) and None)
    case.runner.start()
    for _ in range(5):
        case.app.stop()
    assert [each.name for each in threading.enumerate()].count("awoke-stopping") == 1
    release.set()
    asyncio.run(asyncio.wait_for(case.runner.ended(), WITHIN_S))
    assert case.runner.stop(), "it joins that thread"
    assert case.heard_of_app().count("app.stopped") == 1


def test_the_owner_of_a_runner_may_stop_it_itself(mock_cluster: MockCluster) -> None:
    asked = Collected[str]()
    case = Case(mock_cluster, on_stop=lambda: asked.add("stop"))
    case.runner.start()
    case.app.stop()
    assert asked.items == ["stop"]
    assert not case.runner.has_ended
    assert case.runner.stop(WITHIN_S)


def test_threads_that_stop_an_app_at_once_get_the_same_answer(case: Case) -> None:
    case.runner.start()
    together, answers = threading.Barrier(3), Collected[bool]()

    def stop() -> None:
        together.wait(WITHIN_S)
        answers.add(case.runner.stop(WITHIN_S))

    threads = [threading.Thread(target=stop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN_S)
    assert answers.items == [True, True, True]
    assert case.heard_of_app().count("app.stopping") == 1


def test_a_shutdown_function_that_hangs_makes_the_stop_unclean(case: Case) -> None:
    release = threading.Event()
    case.app.on_shutdown(lambda: release.wait(WITHIN_S) and None)
    case.runner.start()
    assert not case.runner.stop(0.0)
    release.set()
    assert not case.runner.stop(), "a second call returns the same"
    for thread in threading.enumerate():
        if thread.name in ("awoke-shutdown", "awoke-stop-step"):
            thread.join(WITHIN_S)


def test_an_app_stops_for_its_first_fatal_error(case: Case) -> None:
    case.runner.stop_app(ERROR)
    case.runner.stop_app(ValueError("later"))
    assert case.errors.items == [ERROR]
    assert case.runner.fatal_error is ERROR
    assert case.runner.why_not_ready() == "it has a fatal error: no good"


def test_who_waits_for_the_end_gets_the_error(case: Case) -> None:
    case.runner.start()
    case.runner.stop_app(ERROR)
    case.runner.stop(WITHIN_S)
    with pytest.raises(ValueError, match="no good"):
        asyncio.run(asyncio.wait_for(case.runner.ended(), WITHIN_S))


@pytest.mark.parametrize(("is_fatal", "ends"), [(True, 1), (False, 0)])
def test_only_a_fatal_error_of_a_client_ends_the_app(case: Case, is_fatal: bool, ends: int) -> None:
    case.runner.start()
    event = ClientError(client="shop", code=82, code_name="FENCED_INSTANCE_ID", text="fenced", is_fatal=is_fatal)
    case.app.events.emit(event)
    assert len(case.errors.items) == ends
    case.runner.stop(WITHIN_S)
    case.app.events.emit(ClientError(client="shop", code=82, code_name="F", text="late", is_fatal=True))
    assert len(case.errors.items) == ends, "an app that has stopped listens no more"


def test_a_failed_background_function_may_end_the_app(case: Case) -> None:
    def fail() -> None:
        raise ERROR

    case.app.background(fail, on_error="fail")
    case.runner.start()
    (error,) = case.errors.wait_for(1)
    assert "no good" in str(error.__cause__ or error)
    case.runner.stop(WITHIN_S)


def test_a_quiet_app_is_not_ready(case: Case) -> None:
    case.runner.start()
    case.runner.quiet()
    assert "quiet" in (case.runner.why_not_ready() or "")
    assert case.runner.stop(WITHIN_S)


def test_a_second_signal_ends_the_wait_once(case: Case) -> None:
    case.runner.start()
    assert case.runner.stop_waiting()
    assert not case.runner.stop_waiting()
    case.runner.stop(WITHIN_S)


def test_an_app_has_at_least_one_worker(case: Case) -> None:
    with pytest.raises(awoke.ConfigError, match="at least 1 worker") as refused:
        case.runner.resize(0)
    assert refused.value.property == "workers"
    case.runner.resize(2)
    assert case.heard.items == ["app.resized"]


def pause(runner: AppRunner, *, is_lost: bool = False) -> FakePartition:
    """Pauses the partition of a message that is exhausted."""
    job = FakeJob()
    job.assigned.is_lost = is_lost
    runner.own.failures.failed(cast(Job, job), ERROR, 0.0)
    runner.own.pause_exhausted(cast(Job, job), ERROR)
    return job.assigned


def test_the_partition_of_an_exhausted_message_is_paused_until_it_is_resumed(case: Case) -> None:
    partition = pause(case.runner)
    assert partition.said == ["pause"]
    assert any("is paused: no good" in reason for reason in case.runner.health().reasons)
    assert case.runner.resume("orders", 0)
    assert partition.said == ["pause", "resume"]
    assert not case.runner.resume("orders", 0)
    assert case.heard.items == ["partition.paused", "partition.resumed"]


def test_a_pause_that_a_rebalance_has_ended_is_not_resumed(case: Case) -> None:
    partition = pause(case.runner)
    partition.is_current = False
    assert not case.runner.resume("orders", 0)
    assert partition.said == ["pause"]


def test_a_lost_partition_is_not_paused(case: Case) -> None:
    pause(case.runner, is_lost=True)
    assert case.runner.own.paused == {}
    assert case.heard.items == ["partition.paused"]


def test_a_partition_that_is_lost_at_that_moment_is_resumed_without_an_error(case: Case) -> None:
    partition = pause(case.runner)
    partition.is_lost = True
    assert case.runner.resume("orders", 0)


def test_a_skipped_message_resumes_its_partition(case: Case) -> None:
    partition = pause(case.runner)
    assert case.runner.blocking("orders", 0) == [0]
    assert not case.runner.steer(None, lambda run: run.skip("orders", 0, 7))
    assert partition.said == ["pause"]
    assert case.runner.steer(None, lambda run: run.skip("orders", 0, 0))
    assert partition.said == ["pause", "clear_backoff", "resume"]
    assert case.runner.own.paused == {}
