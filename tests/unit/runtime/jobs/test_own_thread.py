"""The thread of an assignment: it runs every hook and batch of one consumer, and ends with it."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, cast

import pytest

import awoke
from awoke._native import HookJob, Job
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.jobs.own_thread import OwnThread, OwnThreadExecutor, executor_of
from tests.unit.runtime.fakes import FakeContext, FakeJob

WITHIN_S = 30.0


class Handler(awoke.Consumer):
    """Notes the threads that call it."""

    calls: list[tuple[str, str]]

    def assigned(self) -> None:
        self.note("assigned")

    def consume(self, batch: Any) -> None:
        self.note("consume")

    def revoked(self) -> None:
        self.note("revoked")

    def note(self, name: str) -> None:
        type(self).calls.append((name, threading.current_thread().name))


class Case:
    """The executor of a route with `own_thread`."""

    def __init__(self, target: type[Handler] = Handler) -> None:
        self.target = cast("type[Handler]", type("Handler", (target,), {"calls": []}))
        self.context = FakeContext()
        route = Route("orders", self.target, {}, KindOptions(own_thread=True))
        self.executor = executor_of(cast("Any", self.context), route)

    def job(self, partition: int = 0) -> FakeJob:
        job = FakeJob()
        vars(job)["partition"] = partition
        return job

    def hook(self, name: str, partition: int = 0) -> FakeJob:
        hook = FakeJob(name=name)
        vars(hook)["partition"] = partition
        return hook

    def run_job(self, job: FakeJob) -> FakeJob:
        self.executor.run_job(cast(Job, job))
        return job

    def run_hook(self, hook: FakeJob) -> FakeJob:
        self.executor.run_hook(cast(HookJob, hook))
        return hook

    def names(self) -> list[str]:
        return sorted(thread.name for thread in self.executor.threads())

    def close(self, within_s: float = WITHIN_S) -> list[threading.Thread]:
        return self.executor.close(time.monotonic() + within_s)


def test_only_routes_that_ask_for_it_have_threads_of_their_own() -> None:
    context = cast("Any", FakeContext())
    assert type(executor_of(context, Route("orders", Handler, {}))) is Executor
    assert type(executor_of(context, Route("orders", Handler, {}, KindOptions(own_thread=True)))) is OwnThreadExecutor


def test_hooks_and_batches_of_an_assignment_run_on_one_thread_that_ends_with_it() -> None:
    case = Case()
    case.run_hook(case.hook("assigned"))
    job = case.run_job(case.job())
    assert case.names() == ["orders[0]-own_thread"]
    hook = case.run_hook(case.hook("revoked"))
    assert case.target.calls == [(name, "orders[0]-own_thread") for name in ("assigned", "consume", "revoked")]
    assert job.said == ["complete"]
    assert hook.said == ["finish"]
    assert case.names() == []


def test_each_assignment_has_a_thread_of_its_own() -> None:
    case = Case()
    for partition in (0, 1):
        case.run_hook(case.hook("assigned", partition))
    assert case.names() == ["orders[0]-own_thread", "orders[1]-own_thread"]
    case.run_hook(case.hook("revoked", 0))
    assert case.names() == ["orders[1]-own_thread"]
    assert case.close() == []


def test_a_thread_is_in_the_ledger_under_its_consumer() -> None:
    case = Case()
    case.run_hook(case.hook("assigned"))
    (entry,) = [each for each in case.context.ledger.entries() if each.owner == "orders[0]"]
    assert (entry.name, entry.started_at) == ("orders[0]-own_thread", "own_thread=True of Handler")
    case.close()


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that gives the process no more threads."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_a_last_hook_without_a_consumer_needs_no_thread(no_threads: None) -> None:
    case = Case()
    assert case.run_hook(case.hook("revoked")).said == ["finish"]
    assert (case.names(), case.target.calls, case.context.ended) == ([], [], [])


class Failing(Handler):
    def assigned(self) -> None:
        raise OSError("not yet")


def test_a_thread_whose_assignment_ended_without_a_last_hook_ends_after_its_job() -> None:
    case = Case(Failing)
    case.run_hook(case.hook("assigned"))
    assert len(case.names()) == 1, "the hook is tried again there"
    job = case.job()
    job.assigned.is_current = False
    case.run_job(job)
    assert case.names() == []


def test_a_batch_that_fails_is_tried_again_on_the_same_thread() -> None:
    class Refusing(Handler):
        def consume(self, batch: Any) -> None:
            super().consume(batch)
            raise ValueError("no good")

    case = Case(Refusing)
    for _ in range(2):
        assert case.run_job(case.job()).said == ["retry"]
    assert {name for _, name in case.target.calls} == {"orders[0]-own_thread"}
    assert case.context.heard == ["job.failed", "job.failed"]
    case.close()


def test_a_system_that_starts_no_thread_ends_the_app_with_its_job_not_done(no_threads: None) -> None:
    case = Case()
    assert case.run_job(case.job()).said == ["retry"]
    assert case.run_hook(case.hook("assigned")).said == ["finish"]
    assert [str(error) for error in case.context.ended] == ["can't start new thread"] * 2
    assert case.names() == []


def test_closing_names_a_thread_that_still_runs_user_code() -> None:
    began, release = threading.Event(), threading.Event()

    class Hanging(Handler):
        def consume(self, batch: Any) -> None:
            began.set()
            release.wait(WITHIN_S)

    case = Case(Hanging)
    worker = threading.Thread(target=case.run_job, args=(case.job(),))
    worker.start()
    assert began.wait(WITHIN_S)
    (late,) = case.close(0.0)
    assert late.name == "orders[0]-own_thread"
    assert case.names() == []
    release.set()
    worker.join(WITHIN_S)
    late.join(WITHIN_S)
    assert not late.is_alive()


def test_calls_run_in_order_and_their_errors_reach_the_worker() -> None:
    own, called = OwnThread("mine"), list[str]()
    own.thread.start()

    def fail(work: Any) -> None:
        raise ValueError(f"an error of awoke's own at {work}")

    own.run(called.append, cast(Any, "first"))
    with pytest.raises(ValueError, match="at second"):
        own.run(fail, cast(Any, "second"))
    own.run(called.append, cast(Any, "third"))
    own.finish()
    own.thread.join(WITHIN_S)
    assert called == ["first", "third"]


def test_work_is_freed_before_the_thread_waits_for_more() -> None:
    own, job = OwnThread("mine"), FakeJob()
    freed = weakref.ref(job)
    own.thread.start()
    own.run(lambda work: None, cast(Job, job))
    del job
    assert freed() is None
    own.finish()
    own.thread.join(WITHIN_S)
