"""Handlers that use Django's ORM: no stale connection, nothing lost, and no connection that two nodes share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

import awoke
from tests.support.clusters import MockCluster, unique
from tests.support.django_processes import MANAGE, environment, run_django
from tests.support.ledgers import PostgresDatabase
from tests.support.postgres import Postgres
from tests.support.processes import Process
from tests.support.waiting import wait_until

PAYMENTS = 200


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresDatabase]:
    pytest.importorskip("psycopg", reason="there is no psycopg for this Python", exc_type=ImportError)
    with Postgres() as server:
        run_django(environment(server), "migrate", "--run-syncdb", "-v", "0")
        yield PostgresDatabase(server)


class Payments:
    """Topics of their own, and the payments that handlers have written."""

    def __init__(self, cluster: MockCluster, database: PostgresDatabase) -> None:
        self.cluster, self.database, self.topic = cluster, database, unique("payments")
        self.first = 1_000 * int(self.topic.rpartition("-")[2])
        for name in (self.topic, f"{self.topic}-async"):
            cluster.create_topic(name, 4)
        self._env = {
            "AWOKE_BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
            "PAYMENTS": self.topic,
            "GROUP": self.topic,
        }

    def process(self, *words: str, **env: str) -> Process:
        return Process(
            "awoke", "run", *words, env={**environment(self.database.server), **self._env, **env}, program=MANAGE
        )

    def send(self, count: int) -> None:
        topics = (self.topic, f"{self.topic}-async")
        with awoke.Producer(self.cluster.bootstrap_servers) as producer:
            for number in range(count):
                producer.produce(topics[number % 2], str(self.first + number), partition=number // 2 % 4)

    def written(self) -> list[int]:
        rows = self.database.rows(f"SELECT number FROM shop_payment WHERE number >= {self.first} ORDER BY number")
        return [number - self.first for (number,) in rows if number < self.first + 1_000]


@pytest.fixture
def payments(mock_cluster: MockCluster, database: PostgresDatabase) -> Payments:
    return Payments(mock_cluster, database)


def test_handlers_go_on_when_the_database_was_killed_and_started_again(payments: Payments) -> None:
    with payments.process() as process:
        process.wait_for("app.started")
        payments.send(PAYMENTS // 2)
        wait_until(lambda: len(payments.written()) > 10, "payments before the restart", every_s=0.02)
        payments.database.server.kill()
        payments.database.server.start()
        before = len(payments.written())
        payments.send(PAYMENTS)  # The first ones come again, which changes nothing.
        wait_until(lambda: len(payments.written()) == PAYMENTS, f"more than {before} payments", 90, every_s=0.05)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert payments.written() == list(range(PAYMENTS))


def test_no_job_fails_because_its_connection_was_closed_while_it_was_idle(payments: Payments) -> None:
    with payments.process(KEEPS_CONNECTIONS="1") as process:
        process.wait_for("app.started")
        payments.send(PAYMENTS)
        wait_until(lambda: len(payments.written()) == PAYMENTS, "all payments", 90, every_s=0.05)
        payments.database.server.stop()
        payments.database.server.start()
        payments.first += PAYMENTS
        payments.send(PAYMENTS)
        wait_until(lambda: len(payments.written()) == PAYMENTS, "all payments after the restart", 90, every_s=0.05)
    assert "job.failed" not in process.output
    assert "OperationalError" not in process.output


def test_nodes_of_a_swarm_have_connections_of_their_own(payments: Payments) -> None:
    """The import has used the database: its connection must not reach the nodes."""
    with payments.process("--nodes", "2", QUERIES_AT_IMPORT="1", KEEPS_CONNECTIONS="1") as process:
        payments.send(PAYMENTS)
        wait_until(lambda: len(payments.written()) == PAYMENTS, "all payments", 90, every_s=0.05)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert "OperationalError" not in process.output
    assert "InterfaceError" not in process.output
