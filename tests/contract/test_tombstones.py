"""A route's type says whether it takes messages without a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import msgspec
import pytest

import awoke
from awoke.payloads import dead_letter
from awoke.testing import Runs
from tests.contract.test_consume import new_app, send
from tests.contract.test_recovery import letters
from tests.support.clusters import Cluster
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]


class Order(msgspec.Struct):
    """Returns the messages of the topic."""

    id: int


def test_a_type_with_none_gets_tombstones(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int | None]()

    @app.on(name, value=Order | None)
    def handle(message: awoke.Message[Order | None]) -> None:
        assert_type(message.value, Order | None)
        seen.add(None if message.value is None else message.value.id)

    send(cluster, name, [Order(1), None, Order(2)])
    awoke_run(app).idle()
    assert seen.items == [1, None, 2]


def test_a_route_without_a_type_gets_tombstones(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[bytes | None]()

    @app.on(name)
    def handle(message: awoke.Message[bytes | None]) -> None:
        assert_type(message.value, bytes | None)
        seen.add(message.value)

    send(cluster, name, [b"1", None])
    awoke_run(app).idle()
    assert seen.items == [b"1", None]


def test_tombstones_may_be_left_out(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int]()

    @app.on(name, value=Order, flow=awoke.Flow(where=lambda message: message.raw_value is not None))
    def handle(message: awoke.Message[Order]) -> None:
        seen.add(message.value.id)

    send(cluster, name, [None, Order(1), None, Order(2)])
    awoke_run(app).idle()
    assert seen.items == [1, 2]


ONCE = awoke.Retry(attempts=1)


@pytest.mark.parametrize("value_type", [Order, str, int])
def test_a_tombstone_does_not_decode_as_a_type_without_none(
    cluster: Cluster, topic: CreateTopic, value_type: type, awoke_run: Runs
) -> None:
    name, dead, app, seen = topic(), topic("dead"), new_app(cluster), Collected[object]()

    @app.on(name, value=value_type, dead_letter=dead, retry=ONCE)
    def handle(message: awoke.Message[object]) -> None:
        seen.add(message.value)

    send(cluster, name, [None], key=b"key")
    probe = awoke_run(app)
    probe.idle()
    assert [each.offset for each in probe.failures] == [each.offset for each in probe.dead_letters] == [0]
    (letter,) = letters(cluster, dead)
    origin = dead_letter.origin(letter)
    assert origin is not None
    assert (letter.value, letter.key, origin.error_type) == (None, b"key", "awoke.errors.DecodeError")
    assert seen.items == []


def test_a_batch_with_a_tombstone_does_not_decode_as_a_type_without_none(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, failed = topic(), new_app(cluster), Collected[BaseException]()

    @app.consumer(name, value=Order)
    class Orders(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Order]) -> None:
            try:
                batch.values()
            except awoke.DecodeError as error:
                failed.add(error)

    send(cluster, name, [None])
    awoke_run(app).idle()
    (error,) = failed.items
    assert "offset 0" in str(error)
