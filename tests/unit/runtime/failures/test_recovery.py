"""A message that fails is tried again in its place, until its route gives it up."""

from __future__ import annotations

from typing import Any, cast, get_args

import pytest

import awoke
from awoke._native import Job
from awoke.declare.routing import Route
from awoke.payloads.registry import RegistryUnavailable
from awoke.payloads.registry.schemas import SchemaNeeded
from awoke.runtime.failures.recovery import ACTIONS, Kind, Policy, Recovery, narrow
from awoke.runtime.failures.undecodable import Undecodable
from awoke.waiting.drive import drive
from tests.unit.runtime.fakes import FakeContext, FakeHandle, FakeJob, FakeProducer

ERROR = ValueError("no good")
TOO_LARGE = awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE")


def handle(message: awoke.Message[bytes]) -> None: ...


class Case:
    """The recovery of one route, and the job that fails."""

    def __init__(self, context: FakeContext, attempt: int = 1, **options: Any) -> None:
        self.context, self.job, self.skipped = context, FakeJob(attempt=attempt), list[int]()
        route = Route("orders", handle, cast("Any", options))
        on_skip: Any = lambda job: self.skipped.append(job.first_offset)  # noqa: E731
        self.recovery = Recovery(route, cast("Any", context), Undecodable(), on_skip)

    def fail(self, error: BaseException = ERROR) -> list[Any]:
        drive(self.recovery.failed(cast("Job", self.job), error))
        return self.job.said


def test_a_message_is_tried_again_by_itself() -> None:
    case = Case(FakeContext())
    assert case.fail() == ["retry"]
    assert case.context.heard == ["job.failed"]
    assert case.context.failures.blocking("orders", 0) == [0]


def test_an_exhausted_message_is_acknowledged_as_a_dead_letter_before_it_is_passed_by() -> None:
    case = Case(FakeContext(), dead_letter="dead", retry=awoke.Retry(attempts=1))
    assert case.fail() == [("done", 0), "release_rest"]
    assert case.context.alone.sent == [("dead", b"value")]
    assert case.context.heard == ["job.failed", "message.dead_lettered"]
    assert case.skipped == [0]


def test_a_dead_letter_that_is_too_large_goes_without_its_value_and_then_not_at_all() -> None:
    once = Case(
        FakeContext(alone=FakeProducer(FakeHandle(TOO_LARGE))), dead_letter="dead", retry=awoke.Retry(attempts=1)
    )
    assert once.fail() == [("done", 0), "release_rest"]
    assert once.context.alone.sent == [("dead", b"value"), ("dead", b"")]
    assert once.context.heard[1:] == ["dead_letter.shortened", "message.dead_lettered"]

    producer = FakeProducer(FakeHandle(TOO_LARGE), FakeHandle(TOO_LARGE))
    twice = Case(FakeContext(alone=producer), dead_letter="dead", retry=awoke.Retry(attempts=1))
    assert twice.fail() == [("done", 0), "release_rest"]
    assert twice.context.heard[1:] == ["dead_letter.shortened", "dead_letter.failed", "message.skipped"]


@pytest.mark.parametrize(
    "error", [awoke.ClosedError("the process stops"), awoke.FencedError("taken away", "orders", 0)]
)
def test_a_dead_letter_of_a_partition_that_has_gone_is_left_to_the_next_owner(error: BaseException) -> None:
    case = Case(FakeContext(alone=FakeProducer(FakeHandle(error))), dead_letter="dead", retry=awoke.Retry(attempts=1))
    assert case.fail() == ["retry"]
    assert case.context.heard == ["job.failed"]


def test_a_dead_letter_that_could_not_be_sent_is_tried_again() -> None:
    refused = awoke.DeliveryFailed("no leader", 5, "LEADER_NOT_AVAILABLE", is_retriable=True)
    case = Case(FakeContext(alone=FakeProducer(FakeHandle(refused))), dead_letter="dead", retry=awoke.Retry(attempts=1))
    assert case.fail() == ["retry"]
    assert case.context.heard == ["job.failed", "dead_letter.failed"]


@pytest.mark.parametrize(
    ("on_exhausted", "said", "paused", "ended"),
    [("skip", [("done", 0), "release_rest"], 0, 0), ("pause", ["retry"], 1, 0), ("stop", ["retry"], 0, 1)],
)
def test_without_a_dead_letter_topic_the_route_says_what_happens(
    on_exhausted: Any, said: list[Any], paused: int, ended: int
) -> None:
    case = Case(FakeContext(), attempt=2, retry=awoke.Retry(attempts=2, on_exhausted=on_exhausted))
    assert case.fail() == said
    assert (len(case.context.paused), len(case.context.ended)) == (paused, ended)


def test_a_job_whose_messages_are_all_marked_has_nothing_to_try_again() -> None:
    case = Case(FakeContext())
    case.job.remaining = 0
    assert case.fail() == ["release_rest"]


@pytest.mark.parametrize(
    ("attempt", "cut"), [(1, []), (2, [("truncate", 4)]), (3, [("truncate", 2)]), (9, [("truncate", 0)])]
)
def test_an_exactly_once_job_is_halved_at_each_try(attempt: int, cut: list[Any]) -> None:
    job = FakeJob(8, attempt=attempt)
    narrow(cast("Job", job))
    assert job.said == cut


def test_a_schema_that_another_part_of_the_app_has_loaded_ends_a_long_wait_for_the_registry() -> None:
    case, away, waits = Case(FakeContext()), RegistryUnavailable("away"), list[float]()
    case.context.events.subscribe("registry.waited", lambda event: waits.append(cast("Any", event).retry_in_s))
    now_s = 100.0

    def fail() -> float:
        nonlocal now_s
        case.fail(away)
        now_s += waits[-1] + 0.001  # The event has rounded it.
        return waits[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(case.recovery._registry_away, "_clock", lambda: now_s)
        first, *_, last = [fail() for _ in range(6)]
        assert last > 5 * first
        case.context.loads += 1
        assert fail() < 2 * first


def test_there_is_an_action_for_each_kind_of_failure_and_each_policy() -> None:
    kinds: list[Any] = [(kind, None) for kind in get_args(Kind) if kind != "exhausted"]
    assert set(ACTIONS) == {*kinds, *(("exhausted", policy) for policy in get_args(Policy))}


def needed(load: Any) -> SchemaNeeded:
    return SchemaNeeded("the schema with the id 7", load)


def test_a_schema_that_is_missing_is_loaded_and_the_try_does_not_count() -> None:
    loaded: list[None] = []
    case = Case(FakeContext(), retry=awoke.Retry(attempts=1))
    assert case.fail(needed(lambda: loaded.append(None))) == ["retry"]
    assert (len(loaded), case.context.heard) == (1, [])


def test_a_registry_that_is_away_is_no_failure_of_the_message() -> None:
    def load() -> None:
        raise RegistryUnavailable("away")

    case = Case(FakeContext(), retry=awoke.Retry(attempts=1))
    assert case.fail(needed(load)) == ["retry"]
    assert case.context.heard == ["registry.waited"]


def test_a_schema_that_can_not_be_loaded_for_another_reason_fails_the_message() -> None:
    def load() -> None:
        raise OSError("no certificate")

    case = Case(FakeContext())
    assert case.fail(needed(load)) == ["retry"]
    assert case.context.heard == ["job.failed"]


@pytest.mark.parametrize(
    ("how", "sent", "heard"), [("skip", 0, "message.skipped"), ("dead_letter", 1, "message.dead_lettered")]
)
def test_an_operator_leaves_a_message_without_another_try(how: Any, sent: int, heard: str) -> None:
    case = Case(FakeContext(), dead_letter="dead")
    drive(case.recovery.leave(cast("Job", case.job), how, ERROR))
    assert case.job.said == [("done", 0), "release_rest"]
    assert (len(case.context.alone.sent), case.context.heard) == (sent, [heard])


def test_a_dead_letter_that_would_be_refused_again_pauses_the_partition() -> None:
    refused = awoke.DeliveryFailed("refused", 87, "INVALID_RECORD")
    case = Case(FakeContext(alone=FakeProducer(FakeHandle(refused))), dead_letter="dead", retry=awoke.Retry(attempts=1))
    assert case.fail() == ["retry"]
    assert (case.context.heard[1:], len(case.context.paused)) == (["dead_letter.failed"], 1)
