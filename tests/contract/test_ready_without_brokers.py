"""Readiness while no broker is connected: `/ready` says since when, `/live` and `/health` stay as they were."""

from __future__ import annotations

import pytest

import awoke
from awoke.runtime.process import connections
from awoke.testing import EmbeddedCluster, running
from tests.support.waiting import Collected, wait_until


def test_an_app_without_brokers_is_not_ready_but_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "AWAY_AFTER_S", 0.3)
    assigned: Collected[awoke.Event] = Collected()
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        kafka = {"reconnect.backoff.max.ms": 200}
        app = awoke.App("away", bootstrap_servers=cluster.bootstrap_servers, kafka=kafka)
        app.on("orders")(lambda message: None)
        app.events.subscribe("partitions.assigned", assigned.add)
        with running(app) as runner:
            assigned.wait_for(1)
            wait_until(lambda: runner.why_not_ready() is None, "it is ready")
            cluster.set_broker_up(1, False)
            wait_until(lambda: runner.why_not_ready() is not None, "it is not ready")
            assert str(runner.why_not_ready()).startswith("no broker connected since 2")
            assert runner.status()["is_ready"] is False
            assert runner.health().is_healthy, "a restart would not bring the brokers back"
            cluster.set_broker_up(1, True)
            wait_until(lambda: runner.why_not_ready() is None, "it is ready again")
