"""The examples with offsets outside Kafka: the database goes and returns, and two processes own one partition."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import MockCluster, unique
from tests.support.ledgers import Database, PostgresDatabase, Sqlite, numbers, offsets
from tests.support.postgres import Postgres
from tests.support.waiting import Collected, wait_until

SOON = awoke.Retry(backoff_s=(0.01, 0.1))


@pytest.fixture
def postgres() -> Iterator[PostgresDatabase]:
    pytest.importorskip("psycopg", reason="there is no psycopg for this Python", exc_type=ImportError)
    with Postgres() as server:
        yield PostgresDatabase(server)


@pytest.fixture
def sqlite(tmp_path: Path) -> Sqlite:
    return Sqlite(tmp_path / "ledger.sqlite")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def example(database: Database, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's module, with the test's database."""
    module = importlib.import_module(f"examples.offsets.{database.example}")
    monkeypatch.setattr(module, "LEDGER", database.url)
    module.create_tables()
    return module


def new_app(cluster: MockCluster, topic: str, example: Any, max_messages: int = 10) -> awoke.App:
    """The example as an app of a group of its own: the group has committed nothing."""
    app = awoke.App(unique("ledger"), bootstrap_servers=cluster.bootstrap_servers)
    own_thread = example.__name__.endswith("sqlite_app")
    batch = awoke.Batching(max_messages=max_messages)
    app.consumer(topic, value=example.Payment, own_thread=own_thread, batch=batch, retry=SOON)(example.Ledger)
    return app


def send(cluster: MockCluster, topic: str, example: Any, first: int, count: int) -> None:
    payments = [example.Payment(number, "account", number) for number in range(first, first + count)]
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, each, partition=each.number % 2) for each in payments], 30)


def wait_for(database: Database, count: int) -> None:
    wait_until(lambda: len(numbers(database)) >= count, f"{count} payments", every_s=0.02)


def test_a_new_group_goes_on_where_the_database_stands(
    mock_cluster: MockCluster, database: Database, example: Any
) -> None:
    topic = unique("payments")
    mock_cluster.create_topic(topic, 2)
    for life in range(3):
        send(mock_cluster, topic, example, life * 200, 200)
        with running(new_app(mock_cluster, topic, example)):
            wait_for(database, (life + 1) * 200)
    assert numbers(database) == list(range(600))
    assert offsets(database) == {0: 300, 1: 300}


def test_two_owners_of_one_partition_write_each_message_once(
    mock_cluster: MockCluster, database: Database, example: Any
) -> None:
    """As when a process is frozen, another one gets its partitions, and the first one goes on."""
    topic = unique("payments")
    mock_cluster.create_topic(topic, 2)
    send(mock_cluster, topic, example, 0, 500)
    # Other groups, so that both own both partitions; other batches, so that they overlap.
    apps = [new_app(mock_cluster, topic, example, max_messages) for max_messages in (7, 10)]
    failed = Collected[awoke.Event]()
    for app in apps:
        app.events.subscribe("job.failed", failed.add)
    with running(apps[0]), running(apps[1]):
        send(mock_cluster, topic, example, 500, 500)
        wait_for(database, 1_000)
    assert numbers(database) == list(range(1_000))
    assert offsets(database) == {0: 500, 1: 500}
    assert failed.items == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_only_the_message_that_fails_is_dead_lettered(
    mock_cluster: MockCluster, database: Database, example: Any
) -> None:
    topic, letters, dead_lettered = unique("payments"), unique("letters"), Collected[tuple[int, int]]()
    mock_cluster.create_topic(topic, 2)
    mock_cluster.create_topic(letters)
    app = awoke.App(unique("ledger"), bootstrap_servers=mock_cluster.bootstrap_servers)

    def note(event: awoke.Event) -> None:
        dead_lettered.add((event.fields["partition"], event.fields["offset"]))

    app.events.subscribe("message.dead_lettered", note)
    retry = awoke.Retry(attempts=3, backoff_s=(0.01, 0.02))

    @app.consumer(topic, value=example.Payment, own_thread=True, retry=retry, dead_letter=letters)
    class Careful(example.Ledger):  # type: ignore[misc]
        def consume(self, batch: awoke.Batch[Any]) -> None:
            if batch.attempt == 1:
                self.write(list(batch))
                return
            for message in batch:
                self.write([message])
                self.mark(message)

        def write(self, messages: list[awoke.Message[Any]]) -> None:
            assert 77 not in [message.value.number for message in messages]
            super().write(messages)

    send(mock_cluster, topic, example, 0, 200)
    with running(app):
        wait_for(database, 199)
        assert dead_lettered.wait_for(1) == [(1, 38)]
    assert numbers(database) == [number for number in range(200) if number != 77]
    assert offsets(database) == {0: 100, 1: 100}


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_server_that_restarts_holds_up_and_repeats_nothing(
    mock_cluster: MockCluster, postgres: PostgresDatabase, example: Any
) -> None:
    topic, failed = unique("payments"), Collected[awoke.Event]()
    mock_cluster.create_topic(topic, 2)
    app = new_app(mock_cluster, topic, example)
    app.events.subscribe("job.failed", failed.add)
    send(mock_cluster, topic, example, 0, 200)
    with running(app):
        wait_for(postgres, 200)
        postgres.server.stop()
        send(mock_cluster, topic, example, 200, 200)
        failed.wait_for(4)
        postgres.server.start()
        wait_for(postgres, 400)
    assert numbers(postgres) == list(range(400))


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_server_that_is_away_at_assignment_decides_when_it_is_there(
    mock_cluster: MockCluster, postgres: PostgresDatabase, example: Any
) -> None:
    topic, failed = unique("payments"), Collected[awoke.Event]()
    mock_cluster.create_topic(topic, 2)
    send(mock_cluster, topic, example, 0, 200)
    with running(new_app(mock_cluster, topic, example)):
        wait_for(postgres, 200)
    postgres.server.stop()
    app = new_app(mock_cluster, topic, example)
    for name in ("hook.failed", "job.failed"):
        app.events.subscribe(name, failed.add)
    with running(app):
        failed.wait_until(lambda events: {"hook.failed", "job.failed"} <= {event.name for event in events})
        postgres.server.start()
        send(mock_cluster, topic, example, 200, 200)
        wait_for(postgres, 400)
    assert numbers(postgres) == list(range(400))
    assert offsets(postgres) == {0: 200, 1: 200}
