"""A partition is revoked, or the app stopped, while a handler runs, backs off or ticks: nothing is lost or moved."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import Collected

PARTITIONS = 4
MESSAGES = 40
SOON = awoke.Retry(backoff_s=(0.3, 0.3), jitter=0.0)
Seen = Collected[tuple[int, int]]


def app_in(state: str, cluster: RealCluster, topic: str, group: str, seen: Seen) -> tuple[awoke.App, threading.Event]:
    """An app, and the event that it is in the state: the first message of each partition brings it there."""
    app, there = (
        awoke.App(unique("member"), group=group, bootstrap_servers=cluster.bootstrap_servers),
        threading.Event(),
    )
    visited: set[int] = set()
    lock = threading.Lock()

    def is_first(partition: int) -> bool:
        with lock:
            return partition not in visited and not visited.add(partition)  # type: ignore[func-returns-value]

    @app.consumer(topic, retry=SOON, batch=awoke.Batching(max_messages=3), tick_every_s=0.05)
    class Visiting(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                if state == "backing off" and message.offset == 4 and is_first(self.partition):
                    there.set()
                    raise OSError("not yet")
                if state == "running" and message.offset == 4 and is_first(self.partition):
                    there.set()
                    self.stopping.wait(0.5)
                seen.add((self.partition, message.offset))
                self.mark(message)

        def tick(self) -> None:
            if state == "ticking" and is_first(self.partition):
                there.set()
                self.stopping.wait(0.5)

    return app, there


def fill(cluster: RealCluster, topic: str) -> None:
    """Sends `count` messages into each partition."""
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        sent = [
            producer.produce(topic, b"value", partition=partition)
            for partition in range(PARTITIONS)
            for _ in range(MESSAGES)
        ]
        awoke.wait_all(sent, 30)


def is_complete(items: object) -> bool:
    return len(set(items)) == PARTITIONS * MESSAGES  # type: ignore[call-overload]


def check(seen: Seen, cluster: RealCluster, group: str, topic: str) -> None:
    """All of them, in order, none twice: every member left in order, and each message was marked."""
    for partition in range(PARTITIONS):
        assert [offset for at, offset in seen.items if at == partition] == list(range(MESSAGES))
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        assert admin.group_offsets(group) == {(topic, partition): MESSAGES for partition in range(PARTITIONS)}


@pytest.fixture
def filled(real_cluster: RealCluster) -> Callable[[], tuple[str, str]]:
    def create() -> tuple[str, str]:
        topic = unique("revoked")
        real_cluster.create_topic(topic, PARTITIONS)
        fill(real_cluster, topic)
        return topic, unique("group")

    return create


@pytest.mark.parametrize("state", ["running", "backing off", "ticking"])
def test_a_member_joins_meanwhile(real_cluster: RealCluster, filled: Callable[[], tuple[str, str]], state: str) -> None:
    topic, group = filled()
    seen: Seen = Collected()
    first, there = app_in(state, real_cluster, topic, group, seen)
    second, _ = app_in("at rest", real_cluster, topic, group, seen)
    moved: Collected[awoke.Event] = Collected()
    first.events.subscribe("partitions.revoked", moved.add)
    with running(first):
        assert there.wait(30)
        with running(second):
            moved.wait_for(1)
            seen.wait_until(is_complete)
    check(seen, real_cluster, group, topic)


@pytest.mark.parametrize("state", ["running", "backing off", "ticking"])
def test_the_app_stops_meanwhile(real_cluster: RealCluster, filled: Callable[[], tuple[str, str]], state: str) -> None:
    topic, group = filled()
    seen: Seen = Collected()
    first, there = app_in(state, real_cluster, topic, group, seen)
    with running(first):
        assert there.wait(30)
    second, _ = app_in("at rest", real_cluster, topic, group, seen)
    with running(second):
        seen.wait_until(is_complete)
    check(seen, real_cluster, group, topic)


def test_a_job_that_outlives_its_revocation_moves_no_offset(real_cluster: RealCluster) -> None:
    topic, group = unique("fenced"), unique("group")
    real_cluster.create_topic(topic)
    told, release = Collected[str](), threading.Event()
    overdue: Collected[awoke.Event] = Collected()
    app = awoke.App(
        unique("member"), group=group, bootstrap_servers=real_cluster.bootstrap_servers, shutdown_timeout_s=0.2
    )
    app.events.subscribe("job.overdue", overdue.add)

    @app.consumer(topic)
    class Slow(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            told.add("began")
            assert release.wait(30)
            told.add("ended")

        def lost(self) -> None:
            told.add("lost")

    with awoke.Producer(real_cluster.bootstrap_servers) as producer:
        producer.produce(topic, b"value").wait(30)
    server = awoke.AppRunner(app)
    server.start()
    told.wait_for(1)
    assert not server.stop()
    assert overdue.wait_for(1)[0].fields["partitions"] == [(topic, 0)]
    release.set()
    assert told.wait_for(3) == ["began", "ended", "lost"]
    for worker in server._pool.workers:
        assert worker.join(30)
    with awoke.Admin(real_cluster.bootstrap_servers) as admin:
        assert admin.group_offsets(group) == {}
