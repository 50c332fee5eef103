"""Routes of several topics, and of routers, on brokers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import awoke
from awoke.testing import Runs
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster, MockCluster, unique
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]


def test_a_handler_gets_the_messages_of_all_of_its_topics(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    names, app, seen = [topic("a"), topic("b")], new_app(cluster), Collected[tuple[str, bytes]]()

    @app.on(names)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add((message.topic, message.value))

    for name in names:
        send(cluster, name, [b"1", b"2"])
    awoke_run(app).idle()
    found = seen.items
    assert sorted(found) == sorted((name, value) for name in names for value in (b"1", b"2"))
    assert_committed(cluster, app, {(name, 0): 2 for name in names})


def test_the_routes_of_a_router_read_and_send_under_its_prefix(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    prefix, router, app, seen = f"{unique('eu')}.", awoke.Router(), new_app(cluster), Collected[bytes]()
    for name in ("orders", "booked"):
        cluster.create_topic(prefix + name)

    @router.on("orders", output="booked")
    def book(message: awoke.Message[bytes]) -> bytes:
        return message.value + b" booked"

    @router.on("booked")
    def note(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    app.include(router, prefix=prefix)
    send(cluster, f"{prefix}orders", [b"1"])
    awoke_run(app).idle()
    assert seen.items == [b"1 booked"]
