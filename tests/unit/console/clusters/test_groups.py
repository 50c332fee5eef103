"""A partition of a group: its lag, and the facts beside it."""

from __future__ import annotations

import pytest

import awoke
from awoke.console.clusters.groups import lag_of, offsets_of, place_of

Log = tuple[int | None, int | None, int | None]


@pytest.mark.parametrize(
    ("committed", "log", "lag", "stable_lag", "note"),
    [
        (5, (0, 9, 9), 4, 4, None),
        (5, (0, 7, 9), 4, 2, "an open transaction holds back 2 offsets"),
        (5, (8, 9, 9), 4, 4, "3 offsets were deleted before they were read"),
        (12, (0, 9, 9), 0, 0, "the committed offset is beyond the end: the log was cut, or the topic made again"),
        (None, (0, None, 9), None, None, None),
        (5, (None, None, None), None, None, "the partition can't be asked: it was deleted, or its leader is away"),
    ],
)
def test_a_partition_has_its_lag_and_what_an_operator_must_know(
    committed: int | None, log: Log, lag: int | None, stable_lag: int | None, note: str | None
) -> None:
    found = place_of(("orders", 0), committed, log)
    assert (found.lag, found.stable_lag, found.note) == (lag, stable_lag, note)


def test_the_lag_is_not_known_without_both_offsets() -> None:
    assert (lag_of(None, 1), lag_of(1, None), lag_of(3, 1), lag_of(1, 3)) == (None, None, 0, 2)


def test_topics_that_can_not_be_asked_are_left_out() -> None:
    def ask(topic: str, timeout_s: float) -> dict[int, int]:
        if topic == "gone":
            raise awoke.UnknownTopic("gone", 3, "UNKNOWN_TOPIC_OR_PART")
        return {0: 1, 1: 2}

    assert offsets_of(ask, ["gone", "orders"]) == {("orders", 0): 1, ("orders", 1): 2}
