"""A route's `jobs_max` bounds its jobs over all partitions, however many each of them may have."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import Cluster, MockCluster, unique
from tests.support.waiting import Collected, awork_for, work_for


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]
PARTITIONS = 6
MESSAGES = 600
JOBS_MAX = 5
WITHIN_S = 30.0


class Gauge:
    """The number of jobs that run now, and the highest that it has been."""

    def __init__(self) -> None:
        self.most = 0
        self.has_all = threading.Event()
        """As many jobs as may run have run at once. Until then a handler waits: the others are to come in time."""
        self._now = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            if self._now == JOBS_MAX:
                self.has_all.set()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._now -= 1


def send(cluster: Cluster, topic: str) -> None:
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        sent = [producer.produce(topic, b"%d" % n, key=b"%d" % n, partition=n % PARTITIONS) for n in range(MESSAGES)]
        awoke.wait_all(sent, 30)


@pytest.mark.parametrize("concurrency", [awoke.by_partition(), awoke.by_key(20), awoke.unordered(20)])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_no_more_jobs_run_at_once(
    cluster: Cluster, topic: CreateTopic, concurrency: awoke.Concurrency, kind: str
) -> None:
    name, gauge, seen = topic(partitions=PARTITIONS), Gauge(), Collected[bytes]()
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, workers=16)
    options: dict[str, Any] = {"concurrency": concurrency, "jobs_max": JOBS_MAX}
    if kind == "def":

        @app.on(name, **options)
        def handle(message: awoke.Message[bytes]) -> None:
            with gauge:
                gauge.has_all.wait(WITHIN_S)
                work_for(0.001)
                seen.add(message.value)
    else:

        @app.on(name, **options)
        async def handle_async(message: awoke.Message[bytes]) -> None:
            with gauge:
                await asyncio.to_thread(gauge.has_all.wait, WITHIN_S)
                await awork_for(0.001)
                seen.add(message.value)

    send(cluster, name)
    with running(app):
        assert set(seen.wait_for(MESSAGES)) == {b"%d" % n for n in range(MESSAGES)}
    assert gauge.most == JOBS_MAX


def test_another_route_is_not_held_up(cluster: Cluster, topic: CreateTopic) -> None:
    slow, fast, seen, release = topic(partitions=PARTITIONS), topic(), Collected[bytes](), threading.Event()
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, workers=8)

    @app.on(slow, concurrency=awoke.by_key(20), jobs_max=1)
    def wait(_message: awoke.Message[bytes]) -> None:
        release.wait(60)

    @app.on(fast)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    send(cluster, slow)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        producer.produce(fast, b"fast").wait(30)
    with running(app):
        try:
            assert seen.wait_for(1) == [b"fast"]
        finally:
            release.set()


@pytest.mark.parametrize("jobs_max", [0, -1, "many", 1.5])
def test_a_bound_that_is_none_is_refused(jobs_max: Any) -> None:
    app = awoke.App("app", bootstrap_servers="127.0.0.1:1")
    with pytest.raises(awoke.ConfigError, match="jobs_max"):
        app.on("topic", jobs_max=jobs_max)(lambda message: None)
