"""The last hour of a process."""

from __future__ import annotations

from awoke.console.history import MINUTE, SAMPLES, HistoryRing, advanced
from awoke.console.views import Sample


def filled(count: int) -> HistoryRing:
    """Returns a ring that got samples with the numbers from 0."""
    ring = HistoryRing()
    for number in range(count):
        ring.add(Sample(number, 1, 2, number, number))
    return ring


def test_the_last_samples_are_kept_the_oldest_first() -> None:
    found = filled(SAMPLES + 5).view()
    assert [each.at_ms for each in found.of_5_s] == list(range(5, SAMPLES + 5))


def test_twelve_samples_make_one_of_a_minute_with_their_sums_and_the_last_state() -> None:
    assert filled(MINUTE - 1).view().of_minutes == []
    assert filled(2 * MINUTE).view().of_minutes == [
        Sample(11, MINUTE, 2 * MINUTE, 11, 11),
        Sample(23, MINUTE, 2 * MINUTE, 23, 23),
    ]


def test_an_hour_of_minutes_is_kept() -> None:
    found = filled((SAMPLES + 3) * MINUTE).view().of_minutes
    assert (len(found), found[-1].at_ms) == (SAMPLES, (SAMPLES + 3) * MINUTE - 1)


def test_a_partition_that_is_new_or_was_sought_back_has_not_advanced() -> None:
    old, new, back = ("shop", "orders", 0), ("shop", "orders", 1), ("shop", "orders", 2)
    assert advanced({old: 5, back: 9}, {old: 8, new: 100, back: 3}) == {old: 3}
