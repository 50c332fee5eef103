"""The recorder of an app under test."""

from __future__ import annotations

import time
from typing import Any

import pytest

import awoke
from awoke.observe.events import ClientStatistics, HookFailed, JobFailed, MessageDeadLettered
from awoke.testing.recorder import Processed, RecordedChanges, RunRecorder

ERROR = ValueError("no card")


def charge(message: awoke.Message[bytes]) -> None: ...


def check(message: awoke.Message[bytes]) -> None: ...


def test_events_become_data_and_changes() -> None:
    changes, app = RecordedChanges(), awoke.App("shop")
    found = RunRecorder(app, changes)
    found.begin()
    place: dict[str, Any] = {"handler": "charge", "topic": "orders", "partition": 0}
    app.events.emit(JobFailed(**place, offset=3, attempt=1, retry_in_s=0.5, error=ERROR))
    app.events.emit(MessageDeadLettered(**place, offset=3, error=ERROR))
    app.events.emit(HookFailed(**place, hook="assigned", error=ERROR))
    found.end()
    app.events.emit(HookFailed(**place, hook="revoked", error=ERROR))
    assert [(each.event, each.offset) for each in found.failures] == [("job.failed", 3), ("hook.failed", None)]
    assert [(each.offset, each.after_s) for each in found.retries] == [(3, 0.5)]
    assert [each.offset for each in found.dead_letters] == [3]
    assert changes.count == 3


def test_statistics_of_a_client_are_no_change() -> None:
    changes, app = RecordedChanges(), awoke.App("shop")
    found = RunRecorder(app, changes)
    found.begin()
    app.events.emit(ClientStatistics(client="shop", json="{}"))
    found.end()
    assert changes.count == 0


@pytest.mark.parametrize(
    ("concurrency", "left"),
    [(awoke.by_partition(), {(0, 2): 1, (1, 3): 1}), (awoke.by_key(4), {(0, 2): 1, (0, 4): 0, (1, 3): 1})],
)
def test_a_failed_message_has_to_come_again_and_those_of_other_lanes_may(
    concurrency: awoke.Concurrency, left: dict[tuple[int, int], int]
) -> None:
    app = awoke.App("shop")
    app.on("orders", concurrency=concurrency)(charge)
    app.on("orders", group="audit")(check)
    found = RunRecorder(app, RecordedChanges())
    mine, other = (group.routes["orders"].number for group in app.groups.values())
    places = [(0, 2), (0, 3), (0, 4), (1, 3)]
    found.processed.update(Processed(number, "orders", *place) for number in (mine, other) for place in places)
    found.begin()
    failed = JobFailed(handler="charge", topic="orders", partition=0, offset=3, attempt=1, retry_in_s=None, error=ERROR)
    app.events.emit(failed)
    found.end()
    assert {each[2:]: count for each, count in found.processed.items() if each.route_number == mine} == left
    assert [each[2:] for each in found.processed if each.route_number == other] == places, "of another group"


def test_a_wait_for_a_change_ends_with_it_or_at_its_deadline() -> None:
    changes = RecordedChanges()
    assert not changes.wait(0, time.monotonic())
    changes.note()
    assert changes.wait(0, time.monotonic())
