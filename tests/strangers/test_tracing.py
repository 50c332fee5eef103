"""OpenTelemetry: an SDK whose thread starts at import, and instrumented threads. No span is lost."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import MockCluster
from tests.support.three_modes import MESSAGES, in_three_modes, stop_all

APP = """
import threading
from opentelemetry import trace
from opentelemetry.instrumentation.threading import ThreadingInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


class ToNotes(SpanExporter):
    def export(self, spans):
        for span in spans:
            parent = None if span.parent is None else span.parent.span_id
            note("span", name=span.name, span=span.context.span_id, parent=parent, trace=span.context.trace_id)
        return SpanExportResult.SUCCESS


ThreadingInstrumentor().instrument()
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ToNotes(), schedule_delay_millis=600_000))  # What is left, at the end.
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")


def work(number):
    with tracer.start_as_current_span(f"inner {number}"):
        pass


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    number = int(message.value)
    with tracer.start_as_current_span(f"outer {number}"):
        thread = threading.Thread(target=work, args=(number,))
        thread.start()
        thread.join()
    note("handled", value=number)
"""


def test_each_span_is_exported_and_has_its_parent(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, APP) as runs:
        stop_all(runs)
    for run in runs:
        spans = {each["name"]: each for each in run.notes("span")}
        numbers = range(MESSAGES)
        assert {f"{which} {number}" for which in ("outer", "inner") for number in numbers} <= set(spans), run.mode
        for number in numbers:
            outer, inner = spans[f"outer {number}"], spans[f"inner {number}"]
            assert inner["parent"] == outer["span"]
            assert inner["trace"] == outer["trace"]
        warned = "can't share" in run.process.output
        assert warned == (run.mode != "process"), run.process.output
        if warned:
            assert "OtelBatchSpanRecordProcessor" in run.process.output
            assert "shop.py:" in run.process.output, "the line that made it begin"
