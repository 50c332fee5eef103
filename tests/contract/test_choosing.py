"""Several handlers of one topic, on brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.testing import Runs
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster, MockCluster, read_all, unique
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]


class Placed(msgspec.Struct, tag=True):
    id: int


class Cancelled(msgspec.Struct, tag=True):
    id: int


class Shipped(msgspec.Struct, tag=True):
    id: int


def test_each_message_goes_to_the_first_handler_that_takes_it(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen, handlers = topic("a"), new_app(cluster), Collected[str](), awoke.Handlers()

    @handlers.with_header("test")
    def ignore(message: awoke.Message[Placed]) -> None:
        seen.add(f"test {message.offset}")

    @handlers.of_type(Placed)
    def place(order: awoke.Value[Placed], tenant: Annotated[str, awoke.Header("tenant")] = "none") -> None:
        seen.add(f"placed {order.id} of {tenant}")

    @handlers.when(lambda message: message.key == b"big")
    def ship(message: awoke.Message[Shipped]) -> None:
        seen.add(f"big {message.value.id}")

    @handlers.default
    def other(message: awoke.Message[Cancelled | Shipped]) -> None:
        seen.add(f"other {message.value.id}")

    app.on(name)(handlers)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        producer.produce(name, Placed(1), headers={"tenant": "acme"}).wait(20)
        producer.produce(name, Placed(2), headers={"test": "1"}).wait(20)
        producer.produce(name, Shipped(3), key="big").wait(20)
        producer.produce(name, Cancelled(4)).wait(20)
    awoke_run(app).idle()
    found = seen.items
    assert found == ["placed 1 of acme", "test 1", "big 3", "other 4"]
    assert_committed(cluster, app, {(name, 0): 4})


def test_a_message_that_no_handler_takes_goes_to_the_dead_letter_topic(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, letters, app, handlers = topic("a"), topic("b"), new_app(cluster), awoke.Handlers()
    seen = Collected[int]()

    @handlers.of_type(Placed)
    async def place(message: awoke.Message[Placed]) -> None:
        seen.add(message.value.id)

    app.on(name, value=Placed | Cancelled, dead_letter=letters)(handlers)
    send(cluster, name, [Cancelled(1), Placed(2)])
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == [2]
    (letter,), (failure,) = probe.dead_letters, probe.failures
    assert isinstance(letter.error, awoke.NoHandler)
    assert letter.offset == failure.offset == 0


@pytest.mark.parametrize("concurrency", [None, awoke.by_key(4)], ids=["one job", "lanes"])
@pytest.mark.parametrize("ordered", [False, True], ids=["", "ordered"])
@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_a_generator_sends_all_that_it_yields(
    cluster: Cluster, topic: CreateTopic, concurrency: Any, *, ordered: bool, is_async: bool, awoke_run: Runs
) -> None:
    name, out, audit, app = topic("a"), topic("b"), topic("c"), new_app(cluster)
    failures = iter([True, False])

    def split(message: awoke.Message[bytes]) -> Iterator[str | awoke.Record | awoke.Outgoing]:
        yield "1"
        yield awoke.Record("2", "other key")
        if next(failures, False):
            raise ValueError("fails before its end: nothing is sent")
        yield awoke.Outgoing(audit, "3", headers={"who": "split"})

    async def split_async(message: awoke.Message[bytes]) -> AsyncIterator[str | awoke.Record | awoke.Outgoing]:
        for each in split(message):
            yield each

    retry = awoke.Retry(backoff_s=(0.01, 0.01))
    app.on(name, output=[out, audit], ordered=ordered, concurrency=concurrency, retry=retry)(
        split_async if is_async else split
    )
    send(cluster, name, [b"x"], key="k")
    probe = awoke_run(app)
    probe.idle()
    assert [each.offset for each in probe.failures] == [0]
    assert values_of(cluster, out, 2) == [(b"k", b"1"), (b"other key", b"2")]
    assert values_of(cluster, audit, 1) == [(None, b"3")]
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        assert (admin.end_offsets(out), admin.end_offsets(audit)) == ({0: 2}, {0: 1})
    assert_committed(cluster, app, {(name, 0): 1})


def test_what_a_generator_yields_is_one_transaction_with_the_offset(cluster: Cluster, awoke_run: Runs) -> None:
    name, out, audit, app = unique("a"), unique("b"), unique("c"), new_app(cluster)
    for each in (name, out, audit):
        cluster.create_topic(each)

    @app.on(name, output=[out, audit], exactly_once=True)
    def split(message: awoke.Message[bytes]) -> Iterator[str | awoke.Outgoing]:
        yield "1"
        yield awoke.Outgoing(audit, "2")

    send(cluster, name, [b"x"], key="k")
    awoke_run(app).idle()
    assert values_of(cluster, out, 1) == [(b"k", b"1")]
    assert values_of(cluster, audit, 1) == [(None, b"2")]
    assert_committed(cluster, app, {(name, 0): 1})


def values_of(cluster: Cluster, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    """Returns key and value of the messages of a topic, which are this many."""
    found = [(message.key, message.value) for message in read_all(cluster, topic)]
    assert len(found) == count
    return sorted(found, key=str)
