"""Health names what is wrong with its place; lag and the rest are there from the start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected, became

CreateTopic = Callable[..., str]
RETRY = awoke.Retry(backoff_s=(0.1, 0.2))


def send(cluster: Cluster, topic: str, count: int) -> None:
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, b"%d" % n, key=b"key-%d" % n) for n in range(count)], 30)


def new_app(cluster: Cluster, **settings: Any) -> awoke.App:
    return awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, **settings)


@pytest.mark.parametrize("kind", ["def", "async def", "class", "lanes"])
def test_a_message_that_blocks_its_partition_is_named_until_it_is_done(
    cluster: Cluster, topic: CreateTopic, kind: str
) -> None:
    name, app, seen = topic(), new_app(cluster, blocked_after_s=0.5), Collected[bytes]()
    is_mended = threading.Event()

    def work(message: awoke.Message[bytes]) -> None:
        if message.offset == 2 and not is_mended.is_set():
            raise ValueError("the database is away")
        seen.add(message.value)

    if kind in ("def", "lanes"):
        app.on(name, retry=RETRY, concurrency=awoke.by_key(4) if kind == "lanes" else None)(work)
    elif kind == "async def":

        @app.on(name, retry=RETRY)
        async def work_async(message: awoke.Message[bytes]) -> None:
            work(message)
    else:

        @app.consumer(name, retry=RETRY)
        class Working(awoke.Consumer):
            def consume(self, batch: awoke.Batch[bytes]) -> None:
                for message in batch:
                    work(message)
                    self.mark(message)

    send(cluster, name, 5)
    with running(app) as server:
        assert became(lambda: not server.health().is_healthy, 20)
        (reason,) = server.health().reasons
        for word in (f"{name}[0] is blocked", "offset 2", "key-2", "the database is away", "tried"):
            assert word in reason
        assert server.own.failing() == [(name, 0)]
        is_mended.set()
        assert set(seen.wait_for(5)) == {b"%d" % n for n in range(5)}
        assert became(lambda: server.health().is_healthy, 20)
        assert server.own.failing() == []


def test_one_failure_is_no_reason(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, failed = topic(), new_app(cluster), threading.Event()

    @app.on(name, retry=awoke.Retry(backoff_s=(30.0, 30.0)))
    def work(_message: awoke.Message[bytes]) -> None:
        failed.set()
        raise ValueError

    send(cluster, name, 1)
    with running(app) as server:
        assert failed.wait(20)
        assert became(lambda: server.own.failing() == [(name, 0)], 20)
        assert server.health().is_healthy


def test_lag_is_there_before_anything_is_done(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, began, release = topic(partitions=3), new_app(cluster), threading.Event(), threading.Event()

    @app.on(name, batch=awoke.Batching(max_messages=1))
    def work(_message: awoke.Message[bytes]) -> None:
        began.set()
        release.wait(60)

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(name, b"value", partition=0) for _ in range(10)], 30)
    with running(app) as server:
        try:
            assert began.wait(20)
            assert became(lambda: {each.partition: each.lag for each in server.partitions()} == {0: 10, 1: 0, 2: 0}, 20)
        finally:
            release.set()


def test_lag_is_there_for_a_group_that_goes_on(cluster: Cluster, topic: CreateTopic) -> None:
    name, group, seen, lags = topic(), unique("app"), Collected[bytes](), []
    send(cluster, name, 10)
    for _life in range(2):
        app = awoke.App(group, bootstrap_servers=cluster.bootstrap_servers)
        app.on(name)(lambda message: seen.add(message.value))
        with running(app) as server:
            assert became(lambda: [each.lag for each in server.partitions()] == [0], 30)
            lags.append([each.lag for each in server.partitions()])
    assert lags == [[0], [0]]
    assert len(seen.items) == 10


def test_what_is_done_beyond_the_offset_is_counted(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen, release = topic(), new_app(cluster), Collected[bytes](), threading.Event()

    @app.on(name, concurrency=awoke.by_key(8))
    def work(message: awoke.Message[bytes]) -> None:
        if message.offset == 0:
            release.wait(60)
        seen.add(message.value)

    send(cluster, name, 100)
    with running(app) as server:
        try:
            seen.wait_for(99)
            assert became(
                lambda: [each.commit_gap and each.commit_gap.done for each in server.partitions()] == [99], 20
            )
            assert [each.lag for each in server.partitions()] == [100]
        finally:
            release.set()


def test_an_app_is_ready_from_its_first_assignment_until_it_is_quiet(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen = topic(partitions=2), new_app(cluster), Collected[bytes]()
    app.on(name)(lambda message: seen.add(message.value))
    runner = awoke.AppRunner(app)
    assert runner.why_not_ready() is not None
    send(cluster, name, 10)
    runner.start()
    try:
        seen.wait_for(10)
        assert became(lambda: sum(each["lag"] or 0 for each in runner.status()["partitions"]) == 0, 20)
        status = runner.status()
        assert runner.why_not_ready() is None
        assert (status["app"], status["is_ready"], status["health"]["is_healthy"]) == (app.name, True, True)
        assert [(each["topic"], each["partition"]) for each in status["partitions"]] == [(name, 0), (name, 1)]
        runner.quiet()
        assert "quiet" in (runner.why_not_ready() or "")
    finally:
        runner.stop()


def test_the_connections_of_a_consumer_are_measured(cluster: Cluster, topic: CreateTopic) -> None:
    app = new_app(cluster, metrics_port=0, kafka={"statistics.interval.ms": 200})
    app.on(topic())(lambda message: None)
    measured = 'awoke_connected_brokers{client="consumer"} 1.0'
    with running(app) as runner:
        assert became(lambda: measured in runner.metrics_text().decode(), 20)
