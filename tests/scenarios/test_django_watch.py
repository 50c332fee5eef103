"""`manage.py awoke run --watch`: Django code that was saved runs, and each row is written once."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import awoke
from tests.support.clusters import MockCluster, unique
from tests.support.processes import Process
from tests.support.waiting import wait_until

MANAGE = """
import os
from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
execute_from_command_line()
"""
SETTINGS = """
import os

SECRET_KEY = "for tests"
INSTALLED_APPS = ["awoke.django"]
AWOKE = {"app": "shop:app", "bootstrap_servers": os.environ["BROKERS"]}
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
"""
CODE = """
import os
import awoke
import awoke.django
from awoke.django.models import OutboxMessage

app = awoke.django.DjangoApp("watched-django")

@app.on(os.environ["TOPIC"])
def handle(message):
    OutboxMessage.objects.create(topic="{version}", key=str(message.offset).encode())
"""
BROKEN = "from django.db import this_name_does_not_exist\n"
IN_EACH = 10


def rows(folder: Path) -> list[tuple[str, int]]:
    """The version and the offset of each row, in the order of writing."""
    with closing(sqlite3.connect(folder / "db.sqlite3", timeout=60)) as database:
        found = database.execute("SELECT topic, key FROM awoke_outboxmessage ORDER BY id")
        return [(version, int(key)) for version, key in found]


def test_saved_django_code_runs_and_a_broken_one_changes_nothing(mock_cluster: MockCluster, tmp_path: Path) -> None:
    topic, sent = unique("watched"), 0
    mock_cluster.create_topic(topic)
    for name, text in {"manage": MANAGE, "site_settings": SETTINGS, "shop": CODE.format(version="first")}.items():
        (tmp_path / f"{name}.py").write_text(text)
    env = {"BROKERS": mock_cluster.bootstrap_servers, "TOPIC": topic}

    def send() -> None:
        nonlocal sent
        with awoke.Producer(mock_cluster.bootstrap_servers) as producer:
            for _ in range(IN_EACH):
                producer.produce(topic, b"x")
        sent += IN_EACH
        wait_until(lambda: len(rows(tmp_path)) >= sent, f"{sent} rows", 60, every_s=0.02)

    with Process("migrate", "-v", "0", env=env, program=("manage.py",), cwd=tmp_path) as migrating:
        assert migrating.wait() == 0, migrating.output
    words = ("awoke", "run", "--watch", "--socket", str(tmp_path / "socket"))
    with Process(*words, env=env, program=("manage.py",), cwd=tmp_path) as process:
        process.wait_for("is up after")
        send()
        (tmp_path / "shop.py").write_text(BROKEN)
        process.wait_for("the swarm goes on with the old code")
        assert "this_name_does_not_exist" in process.output
        send()
        (tmp_path / "shop.py").write_text(CODE.format(version="second"))
        process.wait_for("the new code runs")
        send()
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert rows(tmp_path) == [("first" if each < 2 * IN_EACH else "second", each) for each in range(3 * IN_EACH)]
