"""The brokers of one test."""

from __future__ import annotations

import awoke
from awoke.testing.cluster import EmbeddedTestCluster, topics_of


def test_the_topics_of_an_app_are_those_it_reads_writes_and_declares() -> None:
    app = awoke.App("shop")
    app.topic("stock", partitions=3)
    app.on("orders", output="bills", dead_letter="orders.dead")(lambda message: b"")
    app.on("clicks", partitions=[4])(lambda message: None)
    app.rpc.method(name="quote")(lambda sku: 1)
    assert topics_of(app) == {
        "orders": 1,
        "bills": 1,
        "orders.dead": 1,
        "clicks": 5,
        "stock": 3,
        "shop.rpc.calls": 1,
        "shop.rpc.replies": 1,
    }


def test_only_members_of_classic_groups_get_a_heartbeat_interval() -> None:
    cluster = EmbeddedTestCluster()
    try:
        assert "heartbeat.interval.ms" in cluster.settings_of(awoke.App("shop"))["kafka"]
        assert cluster.settings_of(awoke.App("shop", kafka={"group.protocol": "consumer"})) == {}
    finally:
        cluster.close()
