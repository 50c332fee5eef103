"""Events of messages and jobs: what they count, and whose traceback the log has."""

from __future__ import annotations

import pytest

from awoke.observe.events import Event, HookFailed, JobFailed, JobSlow, MessagesExpired, MessagesFiltered
from tests.support.events import example_of


def test_a_failed_job_is_counted_where_it_is_tried_again() -> None:
    assert example_of(JobFailed, retry_in_s=0.0).increment == 1
    assert example_of(JobFailed, retry_in_s=None).increment == 0


@pytest.mark.parametrize(("attempt", "is_traced"), [(1, True), (2, False), (100, False)])
def test_the_traceback_of_a_failing_message_is_logged_at_its_first_attempt(attempt: int, is_traced: bool) -> None:
    assert example_of(JobFailed, attempt=attempt).is_traced is is_traced


@pytest.mark.parametrize("kind", [MessagesExpired, MessagesFiltered])
def test_every_message_that_is_left_out_is_counted(kind: type[Event]) -> None:
    event = example_of(kind, topic="orders", count=4)
    assert (event.increment, event.label_values) == (4, ("orders",))


def test_a_slow_job_is_counted_apart_from_one_that_delays_a_revocation() -> None:
    assert example_of(JobSlow).label_values == ("slow",)


def test_a_hook_is_counted_by_its_route_and_its_name() -> None:
    failed = example_of(HookFailed, topic="orders", handler="Orders", hook="assigned")
    assert failed.counter is not None
    assert dict(zip(failed.counter.labels, failed.label_values, strict=True)) == {
        "topic": "orders",
        "handler": "Orders",
        "hook": "assigned",
    }
