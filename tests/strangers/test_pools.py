"""A pool of connections to PostgreSQL that is opened at import, of psycopg's and of Django's: no node shares one."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("psycopg_pool")
import psycopg

from tests.support.clusters import MockCluster
from tests.support.command_line import awoke_says
from tests.support.postgres import Postgres
from tests.support.three_modes import MESSAGES, WITHIN_S, ModeRun, in_three_modes, stop_all
from tests.support.waiting import wait_until

PSYCOPG = """
from psycopg_pool import ConnectionPool

pool = ConnectionPool(os.environ["DATABASE"], min_size=2, kwargs={"application_name": TOPIC}, open=True)
pool.wait()
with pool.connection() as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS handled (topic text, value int)")


@app.on_startup
def start() -> None:
    note("started")


@app.on(TOPIC, concurrency=awoke.by_key(4))
def handle(message: awoke.Message[bytes]) -> None:
    with pool.connection() as connection:
        connection.execute("INSERT INTO handled VALUES (%s, %s)", (TOPIC, int(message.value)))
        note("handled", value=int(message.value), backend=connection.info.backend_pid)
"""
DJANGO_SETTINGS = """
import os

SECRET_KEY = "for tests"
INSTALLED_APPS = ["awoke.django"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "127.0.0.1",
        "PORT": os.environ["DATABASE"].rpartition(":")[2].partition("/")[0],
        "NAME": "postgres",
        "USER": "postgres",
        "OPTIONS": {"pool": {"min_size": 2, "max_size": 4}, "application_name": os.environ["TOPIC"]},
    }
}
"""
DJANGO = """
import django
import awoke.django

os.environ["DJANGO_SETTINGS_MODULE"] = "site_settings"
django.setup()

from django.db import connection

with connection.cursor() as cursor:  # As an application that reads its configuration from the database.
    cursor.execute("CREATE TABLE IF NOT EXISTS handled (topic text, value int)")

app = awoke.django.DjangoApp(TOPIC, kafka={"heartbeat.interval.ms": 500})


@app.on_startup
def start() -> None:
    note("started")


@app.on(TOPIC, concurrency=awoke.by_key(8))
def handle(message: awoke.Message[bytes]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO handled VALUES (%s, %s)", (TOPIC, int(message.value)))
        backend = connection.connection.info.backend_pid
    note("handled", value=int(message.value), backend=backend)
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


def check_connections(run: ModeRun) -> None:
    """Checks that each process has connections of its own, and that they are told why each node imports the app."""
    owners = defaultdict(set)
    for each in run.notes("handled"):
        owners[each["backend"]].add(each["pid"])
    assert owners
    assert all(len(pids) == 1 for pids in owners.values()), f"{run.mode}: {owners}"
    assert ("can't share" in run.process.output) == (run.mode != "process"), run.process.output


def sessions(server: Postgres, name: str) -> int:
    with contextlib.closing(psycopg.connect(server.url, autocommit=True)) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        (found,) = connection.execute(query, (name,)).fetchone() or (0,)
    return int(found)


@pytest.mark.parametrize("kind", ["psycopg", "Django"])
def test_each_process_has_a_pool_of_its_own(
    mock_cluster: MockCluster, database: Postgres, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "site_settings.py").write_text(DJANGO_SETTINGS)
    env = {"DATABASE": database.url, "PYTHONPATH": str(tmp_path)}
    with in_three_modes(tmp_path, mock_cluster, PSYCOPG if kind == "psycopg" else DJANGO, env=env) as runs:
        for run in runs:
            check_connections(run)
        swarm = next(run for run in runs if run.mode == "swarm")
        swarm.wait_for("started", 2)
        awoke_says("reload", "shop:app", "--socket", str(swarm.folder / "s"))
        swarm.wait_for("started", 4)
        stop_all(runs)
    for run in runs:
        have_ended = partial(lambda topic: not sessions(database, topic), run.topic)
        wait_until(have_ended, f"{run.mode}: its sessions end", WITHIN_S)
        assert "PoolTimeout" not in run.process.output
        with contextlib.closing(psycopg.connect(database.url)) as connection:
            rows = connection.execute("SELECT value FROM handled WHERE topic = %s", (run.topic,)).fetchall()
        assert sorted(value for (value,) in rows) == list(range(MESSAGES))
