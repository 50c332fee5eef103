"""Durations as people read them."""

from __future__ import annotations

import pytest

from awoke.text.durations import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1.0, "0 ms"),
        (0.0, "0 ms"),
        (0.0004, "0 ms"),
        (0.42, "420 ms"),
        (0.9996, "1 s"),
        (2.46, "2.5 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (90.0, "1.5 min"),
        (3_569.0, "59 min"),
        (3_571.0, "1 h"),
        (7_200.0, "2 h"),
        (84_000.0, "23 h"),
        (86_399.0, "1 d"),
        (3 * 86_400.0, "3 d"),
        (365 * 86_400.0, "365 d"),
    ],
)
def test_a_duration_has_its_largest_fitting_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text
