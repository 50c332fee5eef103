"""Metrics and spans of an app reach a collector that is no part of OpenTelemetry (Rotel, a program of its own)."""

from __future__ import annotations

import pytest

from tests.support.kafka_broker import free_ports
from tests.support.processes import Process

COLLECTOR = """
import os, sys
from pathlib import Path
import rotel
agent = str(Path(rotel.__file__).with_name("rotel-agent"))
os.execv(agent, [agent, "start", *sys.argv[1:]])
"""

APP = """
import sys
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
import awoke
from awoke.testing import EmbeddedCluster, running

address = sys.argv[1]
reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{address}/v1/metrics"), 3_600_000)
metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
spans = TracerProvider(shutdown_on_exit=False)
spans.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{address}/v1/traces")))
trace.set_tracer_provider(spans)

with EmbeddedCluster() as cluster:
    cluster.create_topic("orders")
    cluster.create_topic("charged")
    app = awoke.App("shop", bootstrap_servers=cluster.bootstrap_servers, metrics_otel=True, tracing=True)
    app.on("orders", output="charged")(lambda message: message.value)
    with running(app), awoke.Reader("charged", bootstrap_servers=cluster.bootstrap_servers) as charged:
        app.producer.produce("orders", b"1").wait(60)
        next(iter(charged))
        assert metrics.get_meter_provider().force_flush()
spans.shutdown()
"""


def test_a_collector_takes_metrics_and_spans() -> None:
    pytest.importorskip("rotel", reason="there is no collector for this Python")
    http, grpc = free_ports(2)
    options = ("--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}")
    shown = ("--exporter", "blackhole", "--debug-log", "metrics", "--debug-log", "traces")
    with Process(*options, *shown, "--debug-log-verbosity", "detailed", program=("-c", COLLECTOR)) as collector:
        collector.wait_for("Starting Rotel")
        with Process("-c", APP, f"http://127.0.0.1:{http}", program=()) as app:
            assert app.wait() == 0, app.output
        collector.wait_for("Name: awoke_scheduled_total")
        collector.wait_for("process orders")
