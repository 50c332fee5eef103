"""Partitions that a route names, read without a group: a killed process and an absent broker lose nothing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.testing import running
from tests.scenarios.test_restart import Ledger
from tests.support.clusters import MISSED_SOON, RealCluster, unique
from tests.support.processes import Process
from tests.support.waiting import Collected, wait_until

MESSAGES = 20_000
KAFKA: dict[str, str | int] = {"reconnect.backoff.max.ms": 500}


@pytest.fixture(scope="module")
def broker() -> Iterator[RealCluster]:
    """A broker of this file's own, which is killed and started again."""
    cluster = RealCluster(kafka=MISSED_SOON)
    yield cluster
    cluster.close()


def fill(cluster: RealCluster, topic: str, partitions: int, each: int) -> None:
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        for partition in range(partitions):
            producer.produce_many(topic, [awoke.Record(b"x" * 100, partition=partition)] * each)
        assert producer.flush(60)


def start(cluster: RealCluster, group: str, topic: str, file: Path, partitions: str) -> Process:
    env = {
        "COUNTING_TOPIC": topic,
        "COUNTING_LOG": str(file),
        "COUNTING_PARTITIONS": partitions,
        "AWOKE_GROUP": group,
        "AWOKE_COMMIT_INTERVAL_S": "0.05",
    }
    return Process("run", "tests.scenarios.counting_app:app", "--bootstrap-servers", cluster.bootstrap_servers, env=env)


def test_a_killed_process_goes_on_at_once_where_it_has_committed(real_cluster: RealCluster, tmp_path: Path) -> None:
    """No session has to end before: no group assigns the partitions."""
    topic, group, file = unique("named"), unique("group"), tmp_path / "ledger"
    real_cluster.create_topic(topic, 4)
    fill(real_cluster, topic, 4, MESSAGES)
    ledger, place = Ledger(file), f"{group}.partitions"
    for kill in range(3):
        with start(real_cluster, group, topic, file, "0 3") as process:
            count = 5_000 * (kill + 1)
            wait_until(lambda: ledger.count() >= count, f"{count} are done", 60.0, every_s=0.02)  # noqa: B023
            process.signal(signal.SIGKILL)
            process.wait()
    with start(real_cluster, group, topic, file, "0 3") as process:
        ends = {(topic, partition): MESSAGES for partition in (0, 3)}
        # The killed processes may have done all, and committed less: the offsets tell that this one is done.
        wait_until(lambda: real_cluster.admin.group_offsets(place) == ends, "all messages are committed", 60.0)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.output
    assert not ledger.missing({0: MESSAGES, 3: MESSAGES})
    assert {partition for partition, _, _ in ledger.ranges()} == {0, 3}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_broker_that_was_away_is_read_again(broker: RealCluster, protocol: str) -> None:
    topic, group, seen = unique("named"), unique("group"), Collected[tuple[int, int]]()
    broker.create_topic(topic, 2)
    kafka = {**KAFKA, "group.protocol": protocol}
    app = awoke.App(unique("app"), group=group, bootstrap_servers=broker.bootstrap_servers, kafka=kafka)

    @app.on(topic, partitions=[0, 1])
    def see(message: awoke.Message[bytes]) -> None:
        seen.add((message.partition, message.offset))

    fill(broker, topic, 2, 100)
    with running(app) as server:
        seen.wait_for(200)
        broker.kafka.kill_broker(1)
        broker.kafka.start_broker(1)
        fill(broker, topic, 2, 100)
        seen.wait_for(400, 90)
        assert len(set(seen.items)) == 400
        wait_until(lambda: server.health().is_healthy, "it is healthy", 60)
    ends = {(topic, 0): 200, (topic, 1): 200}
    assert broker.admin.group_offsets(f"{group}.partitions") == ends


def test_a_deleted_topic_is_named_and_does_not_keep_another_one_from_its_commits(broker: RealCluster) -> None:
    deleted, other, group = unique("deleted"), unique("other"), unique("group")
    seen: Collected[str] = Collected()
    app = awoke.App(unique("app"), group=group, bootstrap_servers=broker.bootstrap_servers, kafka=KAFKA)
    app.use(commit_interval_s=0.2)
    is_deleted = threading.Event()

    @app.on([deleted, other], partitions=[0])
    def see(message: awoke.Message[bytes]) -> None:
        if message.topic == deleted:
            is_deleted.wait(30)  # So that its offset is to be committed when the topic is gone.
        seen.add(message.topic)

    fill(broker, created(broker, deleted), 1, 1)
    fill(broker, created(broker, other), 1, 10)
    with running(app) as server:
        seen.wait_until(lambda items: items.count(other) == 10)
        broker.admin.delete_topic(deleted)
        is_deleted.set()
        wait_until(lambda: any(deleted in reason for reason in server.health().reasons), "the topic is named", 60)
        fill(broker, other, 1, 10)
        seen.wait_until(lambda items: items.count(other) == 20)
        ends = {(other, 0): 20}
        wait_until(lambda: ends.items() <= broker.admin.group_offsets(f"{group}.partitions").items(), "it commits")


def created(cluster: RealCluster, topic: str) -> str:
    """Creates a topic and returns its name."""
    cluster.create_topic(topic, 1)
    return topic


def test_the_topic_is_created_again_while_its_partitions_are_read(broker: RealCluster) -> None:
    topic, seen = unique("named"), Collected[tuple[int, int]]()
    broker.create_topic(topic, 1)
    app = awoke.App(unique("app"), bootstrap_servers=broker.bootstrap_servers, kafka=KAFKA)
    app.use(kafka={"topic.metadata.refresh.interval.ms": 500})

    @app.on(topic, partitions=[0])
    def see(message: awoke.Message[bytes]) -> None:
        seen.add((message.partition, len(message.value)))

    fill(broker, topic, 1, 50)
    with running(app):
        seen.wait_for(50)
        broker.admin.delete_topic(topic)
        broker.create_topic(topic, 1)
        fill(broker, topic, 1, 80)
        seen.wait_for(130, 90)
