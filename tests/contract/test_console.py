"""The console: reports and error records of an app, on embedded brokers and on Kafka."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

import awoke
from awoke.console.reporter import Reporter
from awoke.console.state import read_view
from awoke.console.topics import ConsoleTopics
from awoke.console.views import ErrorRecord, Report
from awoke.console.web.live import Live
from awoke.operate.commands.views import MAJOR
from awoke.settings import load
from awoke.testing import EmbeddedCluster, running
from awoke.testing.faults import Faults
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]


def failing_app(cluster: Cluster, topic: str) -> awoke.App:
    """Returns an app whose handler fails at the value `bad`, and tries it again after long."""
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, console=True)

    @app.on(topic, start=0, retry=awoke.Retry(backoff_s=(600.0, 600.0)))
    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"bad":
            raise ValueError("no good")

    return app


def reports_of(reader: awoke.Reader) -> Iterator[Report]:
    """Yields the reports as they come, without end."""
    for message in reader:
        yield msgspec.json.decode(message.value, type=Report)


def test_a_failing_message_is_reported_and_recorded_and_an_orderly_stop_leaves_no_report(
    cluster: Cluster, topic: CreateTopic
) -> None:
    name = topic()
    app = failing_app(cluster, name)
    topics = ConsoleTopics.of(app.name)
    with running(app) as runner:
        awoke.wait_all([app.producer.produce(name, value, key=b"k") for value in (b"good", b"bad")], 30)
        reporter = runner.extension(Reporter)
        assert reporter is not None
        cluster.admin.wait_for_topic(topics.errors, 30)
        with awoke.Reader(topics.errors, bootstrap_servers=cluster.bootstrap_servers) as reader:
            record = msgspec.json.decode(next(iter(reader)).value, type=ErrorRecord)
        assert (record.topic, record.offset, record.attempt, record.error_text) == (name, 1, 1, "no good")
        assert record.key_hash is not None
        with awoke.Reader(topics.reports, bootstrap_servers=cluster.bootstrap_servers) as reader:
            report = next(each for each in reports_of(reader) if any(at.failing for at in each.partitions))
        (partition,) = report.partitions
        assert [each.offset for each in partition.failing] == [1]
        assert (report.node, report.app, report.state) == (reporter.node, app.name, "running")
    with awoke.Reader(topics.reports, bootstrap_servers=cluster.bootstrap_servers) as reader:
        last = {message.key: message.value for message in reader.read_until_end(30)}
    assert last == {report.node.encode(): None}


def test_the_state_that_is_read_names_the_failing_message_and_the_lag(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    app = failing_app(cluster, name)
    topics = ConsoleTopics.of(app.name)
    settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
    committed = Collected[object]()
    app.events.subscribe("offsets.committed", committed.add)
    with running(app):
        awoke.wait_all([app.producer.produce(name, value) for value in (b"good", b"bad", b"later")], 30)
        committed.wait_for(1)
        cluster.admin.wait_for_topic(topics.reports, 30)
        with awoke.Reader(topics.reports, bootstrap_servers=cluster.bootstrap_servers) as reader:
            next(each for each in reports_of(reader) if any(at.failing for at in each.partitions))
        view = read_view(app.name, settings)
        assert [(each.kind, each.topic, each.partition) for each in view.reasons] == [("failing message", name, 0)]
        ((partition,),) = (group.partitions for group in view.groups)
        assert (partition.committed, partition.end_offset, partition.lag) == (1, 3, 2)
        assert [each.last.offset for each in view.errors] == [1]
    after = read_view(app.name, settings)
    assert after.nodes == []
    assert [each.kind for each in after.reasons] == ["no member"]


def test_a_topic_of_reports_that_can_not_be_written_costs_one_warning_and_no_message(
    cluster: Cluster, topic: CreateTopic, caplog: pytest.LogCaptureFixture
) -> None:
    name, handled = topic(), Collected[bytes]()
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, console=True)
    app.on(name, start=0)(lambda message: handled.add(message.value))
    refused = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        # Another topic cannot be made under this name, and none is there.
        patch.setattr(ConsoleTopics, "of", classmethod(lambda cls, app: cls(*(["not a topic"] * 4))))
        patch.setattr(Reporter, "_warn", warned(Reporter._warn, refused))
        with caplog.at_level(logging.DEBUG, "awoke.console"), running(app):
            awoke.wait_all([app.producer.produce(name, b"%d" % each) for each in range(100)], 30)
            handled.wait_for(100)
            assert refused.wait(30), "the fault has not happened"
    levels = [each.levelno for each in caplog.records if each.name == "awoke.console.reporter"]
    assert levels.count(logging.WARNING) == 1
    assert len(handled.items) == 100


def warned(warn: Callable[..., None], refused: threading.Event) -> Callable[..., None]:
    """Returns the same function, which tells that it was called twice."""
    calls = itertools.count(1)

    def warn_and_tell(self: Reporter, error: awoke.AwokeError) -> None:
        warn(self, error)
        if next(calls) >= 2:
            refused.set()

    return warn_and_tell


def test_the_calls_that_an_app_answers_and_makes_are_reported(cluster: Cluster) -> None:
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, console=True)
    may_end, begun = threading.Event(), threading.Event()

    @app.rpc.method
    def wait() -> str:
        begun.set()
        may_end.wait(30)
        return "over"

    @app.rpc.method
    def double(number: int) -> int:
        return 2 * number

    topics = ConsoleTopics.of(app.name)
    with running(app), ThreadPoolExecutor(1) as others:
        caller = app.caller(app.name)
        caller.wait_until_served(30)
        assert caller.call("double", number=2, timeout_s=30) == 4
        waiting = others.submit(caller.call, "wait", timeout_s=60)
        assert begun.wait(30)
        with awoke.Reader(topics.reports, bootstrap_servers=cluster.bootstrap_servers) as reader:
            report = next(each for each in reports_of(reader) if each.calls is not None and each.calls.at_work)
        may_end.set()
        assert waiting.result(30) == "over"
    assert report.calls is not None
    (doubles,) = [each for each in report.calls.methods if each.method == "double"]
    assert doubles.outcomes == {"ok": 1}
    assert doubles.run_ms.p95 is not None
    (at_work,) = report.calls.at_work
    assert (at_work.method, report.calls.running) == ("wait", 1)
    assert report.at_ms < at_work.until_ms <= report.at_ms + 60_000
    assert [(each.service, each.open) for each in report.callers] == [(app.name, 1)]


@contextlib.contextmanager
def written_all_the_time(cluster: Cluster, topic: str, value: bytes) -> Iterator[None]:
    """Writes one record after the other, so that a reader never finds an end."""
    ended, begun = threading.Event(), threading.Event()

    def write() -> None:
        with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
            while not ended.is_set():
                producer.produce(topic, value, key=b"busy").wait(30)
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(30)
        yield
    finally:
        ended.set()
        thread.join()


def test_a_busy_topic_of_reports_counts_as_read_at_the_end_that_it_had(cluster: Cluster) -> None:
    topics = ConsoleTopics.of(unique("app"))
    name = topics.reports.removeprefix("__awoke-").removesuffix(".reports")
    settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
    cluster.admin.create_topic(topics.reports, partitions=1)
    busy = msgspec.json.encode(report_of("busy", name))
    with written_all_the_time(cluster, topics.reports, busy):
        live = Live(name, settings)
        try:
            live.start()
            assert live._read["reports"].wait(30), "the end is awaited that never comes"
            assert list(live.snapshot().reports) == ["busy"]
            assert live.snapshot().is_read
        finally:
            live.close()
        assert [each.node for each in read_view(name, settings, 30).nodes] == ["busy"]


def report_of(node: str, app: str) -> Report:
    """Returns a report of a process that does nothing."""
    return Report(
        major=MAJOR,
        minor=0,
        node=node,
        app=app,
        host="host",
        pid=1,
        started_at_ms=1,
        at_ms=1,
        sequence=1,
        state="running",
        groups=[app],
    )


def test_an_aborted_transaction_is_reported_with_its_reason() -> None:
    with EmbeddedCluster() as cluster, Faults(cluster) as faults:
        for name in ("orders", "bills"):
            cluster.create_topic(name)
        app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, console=True)
        app.on("orders", output="bills", exactly_once=True, start=0)(lambda message: message.value)
        told = Collected[object]()
        app.events.subscribe("transaction.aborted", told.add)
        aborted = faults.abort_transaction(app)
        with running(app):
            app.producer.produce("orders", b"one").wait(30)
            told.wait_for(1)
            with awoke.Reader(
                ConsoleTopics.of(app.name).reports, bootstrap_servers=cluster.bootstrap_servers
            ) as reader:
                report = next(each for each in reports_of(reader) if each.aborted)
        assert aborted.has_happened
        assert [each.count for each in report.aborted] == [1]
        assert report.aborted[0].code
        assert report.aborted[0].last_text
