"""Where reading begins, as users say it and as the engine takes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import awoke
from awoke.declare.starts import start_of


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (None, None),
        ("earliest", ("earliest", 0)),
        ("latest", ("latest", 0)),
        (0, ("offset", 0)),
        (7, ("offset", 7)),
        (-3, ("last", 3)),
        (datetime(2026, 1, 31, tzinfo=UTC), ("time", 1_769_817_600_000)),
        (datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=1))), ("time", 1_769_817_600_000)),
        (datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), ("time", 1_500)),
    ],
)
def test_a_start_is_an_end_an_offset_the_last_messages_or_a_time(start: Any, expected: Any) -> None:
    assert start_of(start) == expected


@pytest.mark.parametrize("start", ["begin", "", 1.5, True, datetime(2026, 1, 31), b"latest", {}])
def test_any_other_start_is_refused(start: Any) -> None:
    with pytest.raises(
        awoke.ConfigError, match="'earliest', 'latest', a number or a datetime with a time zone"
    ) as wrong:
        start_of(start)
    assert wrong.value.property == "start"


def test_a_route_refuses_a_start_where_it_is_made() -> None:
    wrong: Any = "begin"
    with pytest.raises(awoke.ConfigError, match="not 'begin'"):
        awoke.App("app").on("orders", start=wrong)(print)
