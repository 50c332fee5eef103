"""The delays while a registry is away: longer each time, shared by all, and short again when it is back."""

from __future__ import annotations

import pytest

from awoke.payloads.registry.away import RegistryAway
from awoke.waiting.backoff import Backoff


class Times:
    """A clock, and the number of loaded schemas."""

    def __init__(self) -> None:
        self.now_s, self.loads = 100.0, 0

    def away(self) -> RegistryAway:
        return RegistryAway(lambda: self.loads, Backoff(1.0, 8.0), lambda: self.now_s)


def failures(away: RegistryAway, times: Times, count: int) -> list[float]:
    """Returns the delays of `count` failures, each at the end of the delay before it."""
    delays = []
    for _ in range(count):
        delays.append(away.delay_s())
        times.now_s += delays[-1]
    return delays


def test_delays_grow_up_to_a_limit() -> None:
    times = Times()
    first, second, third, *_, last = failures(times.away(), times, 8)
    assert first < second < third <= last <= 8.0


def test_those_that_fail_together_wait_until_the_same_time() -> None:
    times = Times()
    away = times.away()
    assert away.left_s() == 0
    delay_s = away.delay_s()
    times.now_s += delay_s / 2
    assert (away.delay_s(), away.left_s()) == pytest.approx((delay_s / 2, delay_s / 2))
    times.now_s += delay_s
    assert away.left_s() == 0


def test_a_back_off_is_over_a_rounding_before_its_end() -> None:
    times = Times()
    away = times.away()
    first_s = away.delay_s()
    times.now_s += first_s - 1e-9
    assert away.left_s() == 0
    assert away.delay_s() > 1.0, "another back-off begins, and not the rest of the first"


@pytest.mark.parametrize("way", ["own load", "load of another"])
def test_a_load_begins_the_delays_again(way: str) -> None:
    times = Times()
    away = times.away()
    first, *_ = failures(away, times, 4)
    away.delay_s()
    assert away.left_s() > 2 * first
    if way == "own load":
        away.is_back()
    else:
        times.loads += 1
    assert away.left_s() == 0
    assert away.delay_s() == pytest.approx(first, rel=0.6)
