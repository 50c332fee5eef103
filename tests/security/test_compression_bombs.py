"""A small compressed batch never takes the memory of a process: its partition is stuck, and there is a way on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import awoke
from awoke import _native
from awoke.settings import KafkaValue
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected, wait_until

LIMIT_MB = 2
CODECS = ("gzip", "lz4", "snappy", "zstd")
DEFAULT_BYTES = 256 * 1024 * 1024


@pytest.fixture(autouse=True)
def default_limit() -> Iterator[None]:
    """Restores the limit, which holds for the process."""
    yield
    _native.set_fetched_batch_max(DEFAULT_BYTES)


def write(cluster: Cluster, topic: str, codec: str, batches: list[list[bytes]], partition: int = 0) -> None:
    """Write batches of values."""
    kafka: dict[str, KafkaValue] = {
        "compression.type": codec,
        "message.max.bytes": 100_000_000,
        "batch.size": 100_000_000,
        "batch.num.messages": 1_000_000,
        "linger.ms": 10_000,
    }
    with awoke.Producer(cluster.bootstrap_servers, kafka=kafka) as producer:
        for values in batches:
            for value in values:
                producer.produce(topic, value, partition=partition)
            producer.flush(60)


def test_the_partition_of_a_bomb_is_stuck_and_can_go_on(cluster: Cluster) -> None:
    # Given a batch of each codec that grows beyond the limit, by its bytes or by the number of its messages
    topic = unique("bombs")
    cluster.create_topic(topic, len(CODECS) + 1)
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, fetch_batch_max_mb=LIMIT_MB)
    bombs = {codec: [bytes(1_000_000)] * 4 for codec in CODECS} | {"many": [b""] * 10_000}
    stuck, seen = Collected[awoke.Event](), Collected[bytes]()
    app.events.subscribe("partition.stuck", stuck.add)

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    for partition, (codec, values) in enumerate(bombs.items()):
        write(cluster, topic, "gzip" if codec == "many" else codec, [values, [b"behind"]], partition)

    with running(app) as runner:
        # When it is fetched
        stuck.wait_for(len(bombs))

        # Then each partition is stuck, and its batch is told
        for event in stuck.items:
            last = len(list(bombs.values())[event.fields["partition"]]) - 1
            assert f"offsets 0 to {last} takes more than {LIMIT_MB} MB" in event.fields["text"]
        assert not runner.health().is_healthy
        assert seen.items == []

        # And an operator passes over it
        for partition in range(len(bombs)):
            assert runner.resume(topic, partition)
        assert seen.wait_for(len(bombs)) == [b"behind"] * len(bombs)
        wait_until(lambda: runner.health().is_healthy, "healthy")
    assert len(stuck.items) == len(bombs)


@pytest.mark.parametrize("codec", CODECS)
def test_batches_that_are_too_much_together_are_read_one_after_the_other(cluster: Cluster, codec: str) -> None:
    topic = unique("together")
    cluster.create_topic(topic)
    write(cluster, topic, codec, [[b"%d" % number + bytes(700_000)] * 2 for number in range(6)])
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, fetch_batch_max_mb=LIMIT_MB)
    seen, failed = Collected[tuple[int, bytes]](), Collected[awoke.Event]()
    app.events.subscribe("fetch.failed", failed.add)

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add((message.offset, message.value[:1]))

    with running(app):
        assert seen.wait_for(12) == [(offset, b"%d" % (offset // 2)) for offset in range(12)]
    assert failed.items == []
