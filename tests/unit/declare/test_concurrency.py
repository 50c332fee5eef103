"""The number of messages of a partition that are processed at once: the four ways, and bounds that contradict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.declare.concurrency import COMMIT_GAP, Concurrency


def by_user(message: awoke.Message[Any]) -> object:
    return message.headers


def test_a_partition_has_one_job_at_a_time_by_default() -> None:
    assert awoke.by_partition() == Concurrency()
    assert (awoke.by_partition().by, awoke.by_partition().jobs) == ("partition", 1)


def test_each_way_names_what_keeps_its_order() -> None:
    assert awoke.by_key(8) == Concurrency("key", 8)
    assert awoke.by(by_user, 8) == Concurrency("route", 8, by_user)
    assert awoke.unordered(8) == Concurrency("nothing", 8)
    assert [each.jobs for each in (awoke.by_key(), awoke.by(by_user), awoke.unordered())] == [16, 16, 16]


@pytest.mark.parametrize(("jobs", "in_flight"), [(1, 1_000), (16, 1_000), (250, 1_000), (251, 1_004)])
@pytest.mark.parametrize("way", [awoke.by_key, awoke.unordered, lambda jobs: awoke.by(by_user, jobs)])
def test_a_thousand_messages_are_in_flight_or_four_for_each_job(
    way: Callable[[int], Concurrency], jobs: int, in_flight: int
) -> None:
    assert way(jobs).in_flight_max(is_exactly_once=False) == in_flight
    assert way(jobs).commit_gap == COMMIT_GAP


@pytest.mark.parametrize(
    ("concurrency", "in_flight"),
    [
        (awoke.by_key(), 10_000),
        (awoke.by_key(2_501), 10_004),
        (awoke.by_key(commit_gap=2_000), 2_000),
        (awoke.by_key(in_flight=50), 50),
    ],
)
def test_more_messages_are_in_flight_where_transactions_commit_them(concurrency: Concurrency, in_flight: int) -> None:
    assert concurrency.in_flight_max(is_exactly_once=True) == in_flight


def test_bounds_may_be_equal() -> None:
    found = awoke.by_key(5, in_flight=5, commit_gap=5)
    assert (found.jobs, found.in_flight, found.commit_gap) == (5, 5, 5)


@pytest.mark.parametrize(
    "options", [{"jobs": 6, "in_flight": 5}, {"jobs": 1, "in_flight": 6, "commit_gap": 5}, {"commit_gap": 999}]
)
@pytest.mark.parametrize("way", [awoke.by_key, awoke.unordered, lambda **options: awoke.by(by_user, **options)])
def test_bounds_that_contradict_each_other_are_refused(way: Callable[..., Concurrency], options: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=r"1 <= jobs \(\d+\) <= in_flight \(\d+\) <= commit_gap") as refused:
        way(**options)
    assert refused.value.property == "concurrency"


@pytest.mark.parametrize("name", ["jobs", "in_flight", "commit_gap"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "8", True])
def test_a_bound_is_a_whole_number_from_1(name: str, value: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=f"concurrency: {name} must be a whole number from 1"):
        awoke.by_key(**{name: value})


@pytest.mark.parametrize("function", [None, "user", 3])
def test_a_lane_is_named_by_a_function(function: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=r"by\(\) takes a function of a message"):
        awoke.by(function)
