"""Events of the group: their levels, and what they count."""

from __future__ import annotations

import logging

import msgspec
import pytest

from awoke.observe.events import CommitFailed, Event, JobOverdue, PartitionsAssigned, PartitionsLost, PartitionsRevoked
from awoke.observe.events.catalogue import CATALOGUE
from tests.support.events import example_of


@pytest.mark.parametrize(
    ("kind", "level", "change"),
    [
        (PartitionsAssigned, logging.INFO, "assigned"),
        (PartitionsRevoked, logging.INFO, "revoked"),
        (PartitionsLost, logging.WARNING, "lost"),
    ],
)
def test_a_rebalance_is_counted_by_its_change_and_for_debugging_if_it_changes_nothing(
    kind: type[Event], level: int, change: str
) -> None:
    assert example_of(kind).log_level == level
    nothing = example_of(kind, partitions=[])
    assert (nothing.log_level, nothing.label_values, nothing.increment) == (logging.DEBUG, (change,), 1)


OF_A_GROUP = [
    event
    for name, event in CATALOGUE.items()
    if name.startswith(("partitions.", "offsets.")) or name in ("commit.failed", "fetch.failed", "job.overdue")
]


@pytest.mark.parametrize("kind", OF_A_GROUP, ids=lambda each: str(each.name))
def test_an_event_of_the_engine_names_no_group_by_itself(kind: type[Event]) -> None:
    (group,) = (each for each in msgspec.structs.fields(kind) if each.name == "group")
    assert (group.type, group.default) == (str, "")


def test_each_partition_with_an_overdue_job_is_counted() -> None:
    event = JobOverdue(client="shop", partitions=[("orders", 0), ("orders", 3)])
    assert (event.increment, event.label_values) == (2, ("revoked",))


@pytest.mark.parametrize(("will_retry", "level"), [(True, logging.INFO), (False, logging.WARNING)])
def test_a_commit_that_is_tried_again_is_no_warning(will_retry: bool, level: int) -> None:
    assert example_of(CommitFailed, will_retry=will_retry).log_level == level
