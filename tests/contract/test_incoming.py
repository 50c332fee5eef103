"""Middleware around the decoding and the handler of incoming messages, on brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import awoke
from awoke.testing import Runs
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster, MockCluster, read_all
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]


class Order(msgspec.Struct):
    id: int


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_it_goes_around_the_handler_from_the_app_to_the_route(
    cluster: Cluster, topic: CreateTopic, *, is_async: bool, awoke_run: Runs
) -> None:
    name, out, app, seen = topic("a"), topic("b"), new_app(cluster), Collected[str]()
    router = awoke.Router()

    def noting(name: str) -> Any:
        async def note(message: awoke.Message[Order], call_next: Callable[[Any], Awaitable[Any]]) -> Any:
            seen.add(f"{name} before")
            result = await call_next(message)
            seen.add(f"{name} after {result}")
            return f"{result} {name}"

        return note

    def handle(message: awoke.Message[Order]) -> str:
        seen.add(f"handler {message.value.id}")
        return "result"

    async def handle_async(message: awoke.Message[Order]) -> str:
        return handle(message)

    router.on(name, value=Order, output=out, incoming=[noting("route")])(handle_async if is_async else handle)
    router.incoming(noting("router"))
    app.include(router)
    app.incoming(noting("app"))
    send(cluster, name, [Order(1)])
    awoke_run(app).idle()
    found = seen.items
    (sent,) = (message.value for message in read_all(cluster, out))
    afters = ["route after result", "router after result route", "app after result route router"]
    assert found == ["app before", "router before", "route before", "handler 1", *afters]
    assert sent == b"result route router app"


def test_it_may_skip_the_handler_and_sees_what_does_not_decode(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, letters, app = topic("a"), topic("b"), new_app(cluster)
    seen, handled = Collected[str](), Collected[int]()

    @app.incoming
    def skip_tests(message: awoke.Message[Order], call_next: Callable[[Any], Any]) -> Any:
        if message.raw_value == b'{"id":0}':
            return None
        try:
            return call_next(message)
        except awoke.DecodeError:
            seen.add(f"no order at {message.offset}")
            raise

    @app.on(name, dead_letter=letters)
    def handle(message: awoke.Message[Order]) -> None:
        handled.add(message.value.id)

    send(cluster, name, [b'{"id":0}', b"no order", b'{"id":2}'])
    probe = awoke_run(app)
    probe.idle()
    assert (seen.items, handled.items) == (["no order at 1"], [2])
    assert [each.offset for each in probe.failures] == [each.offset for each in probe.dead_letters] == [1]
    assert_committed(cluster, app, {(name, 0): 3})


def test_it_goes_around_the_batches_of_a_class(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic("a"), new_app(cluster), Collected[int]()
    sizes: list[int] = []

    @app.incoming_batch
    def count(batch: awoke.Batch[bytes], call_next: Callable[[Any], Any]) -> Any:
        sizes.append(len(batch))
        return call_next(batch)

    @app.consumer(name)
    class Orders(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                seen.add(message.offset)

    send(cluster, name, [b"1", b"2", b"3"])
    awoke_run(app).idle()
    assert seen.items == [0, 1, 2]
    assert sum(sizes) == 3


def test_a_function_that_waits_around_a_def_handler_fails_the_message(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, letters, app = topic("a"), topic("b"), new_app(cluster)

    class Forever:
        def __await__(self) -> Any:
            yield

    @app.incoming
    async def wait(message: awoke.Message[bytes], call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        await Forever()
        return await call_next(message)

    @app.on(name, dead_letter=letters, retry=awoke.Retry(attempts=1))
    def handle(message: awoke.Message[bytes]) -> None:
        raise AssertionError

    send(cluster, name, [b"1"])
    probe = awoke_run(app)
    probe.idle()
    (letter,), (failure,) = probe.dead_letters, probe.failures
    assert isinstance(letter.error, awoke.HandlerDidNotRun)
    assert failure.error is letter.error
