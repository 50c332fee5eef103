"""The arguments of handlers beside the message, on brokers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.testing import Runs, running
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster, MockCluster
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]


class Order(msgspec.Struct):
    id: int


class Log:
    """Lines of what happened, in order. Any thread."""

    def __init__(self) -> None:
        self.lines: Collected[str] = Collected()

    def add(self, line: str) -> None:
        self.lines.add(line)


def test_parameters_get_what_their_annotations_say(
    cluster: Cluster, topic: CreateTopic, caplog: pytest.LogCaptureFixture, awoke_run: Runs
) -> None:
    name, app, seen = topic("a"), new_app(cluster), Collected[Any]()

    @app.on(name)
    def handle(
        message: awoke.Message[Order, str],
        order: awoke.Value[Order],
        key: awoke.Key[str],
        producer: awoke.Producer,
        logger: logging.Logger,
        the_app: awoke.App,
        tenant: Annotated[str, awoke.Header("tenant")],
        size: Annotated[int | None, awoke.Header("size")],
        place: awoke.Assignment,
    ) -> None:
        logger.warning("order %s", order.id)
        seen.add((message.offset, order, key, producer is app.producer, the_app is app, tenant, size, place))

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for size in (b"3", None):
            headers = [("tenant", b"acme"), *([("size", size)] if size else [])]
            producer.produce(name, b'{"id":7}', key="k", headers=headers).wait(20)
    with caplog.at_level("WARNING"):
        awoke_run(app).idle()
    found = seen.items
    rest = ("acme", 3, awoke.Assignment(name, 0))
    assert found[0] == (0, Order(7), "k", True, True, *rest)
    assert found[1][-2] is None
    (line, _) = [each for each in caplog.records if each.getMessage() == "order 7"]
    assert (line.topic, line.partition, line.offset, line.attempt) == (name, 0, 0, 1)  # type: ignore[attr-defined]
    assert line.name.endswith("handle")


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_functions_live_as_long_as_their_scope(
    cluster: Cluster, topic: CreateTopic, *, is_async: bool, awoke_run: Runs
) -> None:
    name, log = topic("a", partitions=2), Log()
    app = new_app(cluster)

    def shared() -> str:
        log.add("shared made")
        return "shared"

    def pool(shared: Annotated[str, awoke.Depends(shared, "app")]) -> Iterator[str]:
        assert shared == "shared"
        with opened(log, "pool"):
            yield "pool"

    def part(place: awoke.Assignment, pool: Annotated[str, awoke.Depends(pool, "process")]) -> Iterator[str]:
        with opened(log, f"{pool} {place.partition}"):
            yield f"{pool} {place.partition}"

    async def session_async(part: Annotated[str, awoke.Depends(part, "assignment")]) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        with opened(log, f"session of {part}"):
            yield f"session of {part}"

    def session(part: Annotated[str, awoke.Depends(part, "assignment")]) -> Iterator[str]:
        with opened(log, f"session of {part}"):
            yield f"session of {part}"

    async def handle_async(message: awoke.Message[bytes], it: Annotated[str, awoke.Depends(session_async)]) -> None:
        log.add(f"{message.value.decode()} in {it}")

    def handle(message: awoke.Message[bytes], it: Annotated[str, awoke.Depends(session)]) -> None:
        log.add(f"{message.value.decode()} in {it}")

    app.on(name)(handle_async if is_async else handle)
    for partition in (0, 1):
        send(cluster, name, [b"1", b"2"], partition=partition)
    probe = awoke_run(app)
    probe.idle()
    probe.stop()
    lines = log.lines.items
    for once in ("shared made", "pool opened", "pool closed", "pool 0 opened", "pool 0 closed", "pool 1 closed"):
        assert lines.count(once) == 1
    assert lines[:2] == ["shared made", "pool opened"]
    assert lines[-1] == "pool closed"
    of_first = [each for each in lines if "pool 0" in each]
    each_session = ["session of pool 0 opened", "{} in session of pool 0", "session of pool 0 closed"]
    expected = ["pool 0 opened", *(line.format(value) for value in (1, 2) for line in each_session), "pool 0 closed"]
    assert of_first == expected


@contextmanager
def opened(log: Log, name: str) -> Iterator[None]:
    log.add(f"{name} opened")
    yield
    log.add(f"{name} closed")


def test_an_error_ends_the_job_of_a_function_before_the_message_counts_as_done(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, log = topic("a"), new_app(cluster), Log()
    calls = iter(range(10))

    def session() -> Iterator[int]:
        number = next(calls)
        try:
            yield number
        except ValueError as error:
            log.add(f"{number} rolled back: {error}")  # It does not raise again, and hides nothing.
        else:
            if number == 1:
                raise OSError("the commit failed")
            log.add(f"{number} committed")

    @app.on(name, retry=awoke.Retry(backoff_s=(0.01, 0.01)))
    def handle(message: awoke.Message[bytes], number: Annotated[int, awoke.Depends(session)]) -> None:
        if number == 0:
            raise ValueError("the handler failed")

    send(cluster, name, [b"1"])
    probe = awoke_run(app)
    probe.idle()
    assert log.lines.items == ["0 rolled back: the handler failed", "2 committed"]
    assert [str(each.error) for each in probe.failures] == ["the handler failed", "the commit failed"]
    assert_committed(cluster, app, {(name, 0): 1})


def test_a_header_that_is_missing_is_the_failure_of_its_message_alone(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, letters, app, seen = topic("a"), topic("b"), new_app(cluster), Collected[str]()

    @app.on(name, dead_letter=letters)
    def handle(message: awoke.Message[bytes], tenant: Annotated[str, awoke.Header("tenant")]) -> None:
        seen.add(tenant)

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for headers in ([("tenant", b"a")], [], [("tenant", b"\xff")], [("tenant", b"b")]):
            producer.produce(name, b"1", headers=headers).wait(20)
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == ["a", "b"]
    assert [each.offset for each in probe.failures] == [each.offset for each in probe.dead_letters] == [1, 2]


def test_a_consumer_class_gets_arguments_for_each_batch(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, log = topic("a"), new_app(cluster), Log()

    def session() -> Iterator[str]:
        log.add("opened")
        yield "session"
        log.add("closed")

    @app.consumer(name)
    class Orders(awoke.Consumer):
        def consume(
            self, batch: awoke.Batch[bytes], producer: awoke.Producer, it: Annotated[str, awoke.Depends(session)]
        ) -> None:
            assert producer is self.app.producer
            log.add(f"{it} {len(batch)}")

    send(cluster, name, [b"1", b"2", b"3"])
    awoke_run(app).idle()
    assert log.lines.items[:3:2] == ["opened", "closed"]
    assert_committed(cluster, app, {(name, 0): 3})


def test_another_function_takes_the_place_of_one_in_a_test(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic("a"), new_app(cluster), Collected[str]()

    def database() -> str:
        raise AssertionError("the real one")

    def fake() -> str:
        return "fake"

    @app.on(name)
    def handle(message: awoke.Message[bytes], it: Annotated[str, awoke.Depends(database, "process")]) -> None:
        seen.add(it)

    send(cluster, name, [b"1"])
    with app.override(database, fake):
        awoke_run(app).idle()
    assert seen.items == ["fake"]


def test_what_a_process_needs_and_can_not_have_ends_its_start(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, log = topic("a"), new_app(cluster), Log()

    def pool() -> Iterator[str]:
        yield "pool"
        log.add("pool closed")

    def broken(pool: Annotated[str, awoke.Depends(pool, "process")]) -> str:
        raise OSError(f"no database behind the {pool}")

    @app.on(name)
    def handle(message: awoke.Message[bytes], it: Annotated[str, awoke.Depends(broken, "process")]) -> None:
        raise AssertionError

    threads = threading.active_count()
    with pytest.raises(OSError, match="no database"), running(app):
        pass
    assert log.lines.items == ["pool closed"]
    assert threading.active_count() <= threads
