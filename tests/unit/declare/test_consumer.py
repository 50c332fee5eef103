"""The base of consumer classes: what it asks of its assignment, its job and its group member, and when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke.declare.consumer import Hold, current_job, give, hold_of
from awoke.produce.transaction import ConsumerTransaction


class Told:
    """Stands for the engine's objects: notes each call, and returns what a test has set."""

    def __init__(self, **results: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._results = results

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            return self._results.get(name)

        return called


class Counting(awoke.Consumer):
    """A consumer of user code."""

    def consume(self, batch: awoke.Batch[bytes]) -> None: ...


def assigned(**results: Any) -> tuple[Any, Told]:
    """Returns a consumer that is assigned, and its assignment."""
    consumer: Any = Counting()
    assignment: Any = Told(**results)
    give(consumer, Hold(assignment=assignment))
    return consumer, assignment


@pytest.fixture
def job() -> Iterator[Told]:
    """The job whose `consume` runs here."""
    job: Any = Told()
    token = current_job.set(job)
    yield job
    current_job.reset(token)


MESSAGE: Any = SimpleNamespace(offset=7)


@pytest.mark.parametrize(
    "use",
    [
        lambda consumer: consumer.mark(MESSAGE),
        lambda consumer: consumer.commit(),
        lambda consumer: consumer.committed(),
        lambda consumer: consumer.pause(),
        lambda consumer: consumer.resume(),
        lambda consumer: consumer.seek(3),
        lambda consumer: consumer.stopping,
        lambda consumer: consumer.background(print),
    ],
)
def test_a_consumer_that_is_not_assigned_says_so(use: Callable[[awoke.Consumer], object]) -> None:
    with pytest.raises(awoke.ClosedError, match="needs a consumer that is assigned"):
        use(Counting())


def test_a_class_without_consume_names_itself() -> None:
    class Empty(awoke.Consumer):
        """Nothing of its own."""

    batch: Any = None
    with pytest.raises(NotImplementedError, match=r"Empty needs a method consume\(self, batch\)"):
        Empty().consume(batch)


def test_a_mark_in_a_job_is_told_to_the_job(job: Told) -> None:
    consumer, assignment = assigned()
    consumer.mark(MESSAGE)
    assert (job.calls, assignment.calls) == ([("done", 7)], [])


def test_metadata_of_a_mark_is_kept_with_the_next_offset(job: Told) -> None:
    consumer, assignment = assigned()
    consumer.mark(MESSAGE, "checked")
    assert (job.calls, assignment.calls) == ([("done", 7)], [("annotate", 8, "checked")])


def test_a_mark_outside_a_job_moves_the_offset_of_the_partition() -> None:
    consumer, assignment = assigned()
    consumer.mark(MESSAGE)
    assert assignment.calls == [("annotate", 8, None)]


def test_a_mark_outside_a_job_is_refused_where_several_run_at_once() -> None:
    consumer, assignment = assigned()
    hold_of(consumer).has_lanes = True
    with pytest.raises(awoke.ClosedError, match="belongs into consume"):
        consumer.mark(MESSAGE)
    assert assignment.calls == []


def test_a_mark_that_waits_marks_before_it_commits(job: Told) -> None:
    consumer, _ = assigned()
    commit: Any = Told()
    member: Any = Told(commit=commit)
    hold_of(consumer).member = member
    consumer.mark_sync(MESSAGE, timeout_s=5.0)
    assert (job.calls, commit.calls) == ([("done", 7)], [("wait", 5.0)])


def test_an_exactly_once_route_commits_in_transactions_only() -> None:
    consumer, _ = assigned()
    member: Any = Told()
    give(consumer, Hold(member, new_entry=Told))
    with pytest.raises(awoke.ConfigError, match=r"with self\.transaction\(\)") as refused:
        consumer.commit()
    assert refused.value.property == "exactly_once"
    assert member.calls == []


def test_a_transaction_needs_an_exactly_once_route_and_a_job() -> None:
    consumer, _ = assigned()
    with pytest.raises(awoke.ConfigError, match="exactly_once=True"):
        consumer.transaction()
    hold_of(consumer).new_entry = Told
    with pytest.raises(awoke.ClosedError, match="belongs into consume"):
        consumer.transaction()


def test_a_transaction_of_a_job_submits_that_job(job: Told) -> None:
    consumer, _ = assigned()
    entry = Told(submit=Told())
    hold_of(consumer).new_entry = lambda: entry
    with consumer.transaction() as transaction:
        assert isinstance(transaction, ConsumerTransaction)
    assert entry.calls == [("submit", job, None)]


def test_the_committed_offset_comes_from_the_brokers() -> None:
    consumer, _ = assigned(committed=(7, "checked"))
    assert consumer.committed() == (7, "checked")


def test_a_pause_and_its_end_are_those_of_the_partition() -> None:
    consumer, assignment = assigned()
    consumer.pause()
    consumer.resume()
    assert assignment.calls == [("pause",), ("resume",)]


MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("to", "calls"),
    [
        (0, [("seek", 0)]),
        (42, [("seek", 42)]),
        ("earliest", [("seek", -2)]),
        ("latest", [("seek", -1)]),
        (MOMENT, [("offset_at", int(MOMENT.timestamp() * 1_000)), ("seek", 99)]),
    ],
)
def test_a_seek_goes_to_an_offset_an_end_or_a_time(to: Any, calls: list[tuple[Any, ...]]) -> None:
    consumer, assignment = assigned(offset_at=99)
    consumer.seek(to)
    assert assignment.calls == calls
    assert hold_of(consumer).has_sought


@pytest.mark.parametrize("to", [-1, "begin", MOMENT.replace(tzinfo=None), None, 1.5])
def test_a_seek_to_no_place_is_refused(to: Any) -> None:
    consumer, assignment = assigned()
    with pytest.raises(awoke.ConfigError, match="seek takes 'earliest', 'latest', an offset or a datetime with a time"):
        consumer.seek(to)
    assert (assignment.calls, hold_of(consumer).has_sought) == ([], False)


def test_a_background_function_belongs_to_the_scope_of_the_consumer() -> None:
    consumer, _ = assigned()
    scope: Any = Told()
    hold_of(consumer).scope = scope
    consumer.background(print, 1, 2, on_error="fail", name="printer")
    assert scope.calls == [("background", print, (1, 2), "fail", "printer")]
    hold_of(consumer).scope = SimpleNamespace(stopping="the token")
    assert consumer.stopping == "the token"
