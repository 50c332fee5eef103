"""Spans continue the trace of the producer of a message."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import awoke
from awoke import rpc
from awoke.testing import Runs, running
from tests.contract.test_consume import new_app
from tests.support.clusters import Cluster, MockCluster
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS: list[tuple[str, bytes | str | None]] = [("traceparent", f"00-{TRACE}-{PARENT}-01"), ("other", b"1")]


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """OpenTelemetry's provider can be set once in a process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


@pytest.mark.parametrize("is_async", [False, True])
def test_a_message_has_a_span_whose_parent_is_its_producers(
    cluster: Cluster, topic: CreateTopic, spans: InMemorySpanExporter, is_async: bool, awoke_run: Runs
) -> None:
    name, out = topic(), topic("out")
    app = new_app(cluster, tracing=True)

    def handle(message: awoke.Message[bytes]) -> bytes:
        return message.value

    async def handle_async(message: awoke.Message[bytes]) -> bytes:
        return message.value

    app.on(name, output=out)(handle_async if is_async else handle)
    probe = awoke_run(app)
    probe.send(name, b"value", headers=HEADERS)
    probe.idle()
    (sent,) = probe.sent(out)
    (span,) = spans.get_finished_spans()
    assert span.name == f"process {name}"
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT
    assert span.attributes is not None
    assert span.attributes["messaging.kafka.offset"] == 0
    (traceparent,) = [value for key, value in sent.headers if key == "traceparent"]
    assert TRACE in (traceparent or b"").decode()


def test_a_batch_has_a_span_that_links_to_its_producers(
    cluster: Cluster, topic: CreateTopic, spans: InMemorySpanExporter, awoke_run: Runs
) -> None:
    name, seen = topic(), Collected[int]()
    app = new_app(cluster, tracing=True)

    @app.consumer(name, retry=awoke.Retry(attempts=1, on_exhausted="skip"))
    class Failing(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            seen.add(len(batch))
            raise ValueError("no good")

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        producer.produce(name, b"value", headers=HEADERS).wait(30)
    probe = awoke_run(app)
    probe.idle()
    assert len(probe.failures) == 1
    (span,) = spans.get_finished_spans()
    assert [f"{link.context.trace_id:032x}" for link in span.links] == [TRACE]
    assert [event.name for event in span.events] == ["exception"]


def test_a_call_continues_its_callers_trace(cluster: Cluster, spans: InMemorySpanExporter) -> None:
    app = new_app(cluster, tracing=True)

    @app.rpc.method
    def note(text: str) -> str | None:
        value = rpc.current_call().headers.get("traceparent")
        return None if value is None else value.decode()

    with running(app), rpc.Caller(app.name, settings=app.settings, timeout_s=30) as caller:
        caller.wait_until_served()
        spans.clear()
        with trace.get_tracer("test").start_as_current_span("outside") as outside:
            traceparent = caller.call("note", text="x")
        trace_id = f"{outside.get_span_context().trace_id:032x}"
    assert trace_id in traceparent
    within = next(span for span in spans.get_finished_spans() if span.name.startswith("process"))
    assert within.parent is not None
    assert f"{within.parent.trace_id:032x}" == trace_id
    assert within.attributes is not None
    assert within.attributes["code.function.name"] == "note"
