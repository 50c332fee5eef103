"""The message whose value does not decode is found among those of its job, and left to a job that begins with it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from awoke._native import HookJob, Job
from awoke.errors import DecodeError
from awoke.runtime.failures.undecodable import Undecodable
from tests.unit.runtime.fakes import FakeJob


def error_at(offset: int, topic: str = "orders", partition: int = 0) -> DecodeError:
    return DecodeError("no JSON", topic, partition, offset)


class Case:
    """The undecodable messages of one route, and a job with the offsets from 0 to 4."""

    def __init__(self, done: int = 0) -> None:
        self.undecodable, self.job = Undecodable(), FakeJob(5)
        self.job.remaining = 5 - done

    def place(self, error: BaseException) -> int | None:
        return self.undecodable.place(cast(Job, self.job), error)

    def truncated(self, job: FakeJob | None = None) -> list[Any]:
        """Returns how many messages a job keeps."""
        job = job or FakeJob(5)
        self.undecodable.truncate(cast(Job, job))
        return [count for _, count in job.said]


@pytest.mark.parametrize(("done", "offset", "place"), [(0, 0, 0), (0, 3, 3), (2, 3, 1), (2, 1, None), (5, 4, None)])
def test_the_place_of_a_message_counts_from_the_first_that_is_not_done(
    done: int, offset: int, place: int | None
) -> None:
    assert Case(done).place(error_at(offset)) == place


@pytest.mark.parametrize("error", [ValueError("no good"), error_at(3, "clicks"), error_at(3, partition=1)])
def test_another_error_has_no_place(error: Exception) -> None:
    case = Case()
    assert case.place(error) is None
    assert case.truncated() == []


def test_a_job_is_truncated_before_the_first_message_that_does_not_decode() -> None:
    case = Case()
    assert case.truncated() == []
    for offset in (4, 2):
        case.place(error_at(offset))
    assert case.truncated() == [2]


def test_a_job_that_begins_with_the_message_keeps_those_behind_it() -> None:
    case, job = Case(), FakeJob(5)
    case.place(error_at(2))
    job.remaining = 3
    assert case.truncated(job) == []


def test_a_message_that_has_failed_as_the_first_is_known_no_longer() -> None:
    case = Case()
    case.place(error_at(2))
    case.job.remaining = 3
    assert case.place(error_at(2)) == 0
    assert case.truncated() == []


def test_each_assignment_has_messages_of_its_own() -> None:
    case, other = Case(), FakeJob(5)
    other.generation = 2
    case.place(error_at(2))
    assert case.truncated(other) == []
    case.undecodable.forget(cast(HookJob, FakeJob(name="revoked")))
    assert case.truncated() == []
