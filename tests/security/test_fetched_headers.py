"""Headers count in the memory for fetched messages, as values do: a small log of large headers fills no process."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

import awoke
from awoke.observe.events import ClientStatistics
from awoke.testing import running
from tests.contract.test_consume import new_app
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import Collected

HEADER_BYTES, MESSAGES, BATCHES = 100_000, 10, 30
MEMORY_MB = 4


@pytest.mark.parametrize(("key", "value"), [(None, b"v"), (b"k", None), (b"k", b"v"), (None, None)])
@pytest.mark.parametrize("codec", ["gzip", "none"])
def test_a_queue_is_full_of_headers(mock_cluster: MockCluster, codec: str, key: Any, value: Any) -> None:
    # Given batches of messages that are nearly all headers: 30 MB, which compress to a few kilobytes
    topic = unique("headers")
    mock_cluster.create_topic(topic)
    kafka: Any = {"compression.type": codec, "batch.size": 10_000_000, "linger.ms": 10_000}
    headers = [("h", bytes(HEADER_BYTES))]
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=kafka) as producer:
        for _ in range(BATCHES):
            for _ in range(MESSAGES):
                producer.produce(topic, value, key=key, headers=headers)
            producer.flush(60)

    # When a handler does not go on
    statistics: Any = {"statistics.interval.ms": 50, "max.partition.fetch.bytes": 4_096}
    app = new_app(mock_cluster, fetch_memory_mb=MEMORY_MB, kafka=statistics)
    may_go_on, sizes = threading.Event(), Collected[tuple[int, int]]()

    @app.on(topic)
    def handle(message: awoke.Message[bytes | None]) -> None:
        may_go_on.wait()

    def note(event: awoke.Event) -> None:
        partitions = json.loads(event.fields["json"])["topics"].get(topic, {}).get("partitions", {})
        for each in partitions.values():
            if each["partition"] == 0 and each["fetchq_cnt"]:
                sizes.add((each["fetchq_cnt"], each["fetchq_size"]))

    app.events.subscribe(ClientStatistics, note)
    with running(app):
        try:
            found = sizes.wait_for(5)
        finally:
            may_go_on.set()

    # Then each message counts with its headers, and the queue is full before the log has ended
    assert all(size >= HEADER_BYTES * count for count, size in found)
    assert max(size for _, size in found) <= 3 * (MEMORY_MB << 20), "its share, and one response"
    assert max(count for count, _ in found) < BATCHES * MESSAGES
