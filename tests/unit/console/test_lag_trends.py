"""The trend of a lag: of the last minute, for partitions that are known long enough."""

from __future__ import annotations

import pytest

from awoke.console.lag_trends import LEAST_S, WINDOW_S, LagTrends, left_s
from awoke.console.views import GroupPartition, GroupView


def groups(*lags: int | None) -> list[GroupView]:
    places = [
        GroupPartition(topic="orders", partition=number, committed=0, end_offset=lag, lag=lag)
        for number, lag in enumerate(lags)
    ]
    return [GroupView(group="shop", state="Stable", members=1, partitions=places)]


def test_a_lag_grows_falls_or_stays() -> None:
    trends = LagTrends()
    assert trends.note(0.0, groups(100, 100, 100)) == {}
    assert trends.note(LEAST_S - 1, groups(101, 99, 100)) == {}, "too soon to tell"
    found = trends.note(10.0, groups(130, 50, 100, 7))
    assert found == {("shop", "orders", 0): 3.0, ("shop", "orders", 1): -5.0, ("shop", "orders", 2): 0.0}


def test_a_trend_is_that_of_the_last_minute() -> None:
    trends, lag = LagTrends(), 10_000
    for second in range(0, 120, 2):
        trends.note(float(second), groups(lag))
        lag -= 10 if second < 60 else 0
    found = trends.note(120.0, groups(lag))
    assert found == {("shop", "orders", 0): 0.0}
    assert len(trends._kept) <= WINDOW_S / 5 + 1
    assert trends.note(600.0, groups(5)) == {}, "a console that was not looked at for long knows none"


def test_a_lag_that_is_not_known_has_no_trend() -> None:
    trends = LagTrends()
    trends.note(0.0, groups(None, 1))
    assert trends.note(10.0, groups(5, None)) == {}


@pytest.mark.parametrize(
    ("lag", "per_s", "left"), [(100, -5.0, 20.0), (100, 5.0, None), (100, 0.0, None), (0, -5.0, 0)]
)
def test_the_time_until_a_lag_is_gone(lag: int, per_s: float, left: float | None) -> None:
    assert left_s(lag, per_s) == left
    assert left_s(None, per_s) is left_s(lag, None) is None
