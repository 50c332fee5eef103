"""All failures are counted by fingerprint; kinds and minutes are bounded."""

from __future__ import annotations

from typing import Any

from awoke.console.error_kinds import KINDS_MAX, MINUTE_MS, MINUTES, ErrorKinds
from awoke.console.views import MAJOR, ErrorRecord


def record(fingerprint: str, at_ms: int) -> ErrorRecord:
    texts: Any = dict.fromkeys(("node", "app", "event", "error_type", "error_text", "traceback"), "x")
    return ErrorRecord(major=MAJOR, minor=0, at_ms=at_ms, fingerprint=fingerprint, **texts)


def kinds_of(*records: tuple[str, int]) -> ErrorKinds:
    kinds = ErrorKinds()
    for each in records:
        kinds.add(record(*each))
    return kinds


def test_records_that_come_late_change_neither_the_last_nor_the_count() -> None:
    (view,) = kinds_of(("a", 5), ("a", 9), ("a", 2)).views()
    assert (view.count, view.first_ms, view.last.at_ms) == (3, 2, 9)


def test_the_kind_that_has_not_happened_for_the_longest_time_makes_place() -> None:
    kinds = kinds_of(*((str(each), each) for each in range(KINDS_MAX)), ("0", KINDS_MAX), ("new", KINDS_MAX + 1))
    found = [each.fingerprint for each in kinds.views()]
    assert len(found) == KINDS_MAX
    assert found[:2] == ["new", "0"]
    assert "1" not in found
    assert kinds.count == KINDS_MAX + 2


def test_failures_are_counted_by_minute_for_at_least_an_hour() -> None:
    kinds = kinds_of(*(("a", each * MINUTE_MS) for each in range(1_000)), ("a", 999 * MINUTE_MS))
    minutes = kinds.trends()["a"]
    assert MINUTES <= len(minutes) <= 2 * MINUTES
    assert [minutes[each] for each in range(1_000 - MINUTES, 1_000)] == [1] * (MINUTES - 1) + [2]


def test_nothing_is_left_when_the_topic_is_read_again() -> None:
    kinds = kinds_of(("a", 1))
    kinds.clear()
    assert (kinds.views(), kinds.trends(), kinds.count) == ([], {}, 0)
