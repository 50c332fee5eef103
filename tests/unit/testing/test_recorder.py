"""The recorder of an app under test."""

from __future__ import annotations

import time
from typing import Any

import awoke
from awoke.observe.events import ClientStatistics, HookFailed, JobFailed, MessageDeadLettered
from awoke.testing.recorder import Processed, RecordedChanges, RunRecorder

ERROR = ValueError("no card")


def recorder() -> RunRecorder:
    return RunRecorder(awoke.App("shop"), RecordedChanges())


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


def test_a_failure_lets_its_message_and_later_ones_of_the_partition_come_again() -> None:
    found = recorder()
    found.processed.update(Processed(1, "orders", partition, offset) for partition in (0, 1) for offset in (2, 3))
    place: dict[str, Any] = {"handler": "charge", "topic": "orders", "partition": 0}
    found._on_failed(JobFailed(**place, offset=3, attempt=1, retry_in_s=None, error=ERROR))
    assert [each[2:] for each in found.processed] == [(0, 2), (1, 2), (1, 3)]


def test_a_wait_for_a_change_ends_with_it_or_at_its_deadline() -> None:
    changes = RecordedChanges()
    assert not changes.wait(0, time.monotonic())
    changes.note()
    assert changes.wait(0, time.monotonic())
