"""Offsets in a database: processes are killed at any moment, and each message is in the database exactly once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.ledgers import Database, PostgresDatabase, Sqlite, numbers, offsets
from tests.support.postgres import Postgres
from tests.support.processes import Process
from tests.support.waiting import elapse, wait_until

MESSAGES = 3_000
PARTITIONS = 4
KILLS = int(os.environ.get("AWOKE_KILLS", "3"))
PER_WRITE = 10
EVERY_S = 0.02
"""The number of messages that the producer sends at once, and the time between: at most 500/s."""
AHEAD_MAX = 200
"""The producer sends no more than these beyond the payments that were counted: it waits for slow processes."""


@pytest.fixture
def postgres() -> Iterator[PostgresDatabase]:
    pytest.importorskip("psycopg", reason="there is no psycopg for this Python", exc_type=ImportError)
    with Postgres() as server:
        yield PostgresDatabase(server)


class Ledgers:
    """A topic of payments, and the processes that write them to a database, one after the other."""

    def __init__(self, cluster: RealCluster, database: Database) -> None:
        self.cluster, self.database = cluster, database
        self.reached = 0
        """The number of payments in the database when they were counted last."""
        self.topic = unique("payments")
        cluster.create_topic(self.topic, PARTITIONS)
        self._env = {
            "AWOKE_BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
            "LEDGER": database.url,
            "OFFSETS_EXAMPLE": database.example,
            "OFFSETS_GROUP": unique("ledgers"),
            "OFFSETS_TOPIC": self.topic,
        }

    def process(self) -> Process:
        """The next one."""
        return Process("run", "tests.scenarios.offsets_app:app", env=self._env)

    def count(self) -> int:
        """Returns the number of payments in the database."""
        self.reached = self.database.rows("SELECT count(*) FROM payments")[0][0]
        return self.reached

    def wait_for(self, count: int) -> None:
        """Waits until this many payments are in the database."""
        wait_until(lambda: self.count() >= count, f"{count} payments", 90, every_s=0.01)

    def finish(self, count: int) -> None:
        """Lets a process write what is left, and checks what is in the database then."""
        with self.process() as process:
            process.wait_for("app.started")
            self.wait_for(count)
            process.signal(signal.SIGTERM)
            assert process.wait() == 0, process.output
        assert numbers(self.database) == list(range(count))
        with awoke.Admin(self.cluster.bootstrap_servers) as admin:
            assert offsets(self.database) == admin.end_offsets(self.topic)


def send_slowly(ledgers: Ledgers, stop: threading.Event) -> None:
    """The messages, some at a time."""
    with awoke.Producer(ledgers.cluster.bootstrap_servers) as producer:
        for first in range(0, MESSAGES, PER_WRITE):
            while first > ledgers.reached + AHEAD_MAX:
                if stop.wait(EVERY_S):
                    return
            for number in range(first, first + PER_WRITE):
                payment = {"number": number, "account": f"account-{number % 7}", "amount": number}
                producer.produce(ledgers.topic, payment, partition=number % PARTITIONS)
            if stop.wait(EVERY_S):
                return


@contextlib.contextmanager
def sending(ledgers: Ledgers) -> Iterator[None]:
    """Sends the messages beside the block."""
    stop = threading.Event()
    sender = threading.Thread(target=send_slowly, args=(ledgers, stop))
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join()


def kill_again_and_again(ledgers: Ledgers, seed: int) -> None:
    """Kills as many processes, each after a number of payments, and a part of a transaction, that the seed decides."""
    chosen = random.Random(seed)
    for _ in range(KILLS):
        with ledgers.process() as process:
            process.wait_for("app.started")
            ledgers.wait_for(ledgers.count() + chosen.randrange(1, MESSAGES // (2 * KILLS)))
            elapse(chosen.uniform(0.0, 0.02), "the kill comes in the middle of a transaction")
            assert process.is_running
            process.signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
    assert ledgers.count() < MESSAGES


def check_kills(cluster: RealCluster, database: Database, seed: int) -> None:
    ledgers = Ledgers(cluster, database)
    with sending(ledgers):
        kill_again_and_again(ledgers, seed)
        ledgers.finish(MESSAGES)


SEEDS = [1, pytest.param(2, marks=pytest.mark.soak)]


@pytest.mark.parametrize("seed", SEEDS)
def test_sqlite_has_each_message_once_whatever_is_killed(real_cluster: RealCluster, tmp_path: Path, seed: int) -> None:
    check_kills(real_cluster, Sqlite(tmp_path / "ledger.sqlite"), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_postgresql_has_each_message_once_whatever_is_killed(
    real_cluster: RealCluster, postgres: PostgresDatabase, seed: int
) -> None:
    check_kills(real_cluster, postgres, seed)
