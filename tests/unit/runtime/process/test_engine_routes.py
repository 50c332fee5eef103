"""The options of a route of the app, as the engine's route gets them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke import _native
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.runtime.process import group_run
from awoke.runtime.process.group_run import TURN_S_MIN, engine_route
from awoke.settings import Settings


class Handler(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None: ...

    def tick(self) -> None: ...


def handle(message: awoke.Message[bytes]) -> None: ...


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, dict[str, Any]]]:
    """The arguments of each route of the engine's that was made."""
    made: list[tuple[Any, Any, dict[str, Any]]] = []

    def note(topic: str, scheduler: Any, **options: Any) -> None:
        made.append((topic, scheduler, options))

    monkeypatch.setattr(group_run, "_native", SimpleNamespace(Route=note))
    return made


def test_each_option_reaches_the_engine_under_its_own_name(made: list[Any]) -> None:
    scheduler = cast("_native.Scheduler", object())
    options: Any = {
        "batch": awoke.Batching(max_messages=11, max_bytes=12, max_wait_s=13.0, max_time_s=14.0),
        "flow": awoke.Flow(delay_s=15.0, per_s=16.0),
        "weight": 17,
        "start": "latest",
        "jobs_max": 18,
        "partitions": (0, 3),
    }
    route = Route("orders", Handler, options, KindOptions(tick_every_s=19.0, offsets="manual"))
    engine_route(route, Settings(), scheduler)
    ((topic, given, found),) = made
    assert (topic, given) == ("orders", scheduler)
    assert found == {
        "messages_max": 11,
        "bytes_max": 12,
        "wait_max_s": 13.0,
        "batch_time_max_s": 14.0,
        "delay_s": 15.0,
        "rate_per_s": 16.0,
        "weight": 17,
        "start": ("latest", 0),
        "jobs_max": 18,
        "tick_every_s": 19.0,
        "stores_by_hand": True,
        "concurrency": None,
        "is_transactional": False,
        "turn_max_s": None,
        "number": route.number,
        "partitions": [0, 3],
        "tables": [],
    }


def test_a_route_of_a_group_names_no_partitions(made: list[Any]) -> None:
    engine_route(Route("orders", handle, {}), Settings(), cast("_native.Scheduler", object()))
    assert made[0][2]["partitions"] == []


def test_a_route_with_lanes_and_transactions_says_so(made: list[Any]) -> None:
    route = Route("orders", handle, {"concurrency": awoke.by_key(4), "exactly_once": True}, KindOptions(output="out"))
    engine_route(route, Settings(), cast("_native.Scheduler", object()))
    options = made[0][2]
    assert (options["concurrency"], options["is_transactional"], options["stores_by_hand"]) == (
        route.lanes,
        True,
        False,
    )


@pytest.mark.parametrize(("interval_s", "turn_s"), [(1.0, 0.25), (0.001, TURN_S_MIN)])
def test_a_function_has_its_turn_for_a_part_of_the_commit_interval(
    made: list[Any], interval_s: float, turn_s: float
) -> None:
    settings = Settings(commit_interval_s=interval_s)
    engine_route(Route("orders", handle, {}), settings, cast("_native.Scheduler", object()))
    assert made[0][2]["turn_max_s"] == turn_s


@pytest.mark.parametrize("concurrency", [awoke.by_partition(), awoke.by_key(4), awoke.unordered(4)])
def test_the_engine_takes_the_route(concurrency: Any) -> None:
    route = Route("orders", handle, {"concurrency": concurrency, "flow": awoke.Flow(per_s=1.0), "start": 7})
    scheduler = _native.Scheduler()
    assert engine_route(route, Settings(), scheduler).expired == 0
    scheduler.close()
