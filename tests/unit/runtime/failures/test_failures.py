"""The messages that fail and are tried again: what is known of them, and until when; and those to be skipped."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

import awoke
from awoke._native import Job
from awoke.observe.events import PartitionRewound
from awoke.runtime.failures.failures import Failures, KeptFailure
from tests.unit.runtime.fakes import FakeJob, FakePartition

ERROR = ValueError("no good")
LONG_S = 600.0


class Case:
    """Failures, and the job whose first message fails."""

    def __init__(self, messages: int = 3, **options: Any) -> None:
        self.failures, self.job = Failures(), FakeJob(messages, **options)

    def fail(self, error: BaseException = ERROR) -> None:
        self.failures.failed(cast("Job", self.job), error, 30.0)

    def go_on(self, offset: int) -> None:
        """Completes the messages up to this offset: the next one is the job's first."""
        self.job.remaining = self.job.offsets[-1] - offset

    def take(self) -> awoke.RetriesExhausted | None:
        left = self.failures.take(cast("Job", self.job))
        return None if left is None else left[1]

    def entry(self) -> KeptFailure:
        ((place, entry),) = self.failures.all()
        assert place == ("orders", 0)
        return entry


def test_a_message_that_fails_is_known_with_its_key_and_last_error() -> None:
    case = Case(attempt=4)
    case.fail()
    entry = case.entry()
    assert (entry.offset, entry.key, entry.attempts) == (0, b"key", 4)
    assert "ValueError" in entry.error
    assert "no good" in entry.error
    assert isinstance(entry.error, str), "an exception would keep the message"


def test_a_job_that_is_done_meanwhile_has_no_failing_message() -> None:
    case = Case()
    case.job.remaining = 0
    case.fail()
    assert case.failures.all() == []


def test_a_message_that_fails_again_has_failed_since_the_first_time() -> None:
    case = Case()
    case.fail()
    first = case.entry()
    case.job.attempt = 2
    case.fail(TypeError("worse"))
    again = case.entry()
    assert (again.since_s, again.attempts) == (first.since_s, 2)
    assert "worse" in again.error
    assert again.next_s > first.next_s


def test_a_message_that_is_processed_fails_no_longer() -> None:
    case = Case()
    case.fail()
    case.failures.passed(cast("Job", case.job))
    assert case.failures.all() == []


@pytest.mark.parametrize(("is_of_lanes", "left"), [(False, [1]), (True, [0, 1])])
def test_only_with_lanes_several_messages_of_a_partition_fail_at_once(is_of_lanes: bool, left: list[int]) -> None:
    case = Case(is_of_lanes=is_of_lanes)
    case.fail()
    case.go_on(0)
    case.fail()
    assert case.failures.blocking("orders", 0) == left


def test_with_lanes_a_message_passes_alone() -> None:
    case = Case(is_of_lanes=True)
    case.fail()
    case.go_on(0)
    case.fail()
    case.failures.passed(cast("Job", case.job), 0)
    assert case.failures.blocking("orders", 0) == [1]


def revoke(partition: FakePartition) -> None:
    partition.is_current = False


def lose(partition: FakePartition) -> None:
    partition.is_lost = True


def store_beyond(partition: FakePartition) -> None:
    partition.stored = 1


@pytest.mark.parametrize("change", [revoke, lose, store_beyond])
def test_a_message_that_is_done_or_of_another_owner_is_forgotten(change: Any) -> None:
    case = Case()
    case.fail()
    change(case.job.assigned)
    assert case.failures.all() == []
    assert not case.failures.ask("orders", 0, 0)


def test_a_message_at_the_stored_offset_is_not_done() -> None:
    case = Case()
    case.fail()
    case.job.assigned.stored = 0
    assert case.failures.blocking("orders", 0) == [0]


def test_a_later_assignment_knows_nothing_of_an_earlier_one() -> None:
    case = Case(is_of_lanes=True)
    case.fail()
    assert case.failures.ask("orders", 0, 0)
    later = FakeJob(is_of_lanes=True)
    later.generation = 2
    assert case.failures.take(cast("Job", later)) is None
    case.failures.failed(cast("Job", later), ERROR, 30.0)
    assert case.entry().generation == 2


def test_a_job_of_a_lost_partition_notes_no_failure() -> None:
    case = Case()

    def lost() -> None:
        raise awoke.FencedError("taken away", "orders", 0)

    vars(case.job)["assignment"] = lost
    case.fail()
    assert case.failures.all() == []


def test_a_message_that_is_to_be_skipped_is_tried_at_once_and_then_taken() -> None:
    case = Case()
    case.fail()
    assert case.take() is None
    assert case.failures.ask("orders", 0, 0)
    assert case.job.assigned.said == ["clear_backoff"]
    reason = case.take()
    assert reason is not None
    assert "skipped by an operator" in str(reason)
    assert "no good" in str(reason)


def test_only_the_message_that_was_named_is_skipped() -> None:
    case = Case(is_of_lanes=True)
    case.fail()
    assert not case.failures.ask("orders", 0, 1)
    assert not case.failures.ask("orders", 1, 0)
    assert case.failures.ask("orders", 0, 0)
    case.go_on(0)
    assert case.take() is None


def test_a_message_that_is_to_be_skipped_and_was_processed_is_not_skipped_later() -> None:
    case = Case()
    case.fail()
    assert case.failures.ask("orders", 0, 0)
    case.failures.passed(cast("Job", case.job))
    case.fail()
    assert case.take() is None


def test_the_back_off_that_begins_after_the_operator_asked_ends_too() -> None:
    case = Case()
    case.fail()
    case.failures.retried("orders", 0)
    assert case.job.assigned.said == [], "no one has asked for it"
    case.failures.ask("orders", 0, 0)
    case.failures.retried("orders", 0)
    assert case.job.assigned.said == ["clear_backoff"] * 2


@pytest.mark.parametrize("lost", [False, True])
def test_a_partition_that_is_lost_while_an_operator_asks_is_no_error(lost: bool) -> None:
    case = Case()
    case.fail()

    def clear_backoff() -> None:
        raise awoke.FencedError("taken away", "orders", 0)

    vars(case.job.assigned)["clear_backoff"] = clear_backoff
    assert case.failures.ask("orders", 0, 0)
    case.job.assigned.is_lost = lost
    case.failures.retried("orders", 0)


def test_failures_that_last_are_told_by_partition_the_oldest_first() -> None:
    case = Case(is_of_lanes=True)
    case.go_on(0)
    case.fail()
    case.job.remaining = 3
    case.fail()
    assert case.failures.blocked(LONG_S) == {}
    (found,) = case.failures.blocked(0.0).values()
    assert [each.offset for each in found] == [1, 0]


def test_the_messages_of_a_log_that_went_back_are_others() -> None:
    case = Case()
    case.fail()
    other = FakeJob()
    other.partition = 1
    case.failures.failed(cast("Job", other), ERROR, 30.0)
    case.failures.ask("orders", 0, 0)
    rewound = PartitionRewound(
        client="shop", topic="orders", partition=0, from_offset=7, to_offset=1, reason="created again"
    )
    case.failures.on_rewound(rewound)
    assert [place for place, _ in case.failures.all()] == [("orders", 1)]
    assert case.take() is None


@pytest.mark.parametrize(
    ("key", "shown"), [(None, "no key"), (b"k" * 100, f"key {b'k' * 40!r})"), (b"\x00", "key b'\\x00'")]
)
def test_a_failure_is_told_in_a_sentence(key: bytes | None, shown: str) -> None:
    case = Case(attempt=2)
    case.fail()
    entry = case.entry()
    assert shown in str(entry._replace(key=key))
    assert re.search(r"failed 2 times in \d+ ms", str(entry))
    assert "is tried again in 30 s" in str(entry)
    assert "is tried now" in str(entry._replace(next_s=entry.since_s - 1))
