"""What a replay remembers, which times are understood, and what is shown of hostile text."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

import awoke
from awoke.cli.letters import moment_ms
from awoke.cli.replays import decode, encode
from awoke.cli.tables import aligned, time_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (set(), (3, "")),
        ({3}, (5, "")),
        ({3, 5, 9}, (10, "")),
        ({5, 9}, (3, "5-9")),
        ({9, 12}, (3, "9,12")),
        ({3, 9, 10, 12}, (5, "9-12")),
        ({3, 5, 9, 10, 12}, (13, "")),
    ],
)
def test_what_was_sent_is_an_offset_and_ranges(sent: set[int], found: tuple[int, str]) -> None:
    offsets = [3, 5, 9, 10, 12]
    offset, ranges = encode(offsets, sent) or (0, "")
    if sent == {9, 12}:
        assert (offset, ranges) == found
    assert decode(offsets, offset, ranges) == sent


def test_every_set_is_remembered_as_it_is() -> None:
    chance = random.Random(1)
    for _ in range(500):
        offsets = sorted(chance.sample(range(100), chance.randint(1, 40)))
        sent = set(chance.sample(offsets, chance.randint(0, len(offsets))))
        remembered = encode(offsets, sent)
        assert remembered is not None
        assert decode(offsets, *remembered) == sent
    assert encode([], set()) is None


def test_metadata_of_another_program_is_no_memory() -> None:
    assert decode([1, 2, 3], 2, "hello, 5-x, -,,") == {1}


@pytest.mark.parametrize(
    ("word", "moment"),
    [
        ("30m", datetime(2026, 1, 31, 11, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 1, 24, 12, tzinfo=UTC)),
        ("2026-01-31T11:00:00+00:00", datetime(2026, 1, 31, 11, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_time_or_how_long_ago(word: str, moment: datetime) -> None:
    assert moment_ms(word, NOW) == moment.timestamp() * 1_000


@pytest.mark.parametrize("word", ["", "soon", "-5m", "5w", "999999999d", "2026-13-01"])
def test_what_is_no_moment_is_refused(word: str) -> None:
    with pytest.raises(awoke.ConfigError, match="--since takes a time"):
        moment_ms(word, NOW)


def test_times_that_are_none_are_shown_as_they_are() -> None:
    assert time_of(1_760_000_000_000).startswith("2025-10-0")
    for ms in (10**30, -(10**30), 10**16):
        assert time_of(ms) == f"{ms} ms"


def test_wide_characters_are_aligned() -> None:
    assert aligned([("a", "x"), ("\u65e5\u672c", "y")], is_left=True) == ["a     x", "\u65e5\u672c  y"]
