"""An app gives its metrics to OpenTelemetry as long as it runs."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import awoke
from awoke.testing import running
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import Collected


def total_of(reader: InMemoryMetricReader, name: str) -> float | None:
    data: Any = reader.get_metrics_data()
    scopes = [] if data is None else [scope for each in data.resource_metrics for scope in each.scope_metrics]
    found = [each for scope in scopes for each in scope.metrics if each.name == name]
    return sum(point.value for each in found for point in each.data.data_points) if found else None


def test_the_metrics_of_a_running_app_are_observed(mock_cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    monkeypatch.setattr(metrics, "get_meter", MeterProvider([reader], shutdown_on_exit=False).get_meter)
    topic, committed = unique("otel"), Collected[awoke.Event]()
    mock_cluster.create_topic(topic)
    app = awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers, metrics_otel=True)
    app.events.subscribe("offsets.committed", committed.add)

    @app.on(topic)
    def charge(message: awoke.Message[bytes]) -> None: ...

    with running(app):
        app.producer.produce(topic, b"1").wait(30)
        committed.wait_for(1)
        assert (total_of(reader, "awoke_scheduled_total") or 0) >= 1
        assert total_of(reader, "awoke_assigned_partitions") == 1
    assert total_of(reader, "awoke_assigned_partitions") is None
