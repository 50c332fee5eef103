"""With `own_thread`, all code of a consumer runs on one thread, which ends with the assignment however that ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

import awoke
from awoke.testing import EmbeddedCluster, running
from tests.contract.test_consume import new_app, send
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import Collected, became

KAFKA: dict[str, str | int] = {
    "session.timeout.ms": 2_000,
    "heartbeat.interval.ms": 100,
    "partition.assignment.strategy": "cooperative-sticky",
}
SOON = awoke.Retry(backoff_s=(0.01, 0.02))
ONE = awoke.Batching(max_messages=1)

Reports = Collected[tuple[str, int, int]]
"""A call of user code: its name, its partition and its thread (its `ident`)."""


@pytest.fixture
def topic(mock_cluster: MockCluster) -> Callable[[int], str]:
    def create(partitions: int) -> str:
        name = unique("own")
        mock_cluster.create_topic(name, partitions)
        return name

    return create


@pytest.fixture(autouse=True)
def as_many_threads_as_before(mock_cluster: MockCluster) -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


class Telling(awoke.Consumer):
    """Says what runs where."""

    told: Reports

    def tell(self, word: str) -> None:
        self.told.add((word, self.partition, threading.get_ident()))

    def __init__(self) -> None:
        self.tell("init")

    def assigned(self) -> None:
        self.tell("assigned")

    def consume(self, batch: awoke.Batch[bytes]) -> None:
        self.tell("consume")

    def tick(self) -> None:
        self.tell("tick")

    def revoked(self) -> None:
        self.tell("revoked")

    def lost(self) -> None:
        self.tell("lost")

    def shutdown(self) -> None:
        self.tell("shutdown")


def words(told: Reports, partition: int = 0) -> list[str]:
    return [word for word, at, _ in told.items if at == partition and word != "tick"]


def threads(told: Reports, partition: int = 0) -> set[int]:
    return {ident for _, at, ident in told.items if at == partition}


def test_everything_runs_on_one_thread_for_each_partition(
    mock_cluster: MockCluster, topic: Callable[[int], str]
) -> None:
    name, app, told = topic(2), new_app(mock_cluster, workers=4), Reports()

    @app.consumer(name, own_thread=True, batch=ONE, tick_every_s=0.01)
    class Owner(Telling):
        pass

    Owner.told = told
    with running(app) as server:
        for partition in (0, 1):
            send(mock_cluster, name, [b"value"] * 20, partition=partition)
        told.wait_until(lambda items: [word for word, _, _ in items].count("consume") == 40)
        told.wait_until(lambda items: {partition for word, partition, _ in items if word == "tick"} == {0, 1})
        own = [each for each in server.threads() if each.owner.startswith(name)]
    for partition in (0, 1):
        assert words(told, partition) == ["init", "assigned", *["consume"] * 20, "shutdown"]
        assert len(threads(told, partition)) == 1
    assert threads(told, 0).isdisjoint(threads(told, 1))
    assert [(each.owner, each.name) for each in own] == [
        (f"{name}[{partition}]", f"{name}[{partition}]-own_thread") for partition in (0, 1)
    ]
    assert all("Owner" in each.started_at for each in own)
    assert not [each for each in server.threads() if each.owner.startswith(name)]


def test_without_the_option_there_is_no_thread_more(mock_cluster: MockCluster, topic: Callable[[int], str]) -> None:
    name, app, told = topic(1), new_app(mock_cluster, workers=2), Reports()

    @app.consumer(name, tick_every_s=60.0)
    class Plain(Telling):
        pass

    Plain.told = told
    with running(app) as server:
        told.wait_until(lambda items: "assigned" in [word for word, _, _ in items])
        assert not [each for each in server.threads() if each.owner.startswith(name)]


def test_a_partition_that_comes_back_has_another_thread(mock_cluster: MockCluster, topic: Callable[[int], str]) -> None:
    name, group, told, changed = topic(2), unique("group"), Reports(), Collected[str]()
    first, second = (
        awoke.App(unique("app"), group=group, bootstrap_servers=mock_cluster.bootstrap_servers, kafka=KAFKA)
        for _ in range(2)
    )

    @first.consumer(name, own_thread=True, tick_every_s=60.0)
    class Owner(Telling):
        pass

    Owner.told = told
    second.on(name)(lambda message: None)
    second.events.subscribe("partitions.assigned", lambda event: changed.add("assigned"))
    with running(first) as server:
        told.wait_until(lambda items: [word for word, _, _ in items].count("assigned") == 2)
        with running(second):
            told.wait_until(lambda items: "revoked" in [word for word, _, _ in items])
            owners = [each.owner for each in server.threads() if each.name.endswith("own_thread")]
            taken = next(partition for word, partition, _ in told.items if word == "revoked")
            assert became(lambda: f"{name}[{taken}]" not in server.ledger.counts(), 10), owners
        told.wait_until(lambda items: [word for word, _, _ in items].count("assigned") == 3)
    assert words(told, taken) == ["init", "assigned", "revoked", "init", "assigned", "shutdown"]
    assert words(told, 1 - taken) == ["init", "assigned", "shutdown"]
    of_taken = [(word, ident) for word, partition, ident in told.items if partition == taken]
    assert len({ident for _, ident in of_taken[:3]}) == 1
    assert len({ident for _, ident in of_taken[3:]}) == 1
    assert len(threads(told, 1 - taken)) == 1


def test_a_lost_partition_is_lost_on_its_thread() -> None:
    told, name = Reports(), "lost"
    with EmbeddedCluster() as cluster:
        cluster.create_topic(name)
        app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, kafka=KAFKA)

        @app.consumer(name, own_thread=True, tick_every_s=60.0)
        class Owner(Telling):
            pass

        Owner.told = told
        with running(app) as server:
            told.wait_until(lambda items: "assigned" in [word for word, _, _ in items])
            cluster.set_broker_up(1, False)
            told.wait_until(lambda items: "lost" in [word for word, _, _ in items])
            assert became(lambda: f"{name}[0]" not in server.ledger.counts(), 10)
            cluster.set_broker_up(1, True)
    assert words(told)[:3] == ["init", "assigned", "lost"]
    assert len({ident for _, _, ident in told.items[:3]}) == 1


@pytest.mark.parametrize("where", ["consume", "assigned"])
def test_what_outlives_its_assignment_is_lost_on_its_thread(
    mock_cluster: MockCluster, topic: Callable[[int], str], where: str
) -> None:
    name, told, release = topic(1), Reports(), threading.Event()
    app = new_app(mock_cluster, revoke_timeout_s=0.1, workers=2)

    @app.consumer(name, own_thread=True, tick_every_s=60.0)
    class Owner(Telling):
        def assigned(self) -> None:
            super().assigned()
            if where == "assigned":
                assert release.wait(30)

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            super().consume(batch)
            assert release.wait(30)

    Owner.told = told
    send(mock_cluster, name, [b"value"])
    server = awoke.AppRunner(app)
    server.start()
    told.wait_until(lambda items: where in [word for word, _, _ in items])
    assert not server.stop(timeout_s=0.5)
    (own,) = [each for each in threading.enumerate() if each.name == f"{name}[0]-own_thread"]
    release.set()
    own.join(30)
    assert words(told)[-1] == "lost"
    assert len(threads(told)) == 1
    assert became(lambda: not any(each.name.startswith("awoke-worker") for each in threading.enumerate()), 10)


def test_an_init_that_fails_is_tried_again_on_the_same_thread(
    mock_cluster: MockCluster, topic: Callable[[int], str]
) -> None:
    name, app, told = topic(1), new_app(mock_cluster), Reports()

    @app.consumer(name, own_thread=True, retry=SOON, tick_every_s=0.005)
    class Owner(Telling):
        def __init__(self) -> None:
            super().__init__()
            self.background(self.wait)
            if words(told).count("init") < 4:
                raise OSError("the database is away")

        def wait(self) -> None:
            self.stopping.wait()

        def tick(self) -> None:
            assert "assigned" in words(told)

    Owner.told = told
    failed = Collected[awoke.Event]()
    app.events.subscribe("hook.failed", failed.add)
    with running(app) as server:
        send(mock_cluster, name, [b"value"])
        told.wait_until(lambda items: "consume" in [word for word, _, _ in items])
        # Its own, and the background thread of the instance that came to be: those of the failed ones have ended.
        assert became(lambda: server.ledger.counts()[f"{name}[0]"] == 2, 10), server.ledger.entries()
    assert words(told) == ["init"] * 4 + ["assigned", "consume", "shutdown"]
    assert len(threads(told)) == 1
    assert [event.fields["hook"] for event in failed.items] == ["assigned"]


@pytest.mark.parametrize("where", ["init", "assigned", "consume", "tick", "shutdown"])
def test_an_exit_within_ends_the_app_and_the_thread(
    mock_cluster: MockCluster, topic: Callable[[int], str], where: str
) -> None:
    name, app, told, errors = topic(1), new_app(mock_cluster), Reports(), Collected[BaseException]()

    @app.consumer(name, own_thread=True, tick_every_s=0.05)
    class Owner(Telling):
        def tell(self, word: str) -> None:
            super().tell(word)
            if word == where:
                raise SystemExit(3)

    Owner.told = told
    server = awoke.AppRunner(app, on_fatal_error=errors.add)
    server.start()
    send(mock_cluster, name, [b"value"])
    if where == "shutdown":
        told.wait_until(lambda items: "consume" in [word for word, _, _ in items])
    else:
        errors.wait_for(1)
    assert server.stop()
    assert isinstance(server.fatal_error, SystemExit)
    assert len(threads(told)) == 1
    if where in ("init", "assigned"):
        assert "consume" not in words(told)
    else:
        assert words(told)[-1] == "shutdown"


@pytest.mark.parametrize("hook", ["revoked", "shutdown", "assigned"])
def test_a_hook_that_fails_leaves_no_thread(mock_cluster: MockCluster, topic: Callable[[int], str], hook: str) -> None:
    name, app, told, failed = topic(1), new_app(mock_cluster), Reports(), Collected[awoke.Event]()
    app.events.subscribe("hook.failed", failed.add)

    @app.consumer(name, own_thread=True, tick_every_s=60.0)
    class Owner(Telling):
        def tell(self, word: str) -> None:
            super().tell(word)
            if word == hook:
                raise OSError("no")

    Owner.told = told
    with running(app):
        told.wait_until(lambda items: "assigned" in [word for word, _, _ in items])
    assert [event.fields["hook"] for event in failed.items] == ([] if hook == "revoked" else [hook])
    assert len(threads(told)) == 1


@pytest.mark.parametrize("kind", ["def", "own thread", "async def", "def in lanes", "async def in lanes"])
def test_a_seek_when_assigned_is_tried_again_keeps_the_batch_from_the_consumer(
    mock_cluster: MockCluster, topic: Callable[[int], str], kind: str
) -> None:
    name, app, seen, tries = topic(1), new_app(mock_cluster), Collected[int](), Collected[str]()

    def begin(consumer: awoke.Consumer) -> None:
        tries.add("assigned")
        if len(tries.items) < 4:
            raise OSError("the database is away")
        consumer.seek(100)

    class Plain(awoke.Consumer):
        see: Callable[[int], None]

        def assigned(self) -> None:
            begin(self)
            self.see = seen.add

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                self.see(message.offset)

    class Async(awoke.Consumer):
        see: Callable[[int], None]

        async def assigned(self) -> None:
            begin(self)
            self.see = seen.add

        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                self.see(message.offset)

    concurrency = awoke.by_key(8) if kind.endswith("lanes") else None
    route = app.consumer(name, own_thread=kind == "own thread", retry=SOON, concurrency=concurrency)
    route(Async if kind.startswith("async def") else Plain)
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all([producer.produce(name, b"value", key=b"%d" % (number % 20)) for number in range(300)], 30)
    with running(app):
        offsets = seen.wait_for(200)
    assert (sorted(offsets) if concurrency else offsets) == list(range(100, 300))
    assert tries.items == ["assigned"] * 4
