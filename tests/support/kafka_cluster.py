"""Three brokers for tests that lose part of a log: broker 1 stays, brokers 2 and 3 hold the partitions that suffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.kafka_broker import KafkaCluster
from tests.support.waiting import wait_until

FENCED_AFTER_MS = 6_000
"""The time after which the controller notices that a broker was killed."""
WITHIN_S = 60.0


class ThreeBrokers(KafkaCluster):
    """Brokers 1, 2 and 3. Broker 1 is the only controller and must not be stopped.

    With `has_internal_topics_on_1`, broker 1 also holds the only replica of offsets and transactions. A fault of the
    others then concerns the data alone.
    """

    def __init__(self, *, has_internal_topics_on_1: bool = True) -> None:
        replicas = "1" if has_internal_topics_on_1 else "3"
        properties = {
            "broker.session.timeout.ms": str(FENCED_AFTER_MS),
            "broker.heartbeat.interval.ms": "500",
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "log.retention.ms": "-1",
            "replica.lag.time.max.ms": "10000",
        }
        super().__init__(3, properties, controllers=1)
        self._has_internal_topics_on_1 = has_internal_topics_on_1

    def start(self) -> None:
        """Format and start the brokers; returns when all have started."""
        self._prepare()
        self._launch([1])
        if self._has_internal_topics_on_1:
            make_internal_topics(self.servers_of(1))
        self._launch([2, 3])

    def servers_of(self, *broker_ids: int) -> str:
        """Where these brokers listen."""
        return ",".join(f"127.0.0.1:{self._brokers[each].port}" for each in broker_ids)

    def is_up(self, broker_id: int) -> bool:
        """Tells whether a broker's process runs."""
        return self._brokers[broker_id].is_running

    def create_topic(self, name: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str]) -> None:
        """Creates a topic; `replicas` has each partition's brokers, the leader first. Waits for the leaders."""
        admin = AdminClient({"bootstrap.servers": self.servers_of(1), "log_level": 0})
        topic = NewTopic(name, len(replicas), replica_assignment=[list(each) for each in replicas], config=dict(config))
        admin.create_topics([topic])[name].result(WITHIN_S)
        for partition, brokers in enumerate(replicas):
            self.wait_for_leader(name, partition, brokers[0])

    def wait_for_leader(self, topic: str, partition: int, broker_id: int) -> None:
        """Wait until a broker leads a partition."""

        def is_leader() -> bool:
            return self.leader_and_in_sync(topic, partition)[0] == broker_id

        wait_until(is_leader, f"broker {broker_id} leads {topic}[{partition}]", WITHIN_S)

    def wait_in_sync(self, topic: str, partition: int, count: int) -> None:
        """Wait until a partition has this many replicas in sync."""

        def is_in_sync() -> bool:
            return len(self.leader_and_in_sync(topic, partition)[1]) == count

        wait_until(is_in_sync, f"{topic}[{partition}] has {count} replicas in sync", WITHIN_S)

    def leader_and_in_sync(self, topic: str, partition: int) -> tuple[int, list[int]]:
        """Asks broker 1 for a partition's leader, -1 for none, and its replicas in sync; nothing is cached."""
        admin = AdminClient({"bootstrap.servers": self.servers_of(1), "log_level": 0})
        found = admin.list_topics(topic, WITHIN_S).topics[topic].partitions.get(partition)
        return (-1, []) if found is None else (int(found.leader), list(found.isrs))


def make_internal_topics(servers: str) -> None:
    """Have the broker create the topics that it keeps offsets and transactions in."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "first", "log_level": 0})
    producer.init_transactions(WITHIN_S)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "first", "log_level": 0})

    def has_offsets() -> bool:
        try:
            consumer.committed([confluent_kafka.TopicPartition("first", 0)], 5)
        except confluent_kafka.KafkaException:
            return False
        return True

    try:
        wait_until(has_offsets, "the broker keeps offsets", WITHIN_S)
    finally:
        consumer.close()
