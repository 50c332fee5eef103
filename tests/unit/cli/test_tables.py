"""Columns and times as the commands show them."""

from __future__ import annotations

import pytest

from awoke.cli.tables import aligned, listed, time_of


def test_times_that_are_none_are_shown_as_they_are() -> None:
    assert time_of(1_760_000_000_000).startswith("2025-10-0")
    for ms in (10**30, -(10**30), 10**16):
        assert time_of(ms) == f"{ms} ms"


def test_wide_characters_are_aligned() -> None:
    assert aligned([("a", "x"), ("\u65e5\u672c", "y")]) == ["a     x", "\u65e5\u672c  y"]


def test_numbers_stand_to_the_right() -> None:
    rows = [("at", "lag", "id"), ("0:1", "1,200", "7"), ("0:12", "-", "x")]
    assert aligned(rows) == ["at      lag  id", "0:1   1,200  7", "0:12      -  x"]


@pytest.mark.parametrize(
    ("words", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (list("abc"), "a, b and c")]
)
def test_words_are_listed_as_people_do(words: list[str], said: str) -> None:
    assert listed(words) == said
