"""A call that returns a coroutine or a generator has not processed its message: it fails, and nothing is committed."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import awoke
from awoke import rpc
from awoke.testing import EmbeddedCluster, Runs, running
from tests.contract.test_consume import committed, new_app, send
from tests.support.clusters import Cluster, MockCluster
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]
NONE_RAN: Collected[object] = Collected()

SOON = awoke.Retry(backoff_s=(0.01, 0.02))


def hidden(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as people write them: what it makes is a plain function."""

    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return call


def hidden_async(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `hidden`, for an `async def` around another callable."""

    async def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


async def handle_async(message: awoke.Message[bytes]) -> None:
    NONE_RAN.add(message)


def generate(message: awoke.Message[bytes]) -> Iterator[int]:
    NONE_RAN.add(message)
    yield 1


async def generate_async(message: awoke.Message[bytes]) -> Any:
    NONE_RAN.add(message)
    yield 1


class Eventually:
    """An awaitable class of the user's."""

    def __await__(self) -> Iterator[None]:
        NONE_RAN.add(self)
        yield


def promise(message: awoke.Message[bytes]) -> Eventually:
    return Eventually()


@pytest.fixture(autouse=True)
def nothing_ran_and_nothing_was_forgotten() -> Iterator[None]:
    """Fails a test whose handler did run, or that left a coroutine to Python's warning.

    The collector looks at the objects of the test only, and not at those of the whole run.
    """
    gc.freeze()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
            gc.collect()
    finally:
        gc.unfreeze()
    assert NONE_RAN.items == []
    assert [str(each.message) for each in caught] == []


ROUTES: dict[str, dict[str, Any]] = {
    "plain": {},
    "output": {"output": "out"},
    "lanes": {"concurrency": awoke.by_key(4)},
    "lanes with output": {"output": "out", "concurrency": awoke.by_key(4)},
    "ordered": {"output": "out", "concurrency": awoke.by_key(4), "ordered": True},
    "exactly once": {"output": "out", "exactly_once": True},
}


def fails(cluster: Cluster, app: awoke.App, name: str) -> None:
    """Check that a job fails three times, and that its message stays."""
    failed = Collected[awoke.Event]()
    app.events.subscribe("job.failed", failed.add)
    send(cluster, name, [b"value"] * 3, key=b"key")
    with running(app):
        events = failed.wait_for(3)
    assert {type(event.fields["error"]) for event in events} == {awoke.HandlerDidNotRun}
    assert {event.fields["offset"] for event in events} == {0}
    assert committed(cluster, app) in ({}, {(name, 0): 0})


@pytest.mark.parametrize("kind", ROUTES)
@pytest.mark.parametrize("function", [handle_async, generate, generate_async, promise])
@pytest.mark.parametrize("hide", [hidden, hidden_async])
def test_a_function_that_did_not_run_fails_its_message(
    cluster: Cluster, topic: CreateTopic, kind: str, function: Callable[..., Any], hide: Callable[..., Any]
) -> None:
    name, app, options = topic(), new_app(cluster), dict(ROUTES[kind])
    if "output" in options:
        options["output"] = topic("out")
    app.on(name, retry=SOON, **options)(hide(function))
    fails(cluster, app, name)


@pytest.mark.parametrize("function", [handle_async, generate])
@pytest.mark.parametrize("hide", [hidden, hidden_async])
def test_a_class_whose_consume_did_not_run_fails_its_batch(
    cluster: Cluster, topic: CreateTopic, function: Callable[..., Any], hide: Callable[..., Any]
) -> None:
    name, app = topic(), new_app(cluster)

    @app.consumer(name, retry=SOON)
    class Hidden(awoke.Consumer):
        consume = hide(lambda self, batch: function(batch))

    fails(cluster, app, name)


def test_a_hook_that_did_not_run_has_failed(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, failed = topic(), new_app(cluster), Collected[awoke.Event]()

    @app.consumer(name, retry=SOON)
    class Hidden(awoke.Consumer):
        assigned = hidden(handle_async)

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            NONE_RAN.add(batch)

    app.events.subscribe("hook.failed", failed.add)
    fails(cluster, app, name)
    (event, *_) = failed.items
    assert isinstance(event.fields["error"], awoke.HandlerDidNotRun)


def test_an_async_hook_that_fails_is_tried_again_before_the_first_batch(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, told = topic(), new_app(cluster), Collected[str]()

    @app.consumer(name, retry=SOON)
    class Fragile(awoke.Consumer):
        async def assigned(self) -> None:
            told.add("assigned")
            if len(told.items) < 4:
                raise RuntimeError("not yet")

        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            told.add("batch")

    send(cluster, name, [b"value"])
    probe = awoke_run(app)
    probe.idle()
    assert told.items == ["assigned"] * 4 + ["batch"]
    assert {str(each.error) for each in probe.failures} == {"not yet"}


def test_what_did_not_run_is_exhausted_as_any_other_failure(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, dead, app = topic(), topic("dead"), new_app(cluster)
    app.on(name, dead_letter=dead, retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.02)))(hidden(handle_async))
    send(cluster, name, [b"value"])
    probe = awoke_run(app)
    probe.idle()
    (letter,) = probe.dead_letters
    assert isinstance(letter.error, awoke.HandlerDidNotRun)
    assert len(probe.failures) == 2


def test_a_delivery_handle_may_be_dropped(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, out, app, seen = topic(), topic("out"), new_app(cluster), Collected[bytes]()
    app.on(name)(lambda message: app.producer.produce(out, message.value))
    app.on(out)(lambda message: seen.add(message.value))
    send(cluster, name, [b"value"])
    awoke_run(app).idle()
    assert seen.items == [b"value"]


def test_a_remote_method_that_did_not_run_is_an_internal_error() -> None:
    app, failed = awoke.App("shop"), Collected[awoke.Event]()
    app.events.subscribe("rpc.failed", failed.add)

    async def price() -> int:
        NONE_RAN.add("price")
        return 1

    def prices() -> Iterator[int]:
        NONE_RAN.add("prices")
        yield 1

    async def price_later() -> Any:
        return price()

    for method in (hidden(price), hidden(prices), price_later):
        app.rpc.method(name=f"m{len(app.rpc.methods)}")(lambda method=method: method())
    app.rpc.method(name="m3")(price_later)
    with EmbeddedCluster() as cluster:
        brokers = cluster.bootstrap_servers
        with running(app, bootstrap_servers=brokers), rpc.Caller("shop", brokers, timeout_s=30) as shop:
            for number in range(4):
                with pytest.raises(rpc.Internal, match="HandlerDidNotRun"):
                    shop.call(f"m{number}")
    assert {type(event.fields["error"]) for event in failed.items} == {awoke.HandlerDidNotRun}
