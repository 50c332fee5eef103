"""Brokers for a test, real or embedded, behind one interface: the contract suite runs on both."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from typing import Any, Protocol

import awoke
from awoke.payloads.topics import Topic
from awoke.settings import KafkaValue
from awoke.testing import EmbeddedCluster
from awoke.testing.cluster import QUICK, TestCluster
from awoke.testing.outputs import QUICK_END
from tests.support.kafka_broker import KafkaCluster
from tests.support.waiting import wait_until

_numbers = itertools.count(1)


class Cluster(Protocol):
    """Brokers for a test."""

    is_real: bool
    admin: awoke.Admin
    properties: Mapping[str, KafkaValue]
    """Properties of the clients of a test: those of the pytest plugin; none for Apache Kafka, as users have it."""

    @property
    def bootstrap_servers(self) -> str: ...
    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None: ...
    def close(self) -> None: ...


MISSED_SOON = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}
"""For brokers that are killed: one that starts again has to wait until the controller has missed it, else for 9 s."""


class RealCluster:
    """Apache Kafka."""

    is_real = True
    properties: Mapping[str, KafkaValue] = {}

    def __init__(self, brokers: int = 1, kafka: dict[str, str] | None = None) -> None:
        self.kafka = KafkaCluster(brokers, kafka)
        self.kafka.__enter__()
        self.admin = awoke.Admin(self.kafka.bootstrap_servers)

    @property
    def bootstrap_servers(self) -> str:
        return self.kafka.bootstrap_servers

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        self.admin.create_topic(name, partitions=partitions, replicas=replicas, timeout_s=30)
        # Brokers hear of it one after the other, and a test may ask any of them.
        brokers = self.bootstrap_servers.split(",")
        for broker in brokers if len(brokers) > 1 else []:
            wait_until_known(broker, name)

    def close(self) -> None:
        self.admin.close()
        self.kafka.stop()


def wait_until_known(broker: str, topic: str) -> None:
    """Waits until a broker knows of a topic. Each question has its own client: later ones may go to any broker."""

    def is_known() -> bool:
        with awoke.Admin(broker) as admin, contextlib.suppress(awoke.UnknownTopic):
            admin.describe_topic(topic)
            return True
        return False

    wait_until(is_known, f"{broker} knows of {topic}")


class MockCluster:
    """Embedded brokers."""

    is_real = False
    properties: Mapping[str, KafkaValue] = QUICK

    def __init__(self, brokers: int = 1) -> None:
        self.embedded = EmbeddedCluster(brokers)
        self.admin = awoke.Admin(self.embedded.bootstrap_servers)

    @property
    def bootstrap_servers(self) -> str:
        return self.embedded.bootstrap_servers

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        self.embedded.create_topic(name, partitions, replicas)

    def close(self) -> None:
        self.admin.close()
        self.embedded.close()


class PluginCluster(TestCluster):
    """The brokers of the whole run, for the fixtures of the pytest plugin. They and their topics outlive the test."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.created: list[str] = []

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

    @property
    def kafka(self) -> Mapping[str, KafkaValue]:
        return self._cluster.properties

    @property
    def embedded(self) -> EmbeddedCluster | None:
        return self._cluster.embedded if isinstance(self._cluster, MockCluster) else None

    def create_topic(self, name: str, partitions: int | None = None) -> None:
        """Creates a topic; one that the test has created by itself stays as it is."""
        declared = name.partitions if isinstance(name, Topic) else None
        try:
            self._cluster.create_topic(name, partitions or declared or 1)
        except awoke.KafkaError as error:
            if error.code_name != "TOPIC_ALREADY_EXISTS":
                raise
        self.created.append(name)

    def close(self) -> None:
        """Does nothing: the brokers go on."""

    def settings_of(self, app: awoke.App) -> dict[str, Any]:
        """Returns none: each test names its groups by itself, and few have members that join one another.

        The timer of statistics that makes a rebalance quick costs 14 ms of processor time in each test.
        """
        return {}


def reading(cluster: Cluster, topic: str) -> awoke.Reader:
    """Returns a reader of a topic that connects, and finds the end, as quickly as those of the pytest plugin."""
    kafka = {**cluster.properties, **QUICK_END}
    return awoke.Reader(topic, bootstrap_servers=cluster.bootstrap_servers, kafka=kafka)


def read_all(cluster: Cluster, topic: str, within_s: float = 30.0) -> list[awoke.Message[bytes | None]]:
    """Returns the messages that a topic has now. Blocks."""
    with reading(cluster, topic) as reader:
        return list(reader.read_until_end(within_s))


def unique(word: str) -> str:
    """A name that no other test of this run has."""
    return f"{word}-{next(_numbers)}"
