"""Back-off: delays that grow to a maximum, the random part, and values that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.waiting.backoff import Backoff


def test_delays_grow_by_the_factor_up_to_the_maximum() -> None:
    backoff = Backoff(1.0, 5.0, jitter=0.0)
    assert [backoff.delay_s(attempt) for attempt in (1, 2, 3, 4, 100)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert Backoff(1.0, 100.0, factor=3.0, jitter=0.0).delay_s(3) == 9.0


def test_the_number_of_attempts_has_no_limit() -> None:
    assert Backoff(0.1, 30.0, jitter=0.0).delay_s(10**9) == 30.0


def test_the_random_part_shortens_a_delay_by_up_to_its_share() -> None:
    delays = [Backoff(1.0, 1.0, jitter=0.2).delay_s(1) for _ in range(100)]
    assert 0.8 <= min(delays) < max(delays) <= 1.0


def test_no_delay_is_possible() -> None:
    assert Backoff(0.0, 0.0).delay_s(1) == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_s": 2.0, "maximum_s": 1.0},
        {"first_s": -1.0},
        {"first_s": float("nan")},
        {"maximum_s": "30"},
        {"factor": 0.5},
        {"jitter": 1.5},
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Backoff"):
        Backoff(**wrong)
