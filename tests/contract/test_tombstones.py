"""A route's type says whether it takes messages without a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import msgspec

import awoke
from awoke.testing import running
from tests.contract.test_consume import new_app, send
from tests.support.clusters import Cluster
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]


class Order(msgspec.Struct):
    """What is in the topic."""

    id: int


def test_a_type_with_none_gets_tombstones(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int | None]()

    @app.on(name, value=Order | None)
    def handle(message: awoke.Message[Order | None]) -> None:
        assert_type(message.value, Order | None)
        seen.add(None if message.value is None else message.value.id)

    send(cluster, name, [Order(1), None, Order(2)])
    with running(app):
        assert seen.wait_for(3) == [1, None, 2]


def test_a_route_without_a_type_gets_tombstones(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[bytes | None]()

    @app.on(name)
    def handle(message: awoke.Message[bytes | None]) -> None:
        assert_type(message.value, bytes | None)
        seen.add(message.value)

    send(cluster, name, [b"1", None])
    with running(app):
        assert seen.wait_for(2) == [b"1", None]


def test_tombstones_may_be_left_out(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int]()

    @app.on(name, value=Order, flow=awoke.Flow(where=lambda message: message.raw_value is not None))
    def handle(message: awoke.Message[Order]) -> None:
        seen.add(message.value.id)

    send(cluster, name, [None, Order(1), None, Order(2)])
    with running(app):
        assert seen.wait_for(2) == [1, 2]
