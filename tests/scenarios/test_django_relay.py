"""The relay of Django's outbox: it sends each row once, whatever dies."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import MockCluster, unique
from tests.support.django_processes import MANAGE, SETTINGS, environment, run_django
from tests.support.ledgers import PostgresDatabase
from tests.support.postgres import Postgres
from tests.support.processes import Process
from tests.support.waiting import elapse, wait_until

ROWS = 300
KILLS = 3


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresDatabase]:
    pytest.importorskip("psycopg", reason="there is no psycopg for this Python", exc_type=ImportError)
    with Postgres() as server:
        run_django(environment(server), "migrate", "--run-syncdb", "-v", "0")
        yield PostgresDatabase(server)


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
        **SETTINGS,
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


def test_a_relay_that_hears_nothing_ends_and_says_why(mock_cluster: MockCluster, database: PostgresDatabase) -> None:
    """Its transactions are never committed. Behind a pool that changes connections it would hear as little."""
    topic = unique("outbox")
    mock_cluster.create_topic(topic)
    with fill(mock_cluster, database, topic, 20) as writer:
        assert writer.wait() == 0, writer.output
    env = environment(database.server, AWOKE_BOOTSTRAP_SERVERS=mock_cluster.bootstrap_servers, DATABASE_AUTOCOMMIT="no")
    with Process("awoke_outbox", env=env, program=MANAGE) as process:
        assert process.wait(120) != 0
        assert "does not tell this relay of new rows" in process.output
