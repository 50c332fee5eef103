"""A process without brokers, as the code of a route sees it."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.testing.memory.process import MemoryProcess, route_of, without_jitter
from awoke.testing.memory.producing import Sent


@pytest.fixture
def app() -> awoke.App:
    app = awoke.App("shop", group="billing")
    app.on("orders", retry=awoke.Retry(backoff_s=(8.0, 8.0), jitter=1.0))(lambda message: None)
    return app


def test_the_app_sends_by_the_producer_in_memory_within_the_block_only(app: awoke.App) -> None:
    sent: list[Sent] = []
    process = MemoryProcess(app, route_of(app, "orders"), sent.append)
    with process.running():
        app.producer.produce("a", b"x")
    assert [each.data for each in sent] == [b"x"]
    assert app._producer is None
    assert process.group == "billing"


def test_the_first_error_stops_the_app(app: awoke.App) -> None:
    process = MemoryProcess(app, route_of(app, "orders"), lambda sent: None)
    first = ValueError("first")
    process.stop_app(first)
    process.stop_app(ValueError("second"))
    assert process.stopped_by is first


def test_delays_have_no_jitter_and_the_route_of_the_app_stays_as_it_is(app: awoke.App) -> None:
    route = route_of(app, "orders")
    assert without_jitter(route).retry.delay_s(1) == 8.0
    assert route.retry.jitter == 1.0


def test_events_are_kept_and_reach_the_app(app: awoke.App) -> None:
    seen: list[Any] = []
    app.events.subscribe("*", seen.append)
    process = MemoryProcess(app, route_of(app, "orders"), lambda sent: None)
    event = awoke.events.MessagesExpired(topic="orders", count=1)
    process.events.emit(event)
    assert (process.events.seen, seen) == ([event], [event])
