"""Jobs that run longer than they may: reported once, with their stack, and overdue until they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest

import awoke
from awoke._native import Job, Signal
from awoke.observe.events import JobSlow
from awoke.runtime.watch import overdue
from awoke.runtime.watch.overdue import OverdueWatch
from awoke.runtime.watch.stacks import dumped_stack, stack_of
from tests.support.waiting import Collected, ahang, stays_so
from tests.unit.runtime.fakes import FakeJob

LONG_S = 600.0


class Watched:
    """A watch that runs, and what it reports."""

    def __init__(self) -> None:
        events, self.reported = awoke.Events(), Collected[JobSlow]()
        events.subscribe(JobSlow, self.reported.add)
        self.watch = OverdueWatch(events)

    def begin(self, limit_s: float, name: str = "handle", task: asyncio.Task[None] | None = None) -> FakeJob:
        """Begins a job, which is known as long as it lives."""
        job = FakeJob()
        self.number = self.watch.begin(name, cast(Job, job), limit_s, task)
        return job


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    watched.watch.start()
    yield watched
    watched.watch.stop(LONG_S)


def test_a_job_beyond_its_limit_is_reported_with_its_place(watched: Watched) -> None:
    job = watched.begin(0.0)
    (event,) = watched.reported.wait_for(1)
    assert (event.handler, event.topic, event.partition, event.offset, event.limit_s) == ("handle", "orders", 0, 0, 0.0)
    assert event.ran_s >= 0.0
    assert job.said == []


def test_a_moment_that_is_before_a_deadline_by_a_rounding_is_not_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a virtual clock, which stands still at the moment that was due."""
    watched, now_s = Watched(), [29_994.375720733]
    monkeypatch.setattr(overdue, "monotonic_s", lambda: now_s[0])
    job = watched.begin(3_600.0)
    now_s[0] = 33_594.375720733
    assert now_s[0] < 29_994.375720733 + 3_600.0
    late = watched.watch._wait()
    assert late is not None
    assert [each.limit_s for each in late] == [3_600.0]
    assert job.said == []


def test_a_job_is_reported_once_and_overdue_until_it_ends(watched: Watched) -> None:
    job = watched.begin(0.0)
    number = watched.number
    watched.reported.wait_for(1)
    other = watched.begin(0.0, "other")
    watched.reported.wait_for(2)
    assert [each.handler for each in watched.reported.items] == ["handle", "other"]
    assert sorted(each.handler for each in watched.watch.overdue()) == ["handle", "other"]
    watched.watch.end(number)
    assert [each.handler for each in watched.watch.overdue()] == ["other"]
    assert job is not other


class Changed:
    """Tells when the watch waits."""

    def __init__(self) -> None:
        signal = Signal()
        self.set, self.clear, self.leave, self._wait = signal.set, signal.clear, signal.leave, signal.wait
        self.is_waited_for = threading.Event()

    def wait(self, timeout_s: float | None = None, **options: bool) -> bool:
        self.is_waited_for.set()
        return self._wait(timeout_s, **options)


def test_a_job_with_an_earlier_deadline_than_the_one_that_is_waited_for_is_reported_in_time() -> None:
    watched, changed = Watched(), Changed()
    watched.watch._changed = cast(Signal, changed)
    later = watched.begin(LONG_S, "later")
    watched.watch.start()
    assert changed.is_waited_for.wait(30)
    earlier = watched.begin(0.01, "earlier")
    assert [each.handler for each in watched.reported.wait_for(1)] == ["earlier"]
    watched.watch.stop(LONG_S)
    assert later is not earlier


def test_a_job_that_ends_in_time_is_not_reported(watched: Watched) -> None:
    job = watched.begin(0.05)
    watched.watch.end(watched.number)
    stays_so(lambda: watched.reported.items == [], "nothing is reported", for_s=0.1)
    assert watched.watch.overdue() == []
    assert job.said == []


def test_a_job_that_has_ended_may_be_ended_again(watched: Watched) -> None:
    watched.watch.end(1)
    assert watched.watch.overdue() == []


def test_the_stack_of_a_blocked_thread_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    watched, release, began = Watched(), threading.Event(), threading.Event()

    def blocked_here() -> None:
        job = watched.begin(0.0)
        began.set()
        release.wait(30)
        assert job

    thread = threading.Thread(target=blocked_here)
    thread.start()
    assert began.wait(30)
    watched.watch.start()
    watched.reported.wait_for(1)
    watched.watch.stop(LONG_S)  # By then it has written the log.
    release.set()
    thread.join()
    assert "handle has worked on orders[0] offset 0" in caplog.text
    assert "blocked_here" in caplog.text


def test_the_stack_of_a_task_is_that_of_its_coroutine(caplog: pytest.LogCaptureFixture) -> None:
    async def awaits_here() -> None:
        await ahang()

    async def run() -> None:
        watched = Watched()
        task = asyncio.create_task(awaits_here())
        await asyncio.sleep(0)
        job = watched.begin(0.0, task=task)
        watched.watch.start()
        await asyncio.to_thread(watched.reported.wait_for, 1)
        await asyncio.to_thread(watched.watch.stop, LONG_S)
        task.cancel()
        assert job

    asyncio.run(run())
    assert "awaits_here" in caplog.text


def test_without_limits_no_thread_starts() -> None:
    watch = OverdueWatch(awoke.Events(), lambda: False)
    watch.start()
    assert "awoke-overdue" not in {each.name for each in threading.enumerate()}
    watch.stop(LONG_S)


def test_a_job_beyond_its_limit_is_a_reason_with_both_times(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    job = watched.begin(0.0)
    watched.reported.wait_for(1)
    (running,) = watched.watch.overdue()
    monkeypatch.setattr(overdue, "monotonic_s", lambda: running.began_s + 90.0)
    assert list(watched.watch.reasons()) == ["handle works on orders[0] offset 0 for 1.5 min, allowed are 0 ms"]
    assert job.said == []


def test_a_thread_that_has_ended_has_no_stack() -> None:
    thread = threading.Thread(target=lambda: None)
    assert stack_of(thread) == "(ended meanwhile)"
    thread.start()
    thread.join()
    assert stack_of(thread) == "(ended meanwhile)"


def test_closing_ends_the_thread_while_jobs_run() -> None:
    watched = Watched()
    watched.watch.start()
    job = watched.begin(LONG_S)
    watched.watch.stop(LONG_S)
    assert watched.watch.overdue() == []
    assert job.said == []


@pytest.mark.parametrize("stack", [stack_of, dumped_stack])
def test_a_stack_names_the_functions_of_its_thread_only(stack: Callable[[threading.Thread], str]) -> None:
    begun, end = threading.Event(), threading.Event()

    def long_handler() -> None:
        begun.set()
        end.wait(30)

    thread = threading.Thread(target=long_handler)
    thread.start()
    assert begun.wait(30)
    text = stack(thread)
    end.set()
    thread.join()
    assert "long_handler" in text
    assert "test_a_stack_names" not in text
    assert stack(thread) == "(ended meanwhile)"
