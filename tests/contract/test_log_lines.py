"""The log lines of handlers name the message that is being handled, and work that is late names its place."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace

import awoke
from awoke import rpc
from awoke.observe.logs import JsonFormatter
from awoke.testing import EmbeddedCluster, Runs, running
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import Collected

logger = logging.getLogger("shop_lines")


class Lines(logging.Handler):
    """Keeps the JSON lines of a logger."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: Collected[dict[str, Any]] = Collected()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.add(json.loads(self.format(record)))

    def places(self, count: int) -> list[tuple[Any, ...]]:
        """Returns offset and attempt of the lines, by their text."""
        found = self.lines.wait_for(count)
        return [(each["text"], each.get("offset"), each.get("attempt")) for each in found]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield handler
    logger.removeHandler(handler)


@pytest.fixture
def cluster(mock_cluster: MockCluster) -> MockCluster:
    """Embedded brokers only: what is tested here is what awoke logs."""
    return mock_cluster


@pytest.fixture
def topic(mock_cluster: MockCluster) -> str:
    name = unique("lines")
    mock_cluster.create_topic(name)
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all([producer.produce(name, value) for value in (b"a", b"b", b"c")])
    return name


def app_of(cluster: MockCluster) -> awoke.App:
    return awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers)


RETRY = awoke.Retry(backoff_s=(0.01, 0.01))


def test_a_line_of_a_function_names_its_message(
    mock_cluster: MockCluster, topic: str, lines: Lines, awoke_run: Runs
) -> None:
    app = app_of(mock_cluster)

    @app.on(topic, retry=RETRY)
    def see(message: awoke.Message[bytes]) -> None:
        logger.info(message.value.decode(), extra={"own": 1})
        if message.value == b"b" and message.attempt == 1:
            raise ValueError("once")

    probe = awoke_run(app)
    probe.idle()
    assert lines.places(4) == [("a", 0, 1), ("b", 1, 1), ("b", 1, 2), ("c", 2, 1)]
    assert [each.offset for each in probe.failures] == [1]
    found = {(each["app"], each["topic"], each["partition"], each["own"]) for each in lines.lines.items}
    assert found == {(app.name, topic, 0, 1)}


def test_a_line_of_a_function_in_lanes_names_its_message(
    mock_cluster: MockCluster, topic: str, lines: Lines, awoke_run: Runs
) -> None:
    app = app_of(mock_cluster)

    @app.on(topic, concurrency=awoke.unordered(4))
    def see(message: awoke.Message[bytes]) -> None:
        logger.info(message.value.decode())

    awoke_run(app).idle()
    assert sorted(lines.places(3)) == [("a", 0, 1), ("b", 1, 1), ("c", 2, 1)]


def test_a_line_of_an_async_function_names_its_message(
    mock_cluster: MockCluster, topic: str, lines: Lines, awoke_run: Runs
) -> None:
    app = app_of(mock_cluster)

    async def deeper(message: awoke.Message[bytes]) -> None:
        await asyncio.sleep(0)
        logger.info(message.value.decode())

    @app.on(topic)
    async def see(message: awoke.Message[bytes]) -> None:
        await deeper(message)
        await asyncio.to_thread(logger.info, "thread")

    awoke_run(app).idle()
    found = lines.places(6)
    assert [each for each in found if each[0] != "thread"] == [("a", 0, 1), ("b", 1, 1), ("c", 2, 1)]
    assert {each["topic"] for each in lines.lines.items} == {topic}


def test_a_line_of_a_batch_names_its_first_message(
    mock_cluster: MockCluster, topic: str, lines: Lines, awoke_run: Runs
) -> None:
    app = app_of(mock_cluster)

    @app.consumer(topic)
    class See(awoke.Consumer):
        def assigned(self) -> None:
            logger.info("assigned")

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for _ in batch:
                logger.info("batch")

    awoke_run(app).idle()
    found = lines.places(4)
    assert found[:2] == [("assigned", None, None), ("batch", 0, 1)]
    assert lines.lines.items[0]["topic"] == topic


def test_a_line_of_a_method_names_its_call_and_its_trace(mock_cluster: MockCluster, lines: Lines) -> None:
    app = app_of(mock_cluster)
    app.use(tracing=True)
    span = trace.NonRecordingSpan(trace.SpanContext(0xA1, 0xB2, is_remote=False, trace_flags=trace.TraceFlags(1)))

    @app.rpc.method
    def note(text: str) -> None:
        logger.info(text)

    with running(app), rpc.Caller(app.name, settings=app.settings, timeout_s=30) as caller:
        caller.wait_until_served()
        with trace.use_span(span):
            caller.call("note", text="x")
    (found,) = lines.lines.items
    assert (found["app"], found["method"], found["partition"], found["attempt"]) == (app.name, "note", 0, 1)
    assert found["trace_id"] == f"{0xA1:032x}"


def test_a_line_outside_of_handlers_names_no_message(lines: Lines) -> None:
    logger.info("outside")
    assert lines.places(1) == [("outside", None, None)]
    assert "topic" not in lines.lines.items[0]


def test_a_task_that_outlives_its_job_keeps_no_message(
    mock_cluster: MockCluster, topic: str, lines: Lines, awoke_run: Runs
) -> None:
    app = app_of(mock_cluster)
    may_end: list[asyncio.Event] = []
    loops: list[asyncio.AbstractEventLoop] = []
    tasks: list[asyncio.Task[None]] = []

    async def later() -> None:
        await may_end[0].wait()
        logger.info("later")

    @app.on(topic)
    async def see(message: awoke.Message[bytes]) -> None:
        if not tasks:
            may_end.append(asyncio.Event())
            loops.append(asyncio.get_running_loop())
            tasks.append(asyncio.create_task(later()))

    awoke_run(app).idle()
    loops[0].call_soon_threadsafe(may_end[0].set)
    assert lines.places(1) == [("later", None, None)]


def test_work_that_is_late_names_its_place(
    mock_cluster: MockCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of(mock_cluster)
    is_late = threading.Event()
    app.events.subscribe("job.slow", lambda event: is_late.set())
    said = Collected[str]()
    handler = logging.Handler()
    handler.emit = lambda record: said.add(record.getMessage())  # type: ignore[method-assign]
    overdue = logging.getLogger("awoke.runtime.watch.overdue")
    overdue.addHandler(handler)

    @app.on(topic, max_processing_s=0.1)
    def see(message: awoke.Message[bytes]) -> None:
        if message.value == b"a":
            is_late.wait(30)

    try:
        with running(app):
            (text,) = said.wait_for(1)
    finally:
        overdue.removeHandler(handler)
    assert f"{topic}[0] offset 0" in text


def test_brokers_that_are_away_are_a_line_each_and_one_when_they_are_back(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedCluster(2) as cluster, caplog.at_level(logging.INFO, logger="awoke"):
        topic = unique("away")
        cluster.create_topic(topic)
        app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers)
        app.use(kafka={"reconnect.backoff.max.ms": 100})
        errors: Collected[str] = Collected()
        app.events.subscribe("client.error", lambda event: errors.add(event.fields["code_name"]))
        seen: Collected[bytes] = Collected()

        @app.on(topic)
        def see(message: awoke.Message[bytes]) -> None:
            seen.add(message.value)

        with running(app):
            app.producer.produce(topic, b"1").wait()
            seen.wait_for(1)
            for broker in (1, 2):
                cluster.set_broker_up(broker, False)
            errors.wait_until(lambda names: names.count("_ALL_BROKERS_DOWN") > 2 and names.count("_TRANSPORT") > 6)
            for broker in (1, 2):
                cluster.set_broker_up(broker, True)
            app.producer.produce(topic, b"2").wait()
            seen.wait_for(2)
    said = [record.getMessage() for record in caplog.records]
    assert sum("_TRANSPORT" in text for text in said) == 2
    assert 1 <= sum("_ALL_BROKERS_DOWN" in text for text in said) <= 1 + said.count("brokers answer again")
    assert not any("FAIL" in text for text in said)
