"""Kafka's own clients, in Java, on embedded brokers and on Apache Kafka."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tests
from tests.support.clusters import Cluster, unique
from tests.support.kafka_home import java

PROGRAM = Path(tests.__file__).parent / "support/java/Foreign.java"
COMMITTED = "[plain, whole, committed 5]"


def test_kafkas_own_clients_make_topics_and_transactions_and_read_them(cluster: Cluster) -> None:
    command = java(str(PROGRAM), cluster.bootstrap_servers, unique("foreign"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    if "jdk.compiler" in done.stderr:
        pytest.skip("this Java has no compiler")
    found = [line.removeprefix("found ") for line in done.stdout.splitlines() if line.startswith("found ")]
    assert found == [
        "plain: 0",
        "offsets: 1",
        f"classic: {COMMITTED}",
        f"consumer: {COMMITTED}",
        "uncommitted: [plain, aborted, whole, committed 5]",
        "partitions: 3",
        "deleted",
    ], done.stderr
