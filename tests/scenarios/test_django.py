"""An app in a Django project with PostgreSQL: no stale connection, nothing lost, each row of the outbox sent once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import MockCluster, unique
from tests.support.ledgers import PostgresDatabase
from tests.support.postgres import Postgres
from tests.support.processes import REPOSITORY, Process
from tests.support.waiting import elapse, wait_until

MANAGE = ("-m", "django")
PAYMENTS = 200
ROWS = 300
KILLS = 3


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresDatabase]:
    pytest.importorskip("psycopg", reason="there is no psycopg for this Python")
    with Postgres() as server:
        run_django(environment(server), "migrate", "--run-syncdb", "-v", "0")
        yield PostgresDatabase(server)


def environment(server: Postgres, **more: str) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": "tests.django_project.settings", "DATABASE": str(server.port), **more}


def run_django(env: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *MANAGE, *words],
        env={**os.environ, **env},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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


def test_handlers_go_on_when_the_database_was_restarted(payments: Payments) -> None:
    with payments.process() as process:
        process.wait_for("app.started")
        payments.send(PAYMENTS // 2)
        wait_until(lambda: len(payments.written()) > 10, "payments before the restart", every_s=0.02)
        payments.database.server.stop()
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


FILL = """
import sys
import django
django.setup()
from django.db import transaction
from awoke.django import outbox
from tests.django_project.kafka import app

topic, count = sys.argv[1], int(sys.argv[2])
for number in range(count):
    try:
        with transaction.atomic():
            outbox.send(app, topic, {"number": number}, key=str(number % 5), headers={"source": "test"})
            if number % 10 == 9:
                raise LookupError
    except LookupError:
        outbox.send(app, topic, {"number": number}, key=str(number % 5))
"""


def fill(cluster: MockCluster, database: PostgresDatabase, topic: str, count: int) -> Process:
    env = environment(database.server, AWOKE_BOOTSTRAP_SERVERS=cluster.bootstrap_servers)
    return Process("-c", FILL, topic, str(count), env=env, program=())


def relay(cluster: MockCluster, database: PostgresDatabase) -> Process:
    env = environment(database.server, AWOKE_BOOTSTRAP_SERVERS=cluster.bootstrap_servers, PYTHONUNBUFFERED="1")
    return Process("awoke_outbox", env=env, program=MANAGE)


def left(database: PostgresDatabase) -> int:
    return database.rows("SELECT count(*) FROM awoke_outboxmessage")[0][0]


def wait_until_changed(database: PostgresDatabase, writer: Process) -> None:
    """Waits until rows have come or gone: the relay works, or the writer has ended."""
    before = left(database)
    wait_until(lambda: left(database) != before or not writer.is_running, "rows", 60, 0.01)


def test_the_relay_sends_each_row_once_whenever_it_is_killed(
    mock_cluster: MockCluster, database: PostgresDatabase
) -> None:
    topic = unique("outbox")
    mock_cluster.create_topic(topic)
    with fill(mock_cluster, database, topic, ROWS) as writer:
        for _ in range(KILLS):
            with relay(mock_cluster, database) as killed:
                wait_until_changed(database, writer)
                elapse(random.uniform(0, 0.3), "the kill comes at any moment")
                killed.signal(signal.SIGKILL)
                killed.wait()
        assert writer.wait() == 0, writer.output
    with relay(mock_cluster, database) as last, relay(mock_cluster, database) as standby:
        wait_until(lambda: left(database) == 0, "an empty outbox", 60, 0.05)
        for each in (standby, last):
            each.signal(signal.SIGTERM)
            assert each.wait() == 0, each.output
    with awoke.Reader(topic, bootstrap_servers=mock_cluster.bootstrap_servers, value=dict) as reader:
        assert [message.value["number"] for message in reader.read_until_end(60)] == list(range(ROWS))


def test_a_relay_goes_on_when_the_database_was_restarted(mock_cluster: MockCluster, database: PostgresDatabase) -> None:
    topic = unique("outbox")
    mock_cluster.create_topic(topic)
    with relay(mock_cluster, database) as process:
        for round_ in range(2):
            with fill(mock_cluster, database, topic, 20) as writer:
                assert writer.wait() == 0, writer.output
            wait_until(lambda: left(database) == 0, f"an empty outbox in round {round_}", 60, 0.05)
            database.server.stop()
            database.server.start()
        process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.output
    with awoke.Reader(topic, bootstrap_servers=mock_cluster.bootstrap_servers, value=dict) as reader:
        assert [message.value["number"] for message in reader.read_until_end(60)] == [*range(20), *range(20)]


ON_COMMIT = """
import sys
import django
django.setup()
from django.db import transaction
from tests.django_project.kafka import app

topic = sys.argv[1]
app.produce_on_commit(topic, b"without a transaction")
with transaction.atomic():
    app.produce_on_commit(topic, b"committed", key="k")
    assert app.queued()[0] == 1
try:
    with transaction.atomic():
        app.produce_on_commit(topic, b"rolled back")
        raise LookupError
except LookupError:
    pass
"""


def test_messages_on_commit_follow_the_transaction_and_are_delivered_at_the_end(mock_cluster: MockCluster) -> None:
    topic = unique("committed")
    mock_cluster.create_topic(topic)
    env = {
        "DJANGO_SETTINGS_MODULE": "tests.django_project.settings",
        "AWOKE_BOOTSTRAP_SERVERS": mock_cluster.bootstrap_servers,
        "AWOKE_KAFKA_LINGER_MS": "60000",
    }
    with Process("-c", ON_COMMIT, topic, env=env, program=()) as process:
        assert process.wait() == 0, process.output
    with awoke.Reader(topic, bootstrap_servers=mock_cluster.bootstrap_servers) as reader:
        assert [bytes(message.value) for message in reader.read_until_end(60)] == [
            b"without a transaction",
            b"committed",
        ]


DIES = """
import os
import django
django.setup()
from django.db.models import QuerySet
from awoke.django.relay import Relay
from tests.django_project.kafka import app

delete = QuerySet.delete
def dies_after_a_commit(rows):
    if rows.query.where.children[0].lookup_name == "in" and rows.exists():
        os._exit(9)
    return delete(rows)

QuerySet.delete = dies_after_a_commit
Relay(app, rows_max=4).run_once()
"""


def test_rows_that_were_sent_by_a_process_that_died_are_not_sent_again(
    mock_cluster: MockCluster, tmp_path: Path
) -> None:
    topic = unique("outbox")
    mock_cluster.create_topic(topic)
    env = {
        "DJANGO_SETTINGS_MODULE": "tests.django_project.settings",
        "AWOKE_BOOTSTRAP_SERVERS": mock_cluster.bootstrap_servers,
        "DATABASE": str(tmp_path / "db.sqlite3"),
    }
    run_django(env, "migrate", "--run-syncdb", "-v", "0")
    with Process("-c", FILL, topic, "10", env=env, program=()) as writer:
        assert writer.wait() == 0, writer.output
    with Process("-c", DIES, env=env, program=()) as dying:
        assert dying.wait() == 9, dying.output
    assert "sent 6 messages" in run_django(env, "awoke_outbox", "--once")
    with awoke.Reader(topic, bootstrap_servers=mock_cluster.bootstrap_servers, value=dict) as reader:
        assert [message.value["number"] for message in reader.read_until_end(60)] == list(range(10))
    with Process("awoke_outbox", env=env, program=MANAGE) as refused:
        assert refused.wait() == 1
    assert "only PostgreSQL does" in refused.output
