"""Records that any writer may put into the console's topics end no thread, no report and no page."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke.console.process_commands import ProcessCommands
from awoke.console.state import read_view
from awoke.console.topics import ConsoleTopics
from awoke.console.web.live import Live
from awoke.operate.commands.pauses import key_of
from awoke.testing import running
from tests.contract.test_consume import new_app
from tests.support.clusters import Cluster, MockCluster, unique
from tests.support.waiting import wait_until

DEEP = b'{"major":1,"minor":1,"at_ms":1,"node":"n","state":"running","x":' + b"[" * 1_000 + b"]" * 1_000 + b"}"
HUGE = b'{"major":1,"at_ms":1' + b"0" * 300 + b',"node":"n","state":"running"}'
ENDLESS = b'{"major":1,"minor":1,"at_ms":1,"node":"n","state":"running","interval_ms":1e999}'
WRONG = (DEEP, DEEP[:200], HUGE, ENDLESS, b"\xff", b"", b"null", b"[" * 100_000, b'{"why":' + b"[" * 1_000)


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: the records are the same on real ones."""
    return mock_cluster


def write(cluster: Cluster, topics: ConsoleTopics) -> None:
    """Writes each wrong record into each topic."""
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        for topic in topics:
            for number, value in enumerate(WRONG):
                keys = (b"n%d" % number, b"[" * 1_000, key_of(None, "orders", number))
                awoke.wait_all([producer.produce(topic, value, key=key) for key in keys], 30)


def console_app(cluster: Cluster, **options: Any) -> awoke.App:
    return new_app(cluster, console=True, console_commands="pause,resume", console_secret="s" * 40, **options)


def test_no_record_ends_a_thread_that_follows_a_topic(cluster: Cluster) -> None:
    topic = awoke.Topic(unique("orders"), value=awoke.encrypted(keys={"a": b"k" * 32}, current="a"))
    letters, output = awoke.Topic(unique("letters"), key=int), awoke.Topic(unique("out"), key=int)
    for each in (topic, letters, output):
        cluster.create_topic(str(each), 1)
    app = console_app(cluster)

    @app.on(topic, dead_letter=letters, output=output)
    def handle(message: awoke.Message[bytes]) -> bytes:
        raise ValueError("no")

    topics = ConsoleTopics.of(app.name)
    with running(app) as runner:
        commands = runner.extension(ProcessCommands)
        assert commands is not None
        assert commands.wait_open(30)
        write(cluster, topics)
        app.producer.produce(topic, b"x").wait(30)
        live = Live(app.name, app.settings)
        try:
            wait_until(lambda: len(live.snapshot().reports) == 1, "the report of the app")
            wait_until(lambda: live.snapshot().view.unreadable >= len(WRONG), "wrong records are counted")
            wait_until(lambda: len(live.snapshot().errors) > 0, "error records")
            assert live.snapshot().problem is None
            assert next(iter(live.snapshot().reports.values())).handlers[0].dead_letter == str(letters)
        finally:
            live.close()
        assert not [each for each in runner.health().reasons if "console" in each or "pauses" in each]
        view = read_view(app.name, app.settings)
        assert view.unreadable >= len(WRONG)
        assert [each.report() is not None for each in view.nodes] == [True]
        msgspec.json.encode(view)
