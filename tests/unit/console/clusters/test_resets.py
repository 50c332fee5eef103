"""Targets of resets as a form names them, and what a change would read again or skip."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import awoke
from awoke.admin import OffsetChange, Shift
from awoke.console.clusters.resets import change_of, digest_of, target_of, text_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "target"),
    [
        ("earliest", "", "earliest"),
        ("latest", "ignored", "latest"),
        ("offset", "42", 42),
        ("shift", "-5", Shift(-5)),
        ("time", "2026-01-31T12:00", NOON),
        ("time", "2026-01-31T13:00+01:00", NOON),
    ],
)
def test_a_form_names_a_target(kind: str, value: str, target: Any) -> None:
    assert target_of(kind, value) == target


@pytest.mark.parametrize(("kind", "value"), [("sooner", ""), ("offset", "x"), ("shift", ""), ("time", "soon")])
def test_what_is_no_target_is_refused(kind: str, value: str) -> None:
    with pytest.raises(awoke.ConfigError):
        target_of(kind, value)


@pytest.mark.parametrize(
    ("before", "after", "again", "skipped"),
    [(10, 4, 6, 0), (10, 15, 0, 5), (None, 4, 0, 2), (None, 2, 0, 0), (0, 2, 0, 0), (30, 4, 16, 0)],
)
def test_a_change_tells_what_is_read_again_and_what_never(
    before: int | None, after: int, again: int, skipped: int
) -> None:
    found = change_of(OffsetChange("g", "orders", 0, before, after, start=2, end=20))
    assert (found.again, found.skipped) == (again, skipped)


def test_a_digest_is_of_the_changes_and_not_of_the_end_of_the_log() -> None:
    first = change_of(OffsetChange("g", "orders", 0, 3, 4, 2, 20))
    assert digest_of("g", [first]) == digest_of("g", [change_of(OffsetChange("g", "orders", 0, 3, 4, 2, 21))])
    assert digest_of("g", [first]) != digest_of("g", [change_of(OffsetChange("g", "orders", 0, 3, 5, 2, 20))])
    assert digest_of("g", [first]) != digest_of("h", [first])


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("earliest", "earliest"),
        (7, "offset 7"),
        (Shift(-2), "2 offsets back"),
        (Shift(3), "3 offsets ahead"),
        (NOON, "2026-01-31 12:00:00+00:00"),
    ],
)
def test_a_target_is_told_in_words(target: Any, text: str) -> None:
    assert text_of(target) == text
