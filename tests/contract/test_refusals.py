"""A message whose result, or dead letter, is refused for good: its handler does not run for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import awoke
from awoke.testing import Runs
from tests.contract.test_consume import assert_committed, committed, new_app, send
from tests.contract.test_recovery import letters
from tests.support.clusters import Cluster, reading, unique
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]
BIG = b"big"
TOO_LARGE = b"x" * 5_000
LIMIT = 2_000


def small_topic(cluster: Cluster) -> str:
    """A topic whose brokers refuse what is larger than the limit."""
    name = unique("small")
    cluster.admin.create_topic(name, partitions=1, config={"max.message.bytes": str(LIMIT)}, timeout_s=30)
    return name


def values_of(cluster: Cluster, topic: str) -> list[bytes | None]:
    return [message.value for message in letters(cluster, topic)]


def wait_for_all(cluster: Cluster, topic: str, expected: set[object]) -> None:
    """Wait until all of these are in a topic."""
    missing = set(expected)
    with reading(cluster, topic) as reader:
        for message in reader:
            missing.discard(message.value)
            if not missing:
                return


def numbered(count: int, big: int) -> list[object]:
    return [BIG if number == big else b"%d" % number for number in range(count)]


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async"])
@pytest.mark.parametrize("concurrency", [None, awoke.by_key(2)], ids=["partition", "by_key"])
def test_a_result_that_is_too_large_for_the_producer_exhausts_its_message_at_once(
    cluster: Cluster, topic: CreateTopic, is_async: bool, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    name, output, dead = topic(), topic("out"), topic("dead")
    app, runs = new_app(cluster, kafka={"message.max.bytes": LIMIT}), Collected[bytes]()

    def work(message: awoke.Message[bytes]) -> bytes:
        runs.add(message.value)
        return TOO_LARGE if message.value == BIG else message.value

    async def work_async(message: awoke.Message[bytes]) -> bytes:
        return work(message)

    app.on(name, output=output, dead_letter=dead, concurrency=concurrency)(work_async if is_async else work)
    send(cluster, name, [b"1", BIG, b"2"])
    probe = awoke_run(app)
    probe.idle()
    assert values_of(cluster, dead) == [BIG]
    assert set(values_of(cluster, output)) == {b"1", b"2"}
    assert runs.items.count(BIG) == 1
    assert [each.offset for each in probe.failures] == [1]
    assert_committed(cluster, app, {(name, 0): 3})


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async"])
@pytest.mark.parametrize("concurrency", [None, awoke.by_key(4)], ids=["partition", "by_key"])
@pytest.mark.parametrize("exactly_once", [False, True], ids=["at_least_once", "exactly_once"])
def test_a_result_that_the_broker_refuses_is_found_among_others(
    cluster: Cluster, is_async: bool, concurrency: awoke.Concurrency | None, exactly_once: bool, awoke_run: Runs
) -> None:
    name, dead, output = unique("in"), unique("dead"), small_topic(cluster)
    cluster.create_topic(name)
    cluster.create_topic(dead)
    app, runs = new_app(cluster), Collected[bytes]()

    def work(message: awoke.Message[bytes]) -> bytes:
        runs.add(message.value)
        return TOO_LARGE if message.value == BIG else message.value

    async def work_async(message: awoke.Message[bytes]) -> bytes:
        return work(message)

    route = app.on(name, output=output, dead_letter=dead, concurrency=concurrency, exactly_once=exactly_once)
    route(work_async if is_async else work)
    sent = numbered(50, big=31)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(name, value, key=str(value)) for value in sent], 30)
    probe = awoke_run(app)
    probe.idle()
    assert values_of(cluster, dead) == [BIG]
    results = values_of(cluster, output)
    assert set(results) == set(sent) - {BIG}
    assert len(results) == 49 or not exactly_once
    assert [each.offset for each in probe.dead_letters] == [31]
    assert 31 in {each.offset for each in probe.failures}
    assert_committed(cluster, app, {(name, 0): 50})


def test_a_result_that_the_broker_refuses_runs_its_handler_once_where_it_is_alone(
    cluster: Cluster, awoke_run: Runs
) -> None:
    name, output = unique("in"), small_topic(cluster)
    cluster.create_topic(name)
    app, runs = new_app(cluster), Collected[bytes]()

    @app.on(name, output=output, retry=awoke.Retry(on_exhausted="skip"))
    def work(message: awoke.Message[bytes]) -> bytes:
        runs.add(message.value)
        return TOO_LARGE

    send(cluster, name, [BIG])
    probe = awoke_run(app)
    probe.idle()
    assert runs.items == [BIG]
    assert [each.offset for each in probe.failures] == [0]


def test_a_result_that_is_refused_for_good_ends_an_app_that_has_no_other_way(
    cluster: Cluster, topic: CreateTopic
) -> None:
    name, output, errors = topic(), topic("out"), Collected[BaseException]()
    app = new_app(cluster, kafka={"message.max.bytes": LIMIT})

    @app.on(name, output=output)
    def work(message: awoke.Message[bytes]) -> bytes:
        return TOO_LARGE

    send(cluster, name, [b"1"])
    server = awoke.AppRunner(app, on_fatal_error=errors.add)
    server.start()
    try:
        (error,) = errors.wait_for(1)
    finally:
        server.stop()
    assert isinstance(error, awoke.RetriesExhausted)
    assert committed(cluster, app) in ({}, {(name, 0): 0})


@pytest.mark.parametrize("exactly_once", [False, True], ids=["at_least_once", "exactly_once"])
def test_a_dead_letter_that_the_broker_refuses_pauses_its_partition(
    cluster: Cluster, exactly_once: bool, awoke_run: Runs
) -> None:
    name, output, dead = unique("in"), unique("out"), unique("compacted")
    cluster.create_topic(name, 2)
    cluster.create_topic(output)
    # A compacted topic takes no message without a key.
    cluster.admin.create_topic(dead, partitions=1, config={"cleanup.policy": "compact"}, timeout_s=30)
    app, runs, paused, failed = (
        new_app(cluster),
        Collected[int](),
        Collected[awoke.Event](),
        Collected[awoke.Event](),
    )
    app.events.subscribe("partition.paused", paused.add)
    app.events.subscribe("dead_letter.failed", failed.add)
    is_repaired: list[bool] = []

    @app.on(name, output=output, dead_letter=dead, retry=awoke.Retry(attempts=1), exactly_once=exactly_once)
    def work(message: awoke.Message[bytes]) -> bytes:
        runs.add(message.partition)
        if message.partition == 0 and not is_repaired:
            raise ValueError("no good")
        return b"done"

    send(cluster, name, [TOO_LARGE], partition=0)
    probe = awoke_run(app)
    (event,) = paused.wait_for(1)
    send(cluster, name, [b"beside"], partition=1)
    probe.rest()
    assert runs.items == [0, 1]
    assert f"{name}[0] is paused" in probe.runner.health().reasons[0]
    assert repr(dead) in probe.runner.health().reasons[0]
    assert isinstance(event.fields["error"], awoke.RetriesExhausted)
    assert [each.fields["retry_in_s"] for each in failed.items] == [None]
    assert committed(cluster, app).get((name, 0), 0) == 0
    is_repaired.append(True)
    assert app.resume(name, 0)
    probe.idle()
    assert runs.items == [0, 1, 0]
    assert [str(each.error) for each in probe.failures] == ["no good"]
    assert committed(cluster, app) == {(name, 0): 1, (name, 1): 1}


def test_an_output_that_does_not_exist_any_more_exhausts_its_messages(cluster: Cluster, awoke_run: Runs) -> None:
    name, output, dead = unique("in"), unique("out"), unique("dead")
    for each in (name, output, dead):
        cluster.create_topic(each)
    app = new_app(cluster, kafka={"topic.metadata.propagation.max.ms": 500, "allow.auto.create.topics": False})

    @app.on(name, output=output, dead_letter=dead)
    def work(message: awoke.Message[bytes]) -> bytes:
        return message.value

    probe = awoke_run(app)
    # A producer that is still connecting makes the topic again, where brokers create what is asked for.
    app.producer.produce(output, b"early").wait(30)
    cluster.admin.delete_topic(output, timeout_s=30)
    send(cluster, name, [b"late"])
    probe.idle(30)
    assert [each.offset for each in probe.failures] == [each.offset for each in probe.dead_letters] == [0]
    assert values_of(cluster, dead) == [b"late"]
