"""Places of messages: which are complete, where reading begins, and the pages beside one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import awoke
from awoke.console.explorer.reading import check, neighbours, starts_of
from awoke.console.explorer.views import PartitionRange, Where

RANGES = [PartitionRange(partition=0, start=5, end=20), PartitionRange(partition=1, start=3, end=3)]


@pytest.mark.parametrize(
    "changes",
    [
        {"limit": 0},
        {"limit": 501},
        {"at": "offset", "offset": 5},
        {"at": "around", "partition": 0},
        {"at": "offset", "partition": 0, "offset": -1},
        {"at": "time"},
        {"at": "time", "time_ms": -1},
        {"at": "time", "time_ms": 1 << 60},
    ],
)
def test_a_place_that_is_not_complete_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(awoke.ConfigError):
        check(Where(topic="orders", **changes))


@pytest.mark.parametrize(
    ("changes", "starts"),
    [
        ({"at": "newest"}, {0: 5}),
        ({"at": "earliest"}, {0: 5}),
        ({"at": "offset", "partition": 0, "offset": 7}, {0: 7}),
        ({"at": "offset", "partition": 0, "offset": 1}, {0: 5}),
        ({"at": "offset", "partition": 0, "offset": 20}, {}),
        ({"at": "around", "partition": 0, "offset": 15, "limit": 10}, {0: 10}),
        ({"at": "time", "time_ms": 1_000}, {0: datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}),
    ],
)
def test_reading_begins_within_the_log(changes: dict[str, Any], starts: dict[int, Any]) -> None:
    where = Where(topic="orders", **changes)
    check(where)
    assert starts_of(where, RANGES) == starts


def test_a_page_has_the_pages_before_and_after_it() -> None:
    where = Where(topic="orders", partition=0, limit=5)
    earlier, later = neighbours(where, RANGES[0], [12, 11, 10])
    assert earlier == Where(topic="orders", partition=0, at="offset", offset=5, limit=5)
    assert later == Where(topic="orders", partition=0, at="offset", offset=13, limit=5)
    assert neighbours(where, RANGES[0], [5, 19]) == (None, None)
    assert neighbours(where, RANGES[0], []) == (None, None)
