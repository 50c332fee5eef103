"""The brokers of one test: embedded ones of its own, or Apache Kafka in turn with other tests."""

from __future__ import annotations

import contextlib
import fcntl
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from awoke.admin import Admin
from awoke.app.app import App
from awoke.declare.group_routes import OWN
from awoke.errors import ConfigError, KafkaError, UnknownTopic
from awoke.payloads.topics import Topic
from awoke.rpc.protocol import ServiceTopics
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.settings import KafkaValue

QUICK: Mapping[str, KafkaValue] = {"reconnect.backoff.ms": 1, "retry.backoff.ms": 10}
"""Properties of clients of embedded brokers. librdkafka (2.12.1) waits for half of the first, and at least 11 ms,
before it makes another connection to any broker: by default 50 ms for each new client. The second is the delay before
it repeats a refused request, by default 100 ms, which doubles."""


HEARTBEAT: Mapping[str, KafkaValue] = {"heartbeat.interval.ms": 50, "statistics.interval.ms": 50}
"""A member of a classic group hears of a rebalance by a heartbeat, by default every 3 s. The new protocol has no such
property. librdkafka (2.12.1) looks every 500 ms whether a heartbeat is due, or when another timer of its main thread
ends: the timer of statistics."""


class TestCluster(Protocol):
    """Brokers of one test. The fixture `awoke_cluster`."""

    __test__: ClassVar[bool] = False
    """Says that this is no class of tests."""
    created: list[str]
    """The topics that this test has created."""

    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers listen."""

    @property
    def embedded(self) -> EmbeddedCluster | None:
        """The brokers inside the process; None for Apache Kafka."""

    @property
    def kafka(self) -> Mapping[str, KafkaValue]:
        """Properties of librdkafka for all clients, which those of an app override."""

    def create_topic(self, name: str, partitions: int | None = None) -> None:
        """Creates a topic for this test; one that this test has created stays as it is. Blocks.

        `None` takes the partitions that the topic declares, or 1.

        Raises:
            ConfigError: Apache Kafka has the topic already: it is not the test's.
        """

    def settings_of(self, app: App) -> dict[str, Any]:
        """Returns the settings that an app needs here. Blocks.

        Raises:
            ConfigError: Apache Kafka has a group of the app already: it is not the test's.
        """

    def close(self) -> None:
        """Ends the brokers, or removes from Apache Kafka what the test has created. Blocks."""


class EmbeddedTestCluster(TestCluster):
    """Embedded brokers of one test."""

    kafka = QUICK

    def __init__(self) -> None:
        self._embedded = EmbeddedCluster()
        self.created: list[str] = []

    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers listen."""
        return self._embedded.bootstrap_servers

    @property
    def embedded(self) -> EmbeddedCluster:
        """The brokers."""
        return self._embedded

    def create_topic(self, name: str, partitions: int | None = None) -> None:
        """Creates a topic; one that exists stays as it is. Blocks."""
        self._embedded.create_topic(name, partitions)
        self.created.append(name)

    def settings_of(self, app: App) -> dict[str, Any]:
        """Returns settings that make rebalances quick."""
        protocol = app.settings.kafka.get("group.protocol", "classic")
        return {"kafka": HEARTBEAT} if protocol == "classic" else {}

    def close(self) -> None:
        """Stops the brokers. Blocks."""
        self._embedded.close()


class OutsideTestCluster(TestCluster):
    """Apache Kafka, which tests use in turn: each creates its topics and groups, and deletes them at its end.

    It touches no other topic and no other group. Tests of one machine take turns by the lock of a file, so that topics
    may have fixed names; of an app's own group each test gets a new name.
    """

    embedded = None
    kafka: Mapping[str, KafkaValue] = {}

    def __init__(self, bootstrap_servers: str, lock: Path) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._lock = lock.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._admin = Admin(bootstrap_servers)
        self.created: list[str] = []
        self._groups: list[str] = []
        self._suffix = uuid.uuid4().hex[:12]

    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers listen."""
        return self._bootstrap_servers

    def create_topic(self, name: str, partitions: int | None = None) -> None:
        """Creates a topic for this test; one that this test has created stays as it is. Blocks.

        Raises:
            ConfigError: The topic exists already.
        """
        if name in self.created:
            return
        declared = name.partitions if isinstance(name, Topic) else None
        try:
            self._admin.create_topic(name, partitions=partitions or declared or 1)
        except KafkaError as error:
            if error.code_name != "TOPIC_ALREADY_EXISTS":
                raise
            text = f"topic {str(name)!r} exists on {self._bootstrap_servers}, and no test has created it"
            text = f"{text}; a test deletes its topics at its end: delete this one, or use brokers for tests alone"
            raise ConfigError(text, "awoke_cluster") from None
        self.created.append(name)

    def settings_of(self, app: App) -> dict[str, Any]:
        """Returns a group of this test's own, unless callers must find the app by its name. Blocks.

        Raises:
            ConfigError: A group that the app names exists already.
        """
        own = app.settings.group or app.name
        named = [key.name(own) for key in app.groups if key != OWN] + ([own] if app.rpc.methods else [])
        self._take_groups([name for name in named if name not in self._groups])
        if app.rpc.methods:
            return {}
        group = f"{own}-{self._suffix}"
        self._groups.append(group)
        return {"group": group}

    def _take_groups(self, names: list[str]) -> None:
        found = {each.name for each in self._admin.list_groups()} if names else set()
        for name in names:
            if name in found:
                text = f"group {name!r} exists on {self._bootstrap_servers}, and no test has created it"
                raise ConfigError(f"{text}; delete it, or use brokers for tests alone", "awoke_cluster")
            self._groups.append(name)

    def close(self) -> None:
        """Deletes the topics and groups of this test. Blocks."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._lock.close)
            stack.callback(self._admin.close)
            for topic in self.created:
                stack.callback(delete_topic, self._admin, topic)
            for group in self._groups:
                stack.callback(delete_group, self._admin, group)


def delete_topic(admin: Admin, topic: str) -> None:
    """Deletes a topic; one that a test has deleted is no error. Blocks."""
    with contextlib.suppress(UnknownTopic):
        admin.delete_topic(topic)


def delete_group(admin: Admin, group: str) -> None:
    """Deletes a group; one that nothing has joined, or that has committed nothing, is no error. Blocks."""
    try:
        admin.delete_group(group)
    except KafkaError as error:
        if error.code_name != "GROUP_ID_NOT_FOUND":
            raise


def topics_of(app: App) -> dict[str, int]:
    """Returns the topics that an app reads, writes and declares, with their partitions.

    Those that only patterns match are not known.
    """
    routes = app.all_routes
    names = [*app.read_topics, *(topic for route in routes for topic in route.topics_out), *app.topics]
    partitions = {str(name): _partitions(app, name) for name in names}
    for route in routes:
        if route.partitions and route.topic in partitions:
            partitions[route.topic] = max(partitions[route.topic], max(route.partitions) + 1)
    if app.rpc.methods:
        rpc = ServiceTopics.of(app.rpc.service)
        partitions |= dict.fromkeys([rpc.calls, rpc.replies], app.rpc.settings.partitions)
    return partitions


def _partitions(app: App, topic: str) -> int:
    declared = app.topics.get(topic)
    return 1 if declared is None else declared.partitions or 1


def create_topics_of(cluster: TestCluster, app: App) -> None:
    """Creates the topics that an app reads, writes and declares. Blocks.

    Raises:
        ConfigError: Apache Kafka has one of them already.
    """
    for name, partitions in topics_of(app).items():
        cluster.create_topic(name, partitions)
