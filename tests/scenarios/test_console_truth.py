"""The console tells the truth of a blocked key, a pause, an open transaction, a killed process, a stopped broker."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import awoke
from awoke.console.commands import Commander
from awoke.console.process_commands import commands_of
from awoke.console.reporter import Reporter
from awoke.console.state import read_view
from awoke.console.topics import ConsoleTopics
from awoke.console.views import AppView, Reason
from awoke.console.web.live import Live
from awoke.console.web.snapshot import Snapshot
from awoke.settings import Settings, load
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.kafka_cluster import ThreeBrokers
from tests.support.processes import Process
from tests.support.swarms import TARGET, Swarm
from tests.support.waiting import Collected, wait_until

LONG_S = 60.0
TOLD_WITHIN_S = 15.0
"""The brokers are asked every 2 s; the rest is for a busy machine."""
LATER_WITHIN_S = 25.0
"""For what an overdue report tells (12 s), or two statistics of librdkafka (10 s)."""


@pytest.fixture
def own_cluster() -> Iterator[RealCluster]:
    """A broker of this test alone, which it stops."""
    cluster = RealCluster()
    yield cluster
    cluster.close()


def load_settings(bootstrap_servers: str) -> Settings:
    return load({"bootstrap_servers": bootstrap_servers}).values


def settings_of(cluster: RealCluster) -> Settings:
    return load_settings(cluster.bootstrap_servers)


class Console:
    """A console whose page is fetched again and again, and how long it takes to tell each fact."""

    def __init__(self, app: str, settings: Settings) -> None:
        self.live = Live(app, settings)
        wait_until(lambda: self.live.snapshot().problem is None, "the console reads the reports", LONG_S)

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *_: object) -> None:
        self.live.close()

    def tells(self, fact: str, is_so: Callable[[Snapshot], bool], within_s: float = TOLD_WITHIN_S) -> Snapshot:
        """Waits until the console tells a fact that is true from now on, prints the time, and returns the state."""
        began_s, found = time.monotonic(), list[Snapshot]()

        def is_told() -> bool:
            found[:] = [self.live.snapshot()]
            return is_so(found[0])

        wait_until(is_told, f"the console tells: {fact}", within_s)
        print(f"told after {time.monotonic() - began_s:.1f} s: {fact}")
        return found[0]


def reason_of(now: Snapshot, kind: str, place: tuple[str, int] | None = None) -> Reason | None:
    """The reason of this kind, and of this topic and partition if they are given."""
    found = [each for each in now.view.reasons if each.kind == kind]
    return next((each for each in found if place is None or (each.topic, each.partition) == place), None)


def lags(view: AppView) -> dict[tuple[str, int], int | None]:
    return {(each.topic, each.partition): each.lag for group in view.groups for each in group.partitions}


def lags_by_another_client(cluster: RealCluster, group: str, topic: str) -> dict[tuple[str, int], int | None]:
    """Returns the lag of all partitions as the tools of Kafka compute it: the end less the committed offset."""
    where = {"bootstrap.servers": cluster.bootstrap_servers, "isolation.level": "read_uncommitted"}  # As Kafka's tools.
    client = confluent_kafka.Consumer({**where, "group.id": group})
    try:
        places = [confluent_kafka.TopicPartition(topic, partition) for partition in range(3)]
        committed = client.committed(places, timeout=LONG_S)
        ends = [client.get_watermark_offsets(each, timeout=LONG_S)[1] for each in places]
    finally:
        client.close()
    return {
        (topic, each.partition): None if each.offset < 0 else end - each.offset
        for each, end in zip(committed, ends, strict=True)
    }


def test_the_console_tells_what_blocks_and_its_lag_is_that_of_other_tools(own_cluster: RealCluster) -> None:
    topic, settings = unique("truth"), settings_of(own_cluster)
    own_cluster.create_topic(topic, 3)
    app = awoke.App(
        unique("app"),
        bootstrap_servers=own_cluster.bootstrap_servers,
        console=True,
        console_commands="pause",
        kafka={"reconnect.backoff.max.ms": 500},
    )
    failed, done = Collected[object](), Collected[bytes]()
    app.events.subscribe("job.failed", failed.add)

    @app.on(topic, start=0, retry=awoke.Retry(backoff_s=(600.0, 600.0)))
    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"bad":
            raise ValueError("no good")
        done.add(message.value)

    def send(partition: int, *values: bytes) -> None:
        awoke.wait_all([app.producer.produce(topic, each, key=b"k", partition=partition) for each in values], LONG_S)

    def check_lag(expected: int | None, partition: int) -> None:
        def is_same() -> bool:
            told = lags(read_view(app.name, settings))
            return told == lags_by_another_client(own_cluster, app.name, topic) and told[topic, partition] == expected

        wait_until(is_same, f"the lag of partition {partition} is {expected} for both", LONG_S)

    with (
        running(app) as runner,
        Commander(app.name, settings=settings) as commander,
        Console(app.name, settings) as console,
    ):
        send(0, b"good", b"bad", b"later")
        failed.wait_for(1)
        console.tells("a key blocks", lambda now: reason_of(now, "failing message", (topic, 0)) is not None)
        check_lag(2, 0)

        send(1, b"good")
        check_lag(0, 1)
        reporter = runner.extension(Reporter)
        assert reporter is not None
        assert commands_of(runner).wait_open(LONG_S)
        place: dict[str, Any] = {"topic": topic, "partition": 1}
        commander.send(reporter.node, "pause", who="ann", reason="a test", timeout_s=LONG_S, **place)
        console.tells("a partition is paused", lambda now: reason_of(now, "paused", (topic, 1)) is not None)
        send(1, b"waits", b"waits")
        check_lag(2, 1)

        with awoke.Producer(own_cluster.bootstrap_servers, transactional_id=unique("open")) as producer:
            with producer.transaction() as transaction:
                transaction.produce(topic, b"before", partition=2)
            done.wait_until(lambda values: b"before" in values, LONG_S)
            transaction = producer.transaction()
            with pytest.raises(ZeroDivisionError), transaction:
                transaction.produce(topic, b"open", partition=1).wait(LONG_S)
                transaction.produce(topic, b"open", partition=2).wait(LONG_S)
                now = console.tells(
                    "a transaction was left open", lambda now: reason_of(now, "open transaction") is not None
                )
                reason = reason_of(now, "open transaction", (topic, 2))
                assert reason is not None
                assert "has a transaction at offset 2 that is open for" in reason.text  # Its marker has offset 1.
                assert "1 message waits behind it" in reason.text
                assert "find-hanging" in reason.advice
                assert reason_of(now, "open transaction", (topic, 1)) is None  # The pause keeps its messages.
                check_lag(3, 1)
                raise ZeroDivisionError
            console.tells("the transaction has ended", lambda now: reason_of(now, "open transaction") is None)
        check_lag(4, 1)

        own_cluster.kafka.stop()
        now = console.tells("the brokers are away", lambda now: now.problem is not None)
        assert "not" in (now.problem or "")


def test_the_console_tells_that_a_node_was_killed(real_cluster: RealCluster, tmp_path: Path) -> None:
    topic, settings = unique("truth"), settings_of(real_cluster)
    real_cluster.create_topic(topic, 2)
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=2, env={"AWOKE_CONSOLE": "true"}) as swarm:
        swarm.wait_up(2, assigned=2)
        killed = swarm.pid_of(1)
        with Console("swarm", settings) as console:
            swarm.kill(1)

            def is_told(now: Snapshot) -> bool:
                nodes = [each for report in now.reports.values() for each in report.swarm if each.node == 1]
                return any("SIGKILL" in each.last_error for each in nodes)

            console.tells("a node was killed", is_told)
        swarm.wait_until(lambda found: any(each["restarts"] for each in found["nodes"]))
        assert swarm.pid_of(1) != killed


def test_the_console_tells_that_a_process_without_a_supervisor_was_killed(real_cluster: RealCluster) -> None:
    topic, settings = unique("truth"), settings_of(real_cluster)
    real_cluster.create_topic(topic)
    env = {"SWARM_TOPIC": topic, "AWOKE_GROUP": topic, "AWOKE_CONSOLE": "true"}
    with (
        Process("run", TARGET, "-b", real_cluster.bootstrap_servers, env=env) as process,
        Console("swarm", settings) as console,
    ):

        def node() -> str | None:
            reports = console.live.snapshot().live.values()
            return next((each.node for each in reports for at in each.partitions if at.topic == topic), None)

        wait_until(lambda: node() is not None, "the process reports its partition", LONG_S)
        name = node()
        process.signal(signal.SIGKILL)
        process.wait()

        def reason(now: Snapshot) -> Reason | None:
            return next((each for each in now.view.reasons if (each.kind, each.node) == ("no report", name)), None)

        now = console.tells(
            "a process without a supervisor was killed", lambda now: reason(now) is not None, LATER_WITHIN_S
        )
        found = reason(now)
        assert found is not None
        assert "expected every 10 s; 1 partition of it waits" in found.text
        assert "it was killed" in found.advice


def test_the_console_tells_that_an_output_acknowledges_nothing() -> None:
    topic, output = unique("truth"), unique("output")
    brokers = ThreeBrokers()
    with brokers:
        servers = brokers.servers_of(1)
        app, settings = awoke.App(unique("app"), bootstrap_servers=servers, console=True), load_settings(servers)
        for name, broker in ((topic, 1), (output, 2), *((each, 1) for each in ConsoleTopics.of(app.name).configs)):
            brokers.create_topic(name, [[broker]], {})
        done, committed = Collected[int](), Collected[object]()
        app.events.subscribe("offsets.committed", committed.add)

        @app.on(topic, start=0, output=output)
        def forward(message: awoke.Message[bytes]) -> bytes:
            done.add(message.offset)
            return message.value

        with running(app), Console(app.name, settings) as console:
            app.producer.produce(topic, b"one").wait(LONG_S)
            done.wait_for(1)
            committed.wait_for(1)  # The app knows that the first result is acknowledged: the brokers know it earlier.
            brokers.freeze_broker(2)
            try:
                app.producer.produce(topic, b"two").wait(LONG_S)
                done.wait_for(2)
                now = console.tells(
                    "an output acknowledges nothing", lambda now: reason_of(now, "output") is not None, LATER_WITHIN_S
                )
                reason = reason_of(now, "output")
                assert reason is not None
                assert f"topic {output} (of " in reason.text
                assert "forward): 1 message waits for an acknowledgement, and none was acknowledged" in reason.text
            finally:
                brokers.thaw_broker(2)
            console.tells("the output goes on", lambda now: reason_of(now, "output") is None, LONG_S)


def test_the_console_of_an_app_that_reads_no_topics_tells_that_the_brokers_are_away(own_cluster: RealCluster) -> None:
    settings = settings_of(own_cluster)
    kafka = {"reconnect.backoff.max.ms": 500}
    app = awoke.App(unique("calls"), bootstrap_servers=own_cluster.bootstrap_servers, console=True, kafka=kafka)

    @app.rpc.method
    def add(a: int, b: int) -> int:
        return a + b

    with running(app), Console(app.name, settings) as console:
        wait_until(lambda: bool(console.live.snapshot().reports), "the process reports", LONG_S)
        produces = Live(unique("produces"), settings)  # Such a program sends no reports.
        try:
            wait_until(lambda: "console=True" in (produces.snapshot().problem or ""), "there are no reports", LONG_S)
            own_cluster.kafka.stop()
            console.tells("the brokers of an app that only answers calls are away", lambda now: now.problem is not None)
            wait_until(lambda: "answered" in (produces.snapshot().problem or ""), "the same, without", TOLD_WITHIN_S)
        finally:
            produces.close()
