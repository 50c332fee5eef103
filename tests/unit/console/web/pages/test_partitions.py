"""Partitions: the worst state that is true, the lag of the brokers, lanes and failing messages."""

from __future__ import annotations

import re
from typing import Any

from awoke.console.views import Failing, GroupPartition, GroupView, Partition, Running
from awoke.console.web.pages.partitions import state_of
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import FakeLive, console, report

SINCE = wall_ms() - 90_000


def partition(**fields: object) -> Partition:
    given: Any = {"group": "shop", "topic": "orders", "partition": 0, "committed": 1, **fields}
    return Partition(**given)


def test_a_partition_has_the_worst_state_that_is_true() -> None:
    slow = Running(offset=1, attempt=1, remaining=1, since_ms=SINCE)
    failing = Failing(offset=1, key_hash=None, attempts=1, error="", since_ms=SINCE, next_ms=SINCE)
    found = [
        *(partition(), partition(in_flight=1), partition(running=[slow]), partition(running=[slow], failing=[failing])),
        *(partition(failing=[failing], paused_because="x"), partition(paused_because="x", stuck_because="y")),
    ]
    states = [state_of(each, wall_ms()) for each in found]
    assert states == ["idle", "working", "slow", "failing", "paused", "stuck"]


def test_the_lag_is_that_of_the_brokers_also_without_a_process() -> None:
    live = FakeLive([report("a", partition(committed=1, end_offset=2))])
    live.groups = [
        GroupView(
            group="shop",
            state="stable",
            members=1,
            partitions=[
                GroupPartition(topic="orders", partition=number, committed=5, end_offset=12, lag=7) for number in (0, 1)
            ],
        )
    ]
    with console(live) as client:
        rows = client.get("/partitions?format=json").json()["partitions"]["rows"]
        assert client.get("/partitions?state=idle&format=json").json()["partitions"]["total"] == 1
    assert [(each["lag"], each["state"], each["node"]) for each in rows] == [(7, "idle", "a"), (7, "unassigned", None)]


def test_partitions_are_sorted_by_topic_and_number_and_then_by_group() -> None:
    places = [("b", "orders", 10), ("a", "orders", 9), ("b", "orders", 9), ("a", "stock", 0)]
    live = FakeLive([report("a", *(partition(group=group, topic=topic, partition=at) for group, topic, at in places))])
    live.groups = [
        GroupView(
            group="a",
            state="stable",
            members=1,
            partitions=[GroupPartition(topic="orders", partition=10, committed=5, end_offset=12, lag=7)],
        )
    ]
    expected = [("orders", 9, "a"), ("orders", 9, "b"), ("orders", 10, "a"), ("orders", 10, "b"), ("stock", 0, "a")]
    with console(live) as client:
        for order, wanted in (("asc", expected), ("desc", expected[::-1])):
            page = client.get(f"/partitions?sort=partition&order={order}&format=json").json()
            rows = page["partitions"]["rows"]
            assert [(each["topic"], each["partition"], each["group"]) for each in rows] == wanted


def test_a_partition_shows_its_failing_message_and_its_next_attempt() -> None:
    failing = Failing(
        offset=7, key_hash="ac52", attempts=3, error="no good", since_ms=SINCE, next_ms=wall_ms() + 99_000
    )
    live = FakeLive([report("a", partition(failing=[failing], oldest_offset=7))])
    with console(live) as client:
        page = client.get("/partitions/orders/0/shop").text
        assert client.get("/partitions/orders/x/shop").status_code == 404
    assert "no good" in page
    assert "in 1.6 min" in page


def test_the_longest_job_comes_first() -> None:
    running = [Running(offset=at, attempt=1, remaining=1, since_ms=wall_ms() - at) for at in (10, 99_000)]
    with console(FakeLive([report("a", partition(running=running))])) as client:
        rows = client.get("/jobs?format=json").json()["jobs"]["rows"]
    assert [(each["offset"], each["state"]) for each in rows] == [(99_000, "slow"), (10, "running")]


def test_a_partition_shows_its_lanes_and_the_one_that_holds_the_commit() -> None:
    failing = Failing(
        offset=7, key_hash="ac52", attempts=3, error="no good", since_ms=SINCE, next_ms=wall_ms() + 99_000
    )
    running = Running(offset=9, attempt=1, remaining=1, since_ms=SINCE, key_hash="beef")
    told = partition(failing=[failing], running=[running], oldest_offset=7, has_room=False)
    with console(FakeLive([report("a", told)])) as client:
        lanes = client.get("/partitions/orders/0/shop?format=json").json()["lanes"]
        page = client.get("/partitions/orders/0/shop").text
    found = [(each["key_hash"], each["is_running"], each["keeps_commit_back"]) for each in lanes]
    assert found == [("ac52", False, True), ("beef", True, False)]
    assert page.count("holds the commit") == 1
    assert "as many as allowed are under way" in page


def test_the_trend_of_a_lag_is_shown_with_the_time_until_it_is_gone() -> None:
    live = FakeLive([report()])
    places = [
        GroupPartition(topic="orders", partition=number, committed=0, end_offset=lag, lag=lag)
        for number, lag in enumerate((600, 600, 600, 600, 0))
    ]
    live.groups = [GroupView(group="shop", state="Stable", members=1, partitions=places)]
    live.lag_per_s = {("shop", "orders", number): per_s for number, per_s in enumerate((-10.0, 2.5, 0.0))}
    live.lag_per_s["shop", "orders", 4] = -3.0
    with console(live) as client:
        rows = client.get("/partitions?format=json&sort=trend&order=asc").json()["partitions"]["rows"]
        assert [(each["partition"], each["lag_per_s"], each["left_s"]) for each in rows] == [
            (0, -10.0, 60.0),
            (4, -3.0, 0.0),
            (2, 0.0, None),
            (1, 2.5, None),
            (3, None, None),
        ]
        words = re.sub(r"<[^>]*>", "", client.get("/partitions").text)
        for said in ("↓ falls by 10/s", "in 1 min", "↑ grows by 2.5/s", "never at this rate", "→ steady", "yes"):
            assert said in words, said
        one = re.sub(r"<[^>]*>", "", client.get("/partitions/orders/0/shop").text)
        assert "↓ falls by 10/sthe lag is gone in 1 min" in one
