"""A compressed batch larger than the memory that a process may have does not end the process, at default settings."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import awoke
from awoke.settings import KafkaValue
from tests.support.clusters import MockCluster, unique

LIMIT_MB, BATCH_MB = 600, 640
# Allocators reserve gigabytes of addresses that they do not use, and the limit is one for addresses.
FRUGAL = {"MIMALLOC_ARENA_RESERVE": "0", "MALLOC_ARENA_MAX": "1"}
READ = """
import resource, sys, threading
import awoke
from awoke.testing import running

limit = int(sys.argv[3]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
app, stuck = awoke.App("small", bootstrap_servers=sys.argv[1]), threading.Event()

@app.on(sys.argv[2])
def handle(message: awoke.Message[bytes]) -> None:
    pass

def tell(event: awoke.Event) -> None:
    print(event.fields["topic"], event.fields["partition"], event.fields["text"])
    stuck.set()

app.events.subscribe("partition.stuck", tell)

with running(app):
    assert stuck.wait(60)
"""


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_batch_larger_than_the_memory_limit_is_told_and_not_read(mock_cluster: MockCluster, codec: str) -> None:
    # Given a batch of less than a megabyte, which takes more than the process may have
    topic = unique("bomb")
    mock_cluster.create_topic(topic)
    kafka: dict[str, KafkaValue] = {
        "compression.type": codec,
        "message.max.bytes": 1_000_000_000,
        "batch.size": 1_000_000_000,
        "queue.buffering.max.kbytes": 1_000_000,
        "linger.ms": 60_000,
    }
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=kafka) as producer:
        sent = [producer.produce(topic, bytes(8_000_000)) for _ in range(BATCH_MB // 8)]
        producer.flush(60)
        awoke.wait_all(sent, 60)

    # When a process with that limit reads it
    arguments = [sys.executable, "-c", READ, mock_cluster.bootstrap_servers, topic, str(LIMIT_MB)]
    env = {**os.environ, **FRUGAL}
    read = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=120, check=False)

    # Then it tells the place, the bound and the setting
    assert read.returncode == 0, read.stderr
    assert read.stdout.startswith(f"{topic} 0 the batch of offsets 0 to ")
    assert f"takes more than {LIMIT_MB // 4} MB" in read.stdout
    assert "fetch_batch_max_mb" in read.stdout
