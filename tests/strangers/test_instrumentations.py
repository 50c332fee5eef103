"""All of OpenTelemetry's instrumentations that apply, at once: the same messages, spans and logs in each mode."""

from __future__ import annotations

import logging
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.instrumentation.confluent_kafka")

from opentelemetry.instrumentation.logging.handler import LoggingHandler
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from awoke.observe.events.bus import write
from awoke.observe.events.catalogue import CATALOGUE
from tests.support.clusters import MockCluster, unique
from tests.support.events import example_of
from tests.support.three_modes import MESSAGES, in_three_modes, stop_all

APP = """
import asyncio, importlib, logging, sqlite3, threading, urllib.request
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

NAMES = {
    "asyncio": "AsyncioInstrumentor", "confluent_kafka": "ConfluentKafkaInstrumentor",
    "httpx": "HTTPXClientInstrumentor",
    "logging": "LoggingInstrumentor", "psycopg": "PsycopgInstrumentor", "requests": "RequestsInstrumentor",
    "sqlite3": "SQLite3Instrumentor", "threading": "ThreadingInstrumentor", "urllib": "URLLibInstrumentor",
    "urllib3": "URLLib3Instrumentor",
}


class ToNotes(SpanExporter):
    def export(self, spans):
        for span in spans:
            parent = None if span.parent is None else span.parent.span_id
            scope, id, trace_id = span.instrumentation_scope.name, span.context.span_id, span.context.trace_id
            note("span", name=span.name, scope=scope.rpartition(".")[2], span=id, parent=parent, trace=trace_id)
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ToNotes(), schedule_delay_millis=600_000))
trace.set_tracer_provider(provider)
os.environ["OTEL_PYTHON_ASYNCIO_COROUTINE_NAMES_TO_TRACE"] = "step"
for module, name in NAMES.items():
    instrumentor = getattr(importlib.import_module(f"opentelemetry.instrumentation.{module}"), name)()
    instrumentor.instrument(**({"set_logging_format": True} if module == "logging" else {}))

import confluent_kafka, httpx, requests

tracer, url = trace.get_tracer("shop"), os.environ["URL"]
producer = confluent_kafka.Producer({"bootstrap.servers": os.environ["SERVERS"]})


async def step():
    await asyncio.sleep(0)


def use_all(number):
    urllib.request.urlopen(f"{url}/urllib").read()
    requests.get(f"{url}/requests")
    with sqlite3.connect(":memory:") as database:
        database.cursor().execute("SELECT 1")
    producer.produce(os.environ["OTHER"], b"x")
    producer.flush()
    thread = threading.Thread(target=lambda: tracer.start_span("thread").end())
    thread.start()
    thread.join()
    logging.getLogger("shop").warning("number %d", number)
"""
DEF = """
@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    use_all(int(message.value))
    httpx.get(f"{url}/httpx")
    note("handled", value=int(message.value))
"""
ASYNC_DEF = """
@app.on(TOPIC)
async def handle(message: awoke.Message[bytes]) -> None:
    async with httpx.AsyncClient() as client:
        await client.get(f"{url}/httpx")
    await asyncio.gather(asyncio.create_task(step()), asyncio.to_thread(use_all, int(message.value)))
    note("handled", value=int(message.value))
"""
EACH = {"awoke", "shop", "httpx", "requests", "urllib", "sqlite3", "confluent_kafka"}
"""What has a span for each message: awoke, the app itself, and the libraries that it uses."""


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_all_instrumentations_give_the_same_spans_in_each_mode(
    mock_cluster: MockCluster, tmp_path: Path, url: str, kind: str
) -> None:
    other = unique("other")
    mock_cluster.create_topic(other)
    env = {"URL": url, "SERVERS": mock_cluster.bootstrap_servers, "OTHER": other, "AWOKE_TRACING": "true"}
    with in_three_modes(tmp_path, mock_cluster, APP + (DEF if kind == "def" else ASYNC_DEF), env=env) as runs:
        stop_all(runs)
    scopes = EACH | ({"asyncio"} if kind == "async def" else set())
    for run in runs:
        traces = defaultdict(list)
        for each in run.notes("span"):
            traces[each["trace"]].append(each["scope"])
        assert len(traces) == MESSAGES, f"{run.mode}: one for each message"
        assert {tuple(sorted(found)) for found in traces.values()} == {tuple(sorted(scopes))}, run.mode
        logged = re.findall(r"number \d .*trace_id=([0-9a-f]+)", run.process.output)
        assert {int(each, 16) for each in logged} == set(traces), f"{run.mode}:\n{run.process.output}"


def test_opentelemetrys_handler_takes_what_each_event_carries(caplog: pytest.LogCaptureFixture) -> None:
    """It makes attributes of all that a record has, and warned of each event of awoke's."""
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()  # type: ignore[no-untyped-call]
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    handler, logger = LoggingHandler(logger_provider=provider), logging.getLogger("awoke.events")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.DEBUG):
            for kind in CATALOGUE.values():
                write(example_of(kind), logging.INFO)
    finally:
        logger.removeHandler(handler)
        provider.shutdown()
    told = [dict(each.log_record.attributes or {})["awoke"] for each in exporter.get_finished_logs()]
    assert [each["event"] for each in told] == list(CATALOGUE)  # type: ignore[call-overload, index]
    assert [each.name for each in caplog.records if each.name != "awoke.events"] == []
