"""The console tells the truth of a blocked key, a pause, an open transaction, a killed node, a stopped broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import awoke
from awoke.console.commands import Commander
from awoke.console.state import read_view
from awoke.console.views import AppView
from awoke.console.web.live import Live
from awoke.settings import Settings, load
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.swarms import Swarm
from tests.support.waiting import Collected, wait_until

LONG_S = 60.0


@pytest.fixture
def own_cluster() -> Iterator[RealCluster]:
    """A broker of this test alone, which it stops."""
    cluster = RealCluster()
    yield cluster
    cluster.close()


def settings_of(cluster: RealCluster) -> Settings:
    return load({"bootstrap_servers": cluster.bootstrap_servers}).values


def seen(app: str, settings: Settings, is_so: Callable[[AppView], bool], what: str) -> AppView:
    """Waits until the console tells something, and returns all that it tells then."""
    found: list[AppView] = []

    def is_told() -> bool:
        found[:] = [read_view(app, settings)]
        return is_so(found[0])

    wait_until(is_told, what, LONG_S)
    return found[0]


def kinds(view: AppView) -> set[tuple[str, str | None, int | None]]:
    return {(each.kind, each.topic, each.partition) for each in view.reasons}


def lags(view: AppView) -> dict[tuple[str, int], int | None]:
    return {(each.topic, each.partition): each.lag for group in view.groups for each in group.partitions}


def lags_by_another_client(cluster: RealCluster, group: str, topic: str) -> dict[tuple[str, int], int | None]:
    """Returns the lag of two partitions as the tools of Kafka compute it: the end less the committed offset."""
    where = {"bootstrap.servers": cluster.bootstrap_servers, "isolation.level": "read_uncommitted"}  # As Kafka's tools.
    client = confluent_kafka.Consumer({**where, "group.id": group})
    try:
        places = [confluent_kafka.TopicPartition(topic, partition) for partition in range(2)]
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
    own_cluster.create_topic(topic, 2)
    app = awoke.App(
        unique("app"),
        bootstrap_servers=own_cluster.bootstrap_servers,
        console=True,
        console_commands="pause",
        kafka={"reconnect.backoff.max.ms": 500},
    )
    failed = Collected[object]()
    app.events.subscribe("job.failed", failed.add)

    @app.on(topic, start=0, retry=awoke.Retry(backoff_s=(600.0, 600.0)))
    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"bad":
            raise ValueError("no good")

    def send(partition: int, *values: bytes) -> None:
        awoke.wait_all([app.producer.produce(topic, each, key=b"k", partition=partition) for each in values], LONG_S)

    def check_lag(expected: int | None, partition: int) -> None:
        def is_same() -> bool:
            told = lags(read_view(app.name, settings))
            return told == lags_by_another_client(own_cluster, app.name, topic) and told[topic, partition] == expected

        wait_until(is_same, f"the lag of partition {partition} is {expected} for both", LONG_S)

    with running(app) as runner, Commander(app.name, settings=settings) as commander:
        send(0, b"good", b"bad", b"later")
        failed.wait_for(1)
        seen(app.name, settings, lambda view: ("failing message", topic, 0) in kinds(view), "a key blocks")
        check_lag(2, 0)

        send(1, b"good")
        check_lag(0, 1)
        assert runner.console is not None
        assert runner.commands is not None
        assert runner.commands.wait_open(LONG_S)
        place: dict[str, Any] = {"topic": topic, "partition": 1}
        commander.send(runner.console.node, "pause", who="ann", reason="a test", timeout_s=LONG_S, **place)
        send(1, b"waits", b"waits")
        seen(app.name, settings, lambda view: ("paused", topic, 1) in kinds(view), "a partition is paused")
        check_lag(2, 1)

        with awoke.Producer(own_cluster.bootstrap_servers, transactional_id=unique("open")) as producer:
            transaction = producer.transaction()
            with pytest.raises(ZeroDivisionError), transaction:
                transaction.produce(topic, b"open", partition=1).wait(LONG_S)
                check_lag(3, 1)
                raise ZeroDivisionError
        check_lag(4, 1)

        live = Live(app.name, settings)
        try:
            assert live.snapshot().problem is None
            own_cluster.kafka.stop()
            wait_until(lambda: live.snapshot().problem is not None, "the console tells that the broker is away", LONG_S)
        finally:
            live.close()


def test_the_console_tells_that_a_node_was_killed(real_cluster: RealCluster, tmp_path: Path) -> None:
    topic, settings = unique("truth"), settings_of(real_cluster)
    real_cluster.create_topic(topic, 2)
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=2, env={"AWOKE_CONSOLE": "true"}) as swarm:
        swarm.wait_up(2, assigned=2)
        killed = swarm.pid_of(1)
        swarm.kill(1)

        def is_told(view: AppView) -> bool:
            reports = [report for node in view.nodes if (report := node.report()) is not None]
            nodes = [each for report in reports for each in report.swarm if each.node == 1]
            return any(each.restarts and "SIGKILL" in each.last_error for each in nodes)

        view = seen("swarm", settings, is_told, "node 1 was killed and started again")
        assert swarm.pid_of(1) != killed
        assert view.nodes
