"""Columns and times as the commands show them."""

from __future__ import annotations

from awoke.cli.tables import aligned, time_of


def test_times_that_are_none_are_shown_as_they_are() -> None:
    assert time_of(1_760_000_000_000).startswith("2025-10-0")
    for ms in (10**30, -(10**30), 10**16):
        assert time_of(ms) == f"{ms} ms"


def test_wide_characters_are_aligned() -> None:
    assert aligned([("a", "x"), ("\u65e5\u672c", "y")], is_left=True) == ["a     x", "\u65e5\u672c  y"]
