"""Topics of `awoke broker`: made by `awoke topics create`, and never by asking for a misspelt one."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.testing import EmbeddedCluster
from tests.support.processes import Process


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


@pytest.fixture
def at(env: dict[str, str]) -> Iterator[str]:
    with Process("broker", "orders", env=env) as broker:
        broker.wait_for("export ")
        found = re.search(r"AWOKE_BOOTSTRAP_SERVERS=(\S+)", broker.output)
        assert found is not None
        yield found[1]
        broker.signal(signal.SIGTERM)
        assert broker.wait() == 0, broker.output


def says(*arguments: str, env: dict[str, str], code: int = 0) -> str:
    with Process(*arguments, env=env) as process:
        assert process.wait(30) == code, process.output
        return process.output


def test_topics_are_created_and_not_invented(at: str, env: dict[str, str]) -> None:
    assert "created topic receipts" in says("topics", "create", "receipts", "--partitions", "2", "-b", at, env=env)
    assert "already exists" in says("topics", "create", "orders", "-b", at, env=env, code=1)
    settings = ("--replicas", "2", "--config", "retention.ms=60000")
    assert "created topic refunds" in says("topics", "create", "refunds", *settings, "-b", at, env=env)
    assert "retention.ms" in says("topics", "describe", "refunds", "-b", at, env=env)
    assert "altered topic refunds" in says(
        "topics", "alter", "refunds", "--partitions", "5", "--yes", "-b", at, env=env
    )
    assert "deleted topic refunds" in says("topics", "delete", "refunds", "--yes", "-b", at, env=env)
    assert "'ordres' does not exist" in says("topics", "describe", "ordres", "-b", at, env=env, code=1)
    assert "'ordres' does not exist" in says("produce", "ordres", "-f", os.devnull, "-b", at, env=env, code=1)
    listed = says("topics", "list", "-b", at, env=env)
    assert listed.split() == ["topic", "partitions", "orders", "4", "receipts", "2"]


def test_an_app_of_a_misspelt_topic_does_not_start() -> None:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        app = awoke.App("shop", bootstrap_servers=cluster.bootstrap_servers)
        app.on("ordres")(lambda message: None)
        with pytest.raises(awoke.UnknownTopic, match="'ordres' does not exist"):
            awoke.AppRunner(app).start()
