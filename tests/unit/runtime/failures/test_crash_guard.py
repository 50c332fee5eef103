"""A job begins after the broker holds its crash record; a message that killed the process too often does not begin."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from tests.unit.runtime.fakes import FakeContext, FakeHandle, FakeJob, executor, handler, process


class FakePartition:
    """An assignment with committed metadata."""

    def __init__(self, committed: tuple[int, str | None] | BaseException | None) -> None:
        self._committed = committed
        self.annotated: list[tuple[int, str | None]] = []

    def committed(self) -> tuple[int, str | None] | None:
        if isinstance(self._committed, BaseException):
            raise self._committed
        return self._committed

    def annotate(self, offset: int, metadata: str | None) -> None:
        self.annotated.append((offset, metadata))

    def offsets(self) -> tuple[None, None]:
        return None, None


class FakeMember:
    """A group member whose commits end with the handles that it was given."""

    def __init__(self, *handles: FakeHandle) -> None:
        self._handles = list(handles)

    def commit(self) -> FakeHandle:
        return self._handles.pop(0) if self._handles else FakeHandle()


def case(committed: Any, *handles: FakeHandle) -> tuple[FakeContext, FakeJob, FakePartition]:
    job, partition = FakeJob(), FakePartition(committed)
    vars(job)["assignment"] = lambda: partition
    return FakeContext(member=FakeMember(*handles)), job, partition


def run(context: FakeContext, job: FakeJob) -> list[int]:
    """Returns the offsets that the handler saw."""
    seen: list[int] = []
    ran = executor(lambda message: seen.append(message.offset), context, dead_letter="dead")
    process(ran, job, on_loop=False)
    return seen


def test_the_attempt_is_recorded_before_user_code_runs() -> None:
    context, job, partition = case(None)
    assert run(context, job) == [0, 1, 2]
    assert partition.annotated == [(0, "awoke:began=1")]
    assert job.said == ["complete"]


def test_a_message_that_killed_its_process_too_often_is_a_dead_letter() -> None:
    context, job, _ = case((0, "awoke:began=3"))
    assert run(context, job) == []
    assert [topic for topic, _ in context.alone.sent] == ["dead"]
    assert context.heard == ["partition.careful", "message.dead_lettered"]
    assert job.said == [("truncate", 1), ("done", 0), "release_rest"]


@pytest.mark.parametrize(
    ("committed", "handle"),
    [(awoke.KafkaError("no answer"), FakeHandle()), (None, FakeHandle(awoke.KafkaError("refused")))],
)
def test_a_record_that_can_not_be_read_or_written_is_no_fault_of_the_message(
    committed: Any, handle: FakeHandle
) -> None:
    context, job, _ = case(committed, handle)
    assert run(context, job) == [0, 1, 2]
    assert context.heard == ["crash_record.failed"]


def test_a_job_of_a_partition_that_was_given_back_is_left_to_its_next_owner() -> None:
    context, job, _ = case(awoke.FencedError("taken away", "orders", 0))
    assert run(context, job) == []
    assert job.said == ["retry"]


def test_before_the_member_has_joined_nothing_is_recorded() -> None:
    context, job, partition = case(None)
    context.member = None
    assert run(context, job) == [0, 1, 2]
    assert partition.annotated == []


def test_an_event_loop_records_the_attempt_too() -> None:
    context, job, partition = case(None)
    process(executor(handler(lambda message: None, True), context, dead_letter="dead"), job, on_loop=True)
    assert partition.annotated == [(0, "awoke:began=1")]
    assert job.said == ["complete"]
