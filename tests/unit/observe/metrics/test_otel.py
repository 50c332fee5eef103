"""The metrics as instruments of OpenTelemetry, as its SDK collects and exports them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader, PeriodicExportingMetricReader

from awoke.observe.events import MessageSkipped
from awoke.observe.metrics.catalogue import CATALOGUE
from awoke.observe.metrics.recorder import BUCKETS_S, EndedJob, Recorder
from tests.unit.observe.metrics.test_recorder import Fake

Points = dict[str, list[tuple[dict[str, Any], Any]]]


def recorder_with(monkeypatch: pytest.MonkeyPatch, reader: MetricReader) -> tuple[Recorder, MeterProvider]:
    provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
    recorder = Recorder()
    recorder.attach(Fake())
    recorder.open_instruments({"node": "2"})
    return recorder, provider


def points_of(reader: InMemoryMetricReader) -> Points:
    data: Any = reader.get_metrics_data()
    found = [each for resource in data.resource_metrics for scope in resource.scope_metrics for each in scope.metrics]
    return {each.name: [(dict(point.attributes), point) for point in each.data.data_points] for each in found}


def test_counters_and_gauges_are_observed_with_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    recorder, _ = recorder_with(monkeypatch, reader)
    recorder.job_ended("orders", "charge", EndedJob(3, 30, 0.1, 0.2, "done"))
    recorder.on_event(MessageSkipped(handler="h", topic="t", partition=0, offset=7, error=ValueError()))
    points = points_of(reader)
    ((attributes, point),) = points["awoke_messages_total"]
    assert (attributes, point.value) == ({"node": "2", "topic": "orders", "handler": "charge"}, 3)
    assert [point.value for _, point in points["awoke_skipped_messages_total"]] == [1]
    lags = {attributes["partition"]: point.value for attributes, point in points["awoke_lag_messages"]}
    assert lags == {"0": 3, "1": 5}
    assert set(points) <= {each.name for each in CATALOGUE}


def test_a_later_collection_reads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    recorder, _ = recorder_with(monkeypatch, reader)
    for total in (3, 6):
        recorder.job_ended("orders", "charge", EndedJob(3, 30, 0.1, 0.2, "done"))
        assert [point.value for _, point in points_of(reader)["awoke_messages_total"]] == [total]


def test_a_histogram_has_the_buckets_of_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    recorder, _ = recorder_with(monkeypatch, reader)
    recorder.job_ended("orders", "charge", EndedJob(3, 30, 0.1, 0.2, "done"))
    ((attributes, point),) = points_of(reader)["awoke_job_run_seconds"]
    assert (point.count, point.sum, point.explicit_bounds) == (1, 0.2, BUCKETS_S)
    assert attributes["handler"] == "charge"


def test_a_recorder_that_is_closed_is_observed_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    recorder, _ = recorder_with(monkeypatch, reader)
    assert points_of(reader)["awoke_threads"]
    recorder.close()
    assert reader.get_metrics_data() is None


@pytest.fixture
def requests() -> Iterator[tuple[str, list[ExportMetricsServiceRequest]]]:
    """Stands for a collector that receives OTLP over HTTP: its address and the requests that it has received."""
    received: list[ExportMetricsServiceRequest] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Writes nothing."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.timeout = 30

        def serve() -> None:
            for _ in ("flush", "end of the provider"):
                server.handle_request()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/metrics", received
        thread.join()


def test_the_metrics_leave_by_otlp(
    monkeypatch: pytest.MonkeyPatch, requests: tuple[str, list[ExportMetricsServiceRequest]]
) -> None:
    address, received = requests
    exporter = OTLPMetricExporter(endpoint=address, compression=Compression.NoCompression, timeout=10)
    recorder, provider = recorder_with(monkeypatch, PeriodicExportingMetricReader(exporter, 3_600_000))
    recorder.job_ended("orders", "charge", EndedJob(3, 30, 0.1, 0.2, "done"))
    assert provider.force_flush()
    provider.shutdown()
    (scope,) = received[0].resource_metrics[0].scope_metrics
    assert scope.scope.name == "awoke"
    by_name = {each.name: each for each in scope.metrics}
    assert by_name["awoke_messages_total"].sum.data_points[0].as_double == 3
    assert by_name["awoke_job_run_seconds"].histogram.data_points[0].count == 1
