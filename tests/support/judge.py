"""The content of a cluster, read by a client that shares no code with awoke's engine: logs, ends, committed offsets.

Every question makes a client of its own, because one that lives on may remember a topic or a leader of earlier.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.waiting import became, wait_until

TIMEOUT_S = 20.0
READ_WITHIN_S = 90.0
ANSWERED_WITHIN_S = 60.0
NEVER = -1
"""The committed offset of a partition that nothing was committed for."""


class Record(NamedTuple):
    """One message of a log."""

    offset: int
    key: bytes
    value: bytes


Log = dict[int, list[Record]]
"""A topic's records by partition."""


class Progress(NamedTuple):
    """The progress of a group in one partition."""

    committed: int
    """`NEVER` for nothing."""
    end: int

    @property
    def lag(self) -> int:
        """The number of messages that are not committed."""
        return self.end - max(self.committed, 0)


@contextlib.contextmanager
def consumer(
    servers: str, group: str = "judge", isolation: str = "read_uncommitted"
) -> Iterator[confluent_kafka.Consumer]:
    """A consumer that never joins its group."""
    made = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
    try:
        yield made
    finally:
        made.close()


def partitions_of(client: confluent_kafka.Consumer, topic: str) -> list[int]:
    """The numbers of a topic's partitions."""
    return sorted(client.list_topics(topic, TIMEOUT_S).topics[topic].partitions)


def log_of(servers: str, topic: str, isolation: str = "read_uncommitted") -> Log:
    """Returns a topic's records by partition, in order; with `read_committed`, once no transaction is open."""
    return {
        partition: [Record(each.offset() or 0, each.key() or b"", each.value() or b"") for each in messages]
        for partition, messages in messages_of(servers, topic, isolation).items()
    }


def messages_of(
    servers: str, topic: str, isolation: str = "read_uncommitted"
) -> dict[int, list[confluent_kafka.Message]]:
    """As `log_of`, with headers: the messages as the client gives them."""
    if isolation == "read_committed":
        wait_until(lambda: not has_open_transactions(servers, topic), f"no transaction is open in {topic}", 60)
    with consumer(servers, isolation=isolation) as client:
        found: dict[int, list[confluent_kafka.Message]] = {each: [] for each in partitions_of(client, topic)}
        client.assign([TopicPartition(topic, each, confluent_kafka.OFFSET_BEGINNING) for each in found])
        _read_to_ends(client, found)
    return found


def _read_to_ends(client: confluent_kafka.Consumer, found: dict[int, list[confluent_kafka.Message]]) -> None:
    """Put the messages of each partition there, up to its end."""
    reading, deadline_s = set(found), time.monotonic() + READ_WITHIN_S
    while reading:
        assert time.monotonic() < deadline_s, f"the rest of {sorted(reading)} did not come"
        for message in client.consume(1_000, 0.2):  # Waits for that number of messages or seconds.
            partition, error = message.partition() or 0, message.error()
            if error is None:
                found[partition].append(message)
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                reading.discard(partition)


def has_open_transactions(servers: str, topic: str) -> bool:
    """Tells whether messages of a topic are held back until a transaction ends."""
    try:
        return ends_of(servers, topic, "read_committed") != ends_of(servers, topic, "read_uncommitted")
    except confluent_kafka.KafkaException:
        return True  # A leader has just moved.


def ends_of(servers: str, topic: str, isolation: str) -> dict[int, int]:
    """The end of each partition, as far as it may be read."""
    with consumer(servers, isolation=isolation) as client:
        places = [TopicPartition(topic, each) for each in partitions_of(client, topic)]
        return {each.partition: client.get_watermark_offsets(each, TIMEOUT_S, cached=False)[1] for each in places}


def values_of(servers: str, topic: str, isolation: str = "read_uncommitted") -> list[bytes]:
    """The values of everything that a topic holds."""
    return [record.value for records in log_of(servers, topic, isolation).values() for record in records]


def progress(servers: str, group: str, topic: str) -> dict[int, Progress]:
    """Returns a group's progress by partition. Asks again where a coordinator or a leader has just moved."""
    found: list[dict[int, Progress]] = []

    def is_answered() -> bool:
        with contextlib.suppress(confluent_kafka.KafkaException, KeyError):
            found.append(_progress(servers, group, topic))
        return bool(found)

    wait_until(is_answered, f"the brokers say how far {group} is in {topic}", ANSWERED_WITHIN_S, every_s=0.3)
    return found[0]


def _progress(servers: str, group: str, topic: str) -> dict[int, Progress]:
    with consumer(servers, group) as client:
        places = [TopicPartition(topic, each) for each in partitions_of(client, topic)]
        committed = {place.partition: max(place.offset, NEVER) for place in client.committed(places, TIMEOUT_S)}
        ends = {place.partition: client.get_watermark_offsets(place, TIMEOUT_S, cached=False)[1] for place in places}
    return {partition: Progress(committed[partition], end) for partition, end in ends.items()}


def is_at_end(servers: str, group: str, topic: str) -> bool:
    """Tells whether a group has committed the end of every partition; not so while the brokers do not answer."""
    try:
        found = _progress(servers, group, topic)
    except (confluent_kafka.KafkaException, KeyError):
        return False
    return bool(found) and all(each.committed == each.end for each in found.values())


def comes_to_end(servers: str, group: str, topic: str, within_s: float = 60.0) -> bool:
    """Wait until a group has committed the end of every partition; whether it has before the time was up."""
    return became(lambda: is_at_end(servers, group, topic), within_s, every_s=0.3)


def _described(servers: str, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": servers, "reconnect.backoff.max.ms": 500, "log_level": 0})
    return admin.describe_consumer_groups([group], request_timeout=TIMEOUT_S)[group].result()


def is_rebalancing(servers: str, group: str) -> bool:
    """Tells whether a group waits for its members to join it."""
    return _described(servers, group).state is ConsumerGroupState.PREPARING_REBALANCING


def unowned(servers: str, group: str, topics: Sequence[str]) -> set[tuple[str, int]]:
    """Returns the partitions of topics that no member of a group owns, as its coordinator says; all in a rebalance."""
    with consumer(servers) as client:
        wanted = {(topic, each) for topic in topics for each in partitions_of(client, topic)}
    found = _described(servers, group)
    if found.state is not ConsumerGroupState.STABLE:
        return wanted
    return wanted - {
        (place.topic, place.partition) for member in found.members for place in member.assignment.topic_partitions
    }


def coordinator_of(servers: str, group: str) -> int:
    """Returns the broker that coordinates a group; -1 while there is none."""
    try:
        return int(_described(servers, group).coordinator.id)
    except confluent_kafka.KafkaException:
        return -1


def comes_to_own(servers: str, group: str, topics: Sequence[str], within_s: float) -> set[tuple[str, int]]:
    """Wait until the members of a group own all partitions of topics; returns those that they do not own in time."""
    rest = {(topic, -1) for topic in topics}

    def are_owned() -> bool:
        nonlocal rest
        with contextlib.suppress(confluent_kafka.KafkaException, KeyError):  # A coordinator or a leader has just moved.
            rest = unowned(servers, group, topics)
        return not rest

    became(are_owned, within_s, every_s=0.3)
    return rest


def feed(servers: str, topic: str, values: Sequence[bytes], key_of: int = 5, partition: int = 0) -> None:
    """Produce values to one partition, with one of a few keys each; returns when the broker has acknowledged all.

    The broker's acknowledgement is that of all replicas in sync.
    """
    settings = {"bootstrap.servers": servers, "acks": "all", "reconnect.backoff.max.ms": 500, "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    failed: list[object] = []
    for number, value in enumerate(values):
        key = b"%d" % (number % key_of)
        producer.produce(
            topic, value, key, partition, on_delivery=lambda error, _: failed.append(error) if error else None
        )
    assert producer.flush(60) == 0, f"{len(producer)} messages to {topic} were not acknowledged"
    assert not failed, failed
