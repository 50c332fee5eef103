"""A value that does not decode can't heal: its message, and no other, is exhausted at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads import dead_letter
from awoke.testing import Runs
from tests.contract.test_consume import assert_committed, new_app, send
from tests.contract.test_recovery import letters
from tests.support.clusters import Cluster, MockCluster
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]


class Order(msgspec.Struct):
    """Returns the messages of the topic."""

    id: int


ORDERS: list[object] = [Order(0), Order(1), b"no json", Order(3), b"{}", Order(5)]
WELL = [0, 1, 3, 5]

KINDS = ["def", "async def", "class", "async class", "lanes", "class with lanes", "where", "exactly once"]


def route(app: awoke.App, kind: str, name: str, out: str, seen: Collected[int], **options: Any) -> None:
    """Add a route of this kind that collects the numbers of its orders."""
    if kind == "where":
        options["flow"] = awoke.Flow(where=lambda message: message.value.id >= 0)
    if "lanes" in kind:
        options["concurrency"] = awoke.by_key(4)
    if kind == "exactly once":
        options |= {"output": out, "exactly_once": True}

    def handle(message: awoke.Message[Order]) -> None:
        seen.add(message.value.id)

    async def handle_async(message: awoke.Message[Order]) -> None:
        seen.add(message.value.id)

    class Orders(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Order]) -> None:
            for order in batch.values():
                seen.add(order.id)

    class AsyncOrders(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[Order]) -> None:
            for order in batch.values():
                seen.add(order.id)

    if "class" in kind:
        app.consumer(name, **options)(AsyncOrders if "async" in kind else Orders)
    else:
        app.on(name, **options)(handle_async if "async" in kind else handle)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_message_that_does_not_decode_is_a_dead_letter(
    cluster: Cluster, topic: CreateTopic, kind: str, awoke_run: Runs
) -> None:
    name, dead, out, app, seen = topic(), topic("dead"), topic("out"), new_app(cluster), Collected[int]()
    route(app, kind, name, out, seen, dead_letter=dead)
    send(cluster, name, ORDERS, key=b"key")
    probe = awoke_run(app)
    probe.idle()
    assert all(isinstance(each.error, awoke.DecodeError) for each in probe.failures)
    assert [each.offset for each in probe.dead_letters] == [2, 4]
    found = [(letter.value, dead_letter.origin(letter)) for letter in letters(cluster, dead)]
    assert [(value, origin.offset, origin.attempts) for value, origin in found if origin is not None] == [
        (b"no json", 2, 1),
        (b"{}", 4, 1),
    ]
    assert list(dict.fromkeys(seen.items)) == WELL
    assert_committed(cluster, app, {(name, 0): 6})


def test_a_route_without_a_dead_letter_topic_does_as_on_exhausted_says(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int]()
    route(app, "def", name, "", seen, retry=awoke.Retry(on_exhausted="skip"))
    send(cluster, name, ORDERS)
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == WELL
    assert ([each.offset for each in probe.failures], probe.retries) == ([2, 4], [])


def test_an_app_stops_at_it_by_default(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen, errors = topic(), new_app(cluster), Collected[int](), Collected[BaseException]()
    route(app, "def", name, "", seen)
    send(cluster, name, ORDERS)
    server = awoke.AppRunner(app, on_fatal_error=errors.add)
    server.start()
    assert "offset 2 failed once with: DecodeError" in str(errors.wait_for(1)[0])
    server.stop()
    assert_committed(cluster, app, {(name, 0): 2})


@pytest.mark.parametrize("kind", ["def", "class"])
def test_a_route_may_try_it_again_all_the_same(
    cluster: Cluster, topic: CreateTopic, kind: str, awoke_run: Runs
) -> None:
    name, app, seen, skipped = topic(), new_app(cluster), Collected[int](), Collected[awoke.Event]()
    app.events.subscribe("message.skipped", skipped.add)
    on = (awoke.DecodeError, OSError)
    retry = awoke.Retry(attempts=3, on=on, backoff_s=(0.01, 0.01), on_exhausted="skip")
    route(app, kind, name, "", seen, retry=retry)
    send(cluster, name, [Order(0), b"no json", Order(2)])
    probe = awoke_run(app)
    probe.idle()
    attempts = [each.attempt for each in probe.failures if each.offset == 1]
    assert attempts == [1, 2, 3]


def test_a_decode_error_of_something_else_is_any_other_failure(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int]()

    @app.on(name, retry=awoke.Retry(backoff_s=(0.01, 0.01)))
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.attempt)
        if message.attempt < 3:
            raise awoke.DecodeError("the result of a call, or a message of another topic", "other", 0, message.offset)

    send(cluster, name, [b"value"])
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == [1, 2, 3]
    assert [each.attempt for each in probe.failures] == [1, 2]
