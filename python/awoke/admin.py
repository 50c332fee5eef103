"""Administration of topics, brokers, offsets and records."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple

from awoke import _native, origins
from awoke.errors import (
    AUTHORIZATION_CODES,
    AwokeError,
    BrokerUnreachable,
    ConfigError,
    KafkaError,
    OperationTimeout,
    UnknownTopic,
    kafka_error,
)
from awoke.events import EventSource
from awoke.oauth import TokenFunction
from awoke.settings import KafkaValue, Settings, client_properties, load

NEW_WITHIN_S = 2.0
"""A topic that was made just now is known to all brokers within this time."""
ASK_AGAIN_S = 0.05
"""The delay between two questions for a topic that may be new."""

Metadata = tuple[list[tuple[int, str]], list[tuple[str, int, list[tuple[int, int, list[int], list[int]]]]]]
"""Brokers, and topics with an error's code and their partitions."""

TIMEOUT_S = 10.0
EARLIEST = -2
LATEST = -1


class BrokerInfo(NamedTuple):
    """One broker."""

    id: int
    address: str


class PartitionInfo(NamedTuple):
    """One partition of a topic."""

    partition: int
    leader: int
    """The id of the broker that leads it; -1 when none does."""
    replicas: list[int]
    in_sync: list[int]


class TopicInfo(NamedTuple):
    """One topic."""

    name: str
    partitions: list[PartitionInfo]


class Admin:
    """Reads and changes topics, brokers, offsets and records. Any thread; every call blocks up to its `timeout_s`.

    Raises, from every call:
        BrokerUnreachable: no broker answered in time; names their addresses.
        AuthenticationFailed, TlsFailed: no broker lets the client in; says why, without waiting for the time.
        KafkaError: a broker refused; see `code_name`.
    """

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        kafka: Mapping[str, KafkaValue] | None = None,
        oauth_token: TokenFunction | None = None,
        settings: Settings | None = None,
    ) -> None:
        arguments = {"bootstrap_servers": bootstrap_servers, "kafka": kafka, "oauth_token": oauth_token}
        settings = settings or load(arguments).values
        self._source = EventSource()
        self._closed = threading.Event()
        try:
            # A request for metadata must not create a topic: a misspelt name would not be noticed.
            properties = client_properties(settings)
            properties.setdefault("allow.auto.create.topics", "false")
            with origins.named():
                self._native = _native.Admin(properties, self._source.box)
        except BaseException:
            self._source.close()
            raise

    def _metadata(self, topic: str | None, timeout_s: float) -> Metadata:
        with origins.named():
            return self._native.metadata(topic, timeout_s)

    def brokers(self, timeout_s: float = TIMEOUT_S) -> list[BrokerInfo]:
        """Returns all brokers, by id."""
        brokers, _ = self._metadata(None, timeout_s)
        return [BrokerInfo(*broker) for broker in brokers]

    def topics(self, timeout_s: float = TIMEOUT_S) -> list[TopicInfo]:
        """Returns all topics, by name."""
        _, topics = self._metadata(None, timeout_s)
        return [_topic_info(name, partitions) for name, _, partitions in topics]

    def describe_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> TopicInfo:
        """Returns one topic.

        Raises:
            UnknownTopic: There is none of this name. AuthorizationFailed: An ACL does not allow to describe it.
        """
        _, topics = self._metadata(name, timeout_s)
        for found, code, partitions in topics:
            if found == name and code == 0:
                return _topic_info(found, partitions)
            if found == name and code in AUTHORIZATION_CODES:
                text = f"topic {name!r}: not allowed; an ACL must allow DESCRIBE, and READ or WRITE"
                raise kafka_error(text, code, "TOPIC_AUTHORIZATION_FAILED", False)
        raise kafka_error(f"topic {name!r} does not exist", 3, "UNKNOWN_TOPIC_OR_PART", False)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replicas: int = -1,
        config: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Creates a topic; -1 takes the brokers' defaults. Waits, within `timeout_s`, until a broker knows of it.

        Raises:
            KafkaError: `TOPIC_ALREADY_EXISTS`, or another error of the brokers.
        """
        until_s = time.monotonic() + timeout_s
        settings = list((config or {}).items())
        call = self._native.create_topics([(name, partitions, replicas, settings)], timeout_s)
        try:
            created = call.wait(timeout_s)
        except (BrokerUnreachable, OperationTimeout) as error:
            raise self._unanswered(f"create topic {name!r}", error) from None
        _check_topics("create", created)
        with contextlib.suppress(KafkaError):  # It is created even if an ACL does not allow to describe it.
            self.wait_for_topic(name, until_s - time.monotonic())

    def find_topic(self, name: str, timeout_s: float = TIMEOUT_S, new_within_s: float = NEW_WITHIN_S) -> TopicInfo:
        """Describes a topic that may be new: brokers that do not know it are asked again for `new_within_s` seconds.

        Blocks; `close` on another thread ends the wait.

        Raises:
            UnknownTopic: No broker knew the topic in time.
            AuthorizationFailed: An ACL does not allow DESCRIBE.
        """
        until_s = time.monotonic() + new_within_s
        while True:
            try:
                return self.describe_topic(name, timeout_s)
            except UnknownTopic:
                # A poll, and a known limit: Kafka has no request that waits for a topic. A broker learns of a new topic
                # from the controller some time after it was made, and tells its clients only when they ask.
                if time.monotonic() >= until_s or self._closed.wait(ASK_AGAIN_S):
                    raise

    def wait_for_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Waits until a broker knows of a topic. Blocks.

        Raises:
            UnknownTopic: none did within `timeout_s`.
        """
        self.find_topic(name, max(timeout_s, ASK_AGAIN_S), timeout_s)

    def delete_topic(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        """Deletes a topic.

        Raises:
            UnknownTopic: there is none of this name.
        """
        _check_topics("delete", self._native.delete_topics([name], timeout_s).wait(timeout_s))

    def group_offsets(self, group: str, timeout_s: float = TIMEOUT_S) -> dict[tuple[str, int], int]:
        """Returns the committed offsets of a group, by topic and partition."""
        offsets = self._native.group_offsets(group, timeout_s).wait(timeout_s)
        return {(topic, partition): offset for topic, partition, offset, _ in offsets if offset >= 0}

    def start_offsets(self, topic: str, timeout_s: float = TIMEOUT_S) -> dict[int, int]:
        """Returns the first offset that is not deleted, by partition."""
        return self._offsets(topic, EARLIEST, timeout_s)

    def end_offsets(self, topic: str, timeout_s: float = TIMEOUT_S) -> dict[int, int]:
        """Returns the offset after the last message, by partition."""
        return self._offsets(topic, LATEST, timeout_s)

    def offsets_at(self, topic: str, time_ms: int, timeout_s: float = TIMEOUT_S) -> dict[int, int]:
        """Returns the first offset at or after a time (ms since 1970), by partition; the end where there is none.

        Raises:
            ConfigError: the time is before 1970; UnknownTopic, KafkaError. Blocks.
        """
        if time_ms < 0:
            raise ConfigError(f"time_ms must not be negative, and is {time_ms}", "time_ms")
        ends = self.end_offsets(topic, timeout_s)
        found = self._offsets(topic, time_ms, timeout_s)
        return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}

    def delete_records(self, topic: str, before: Mapping[int, int], timeout_s: float = TIMEOUT_S) -> dict[int, int]:
        """Deletes the records of a topic that lie before these offsets, by partition. They are gone for good. Blocks.

        Returns the first offset that is still there, by partition.

        Raises:
            KafkaError: a partition's records could not be deleted; those of others may be gone.
        """
        wanted = [(topic, partition, offset) for partition, offset in sorted(before.items())]
        if not wanted:
            return {}
        answer = self._native.delete_records(wanted, timeout_s).wait(timeout_s)
        for _, partition, _, code in answer:
            if code:
                raise kafka_error(f"records of {topic}[{partition}] could not be deleted", code, "", False)
        return {partition: offset for _, partition, offset, _ in answer}

    def _offsets(self, topic: str, at: int, timeout_s: float) -> dict[int, int]:
        partitions = [(topic, each.partition) for each in self.describe_topic(topic, timeout_s).partitions]
        offsets = self._native.list_offsets(partitions, at, timeout_s).wait(timeout_s)
        for _, partition, _, code in offsets:
            if code:
                raise kafka_error(f"offsets of {topic}[{partition}] could not be read", code, "", False)
        return {partition: offset for _, partition, offset, _ in offsets}

    def _unanswered(self, what: str, error: AwokeError) -> AwokeError:
        """Returns why a request had no answer: brokers inside a process answer others, but not this one."""
        with contextlib.suppress(AwokeError):
            addresses = ", ".join(each.address for each in self.brokers(1.0))
            return KafkaError(
                f"{what}: {addresses} answers other requests, but not this one; brokers of EmbeddedCluster have "
                "its method create_topic, those of `awoke broker` know `awoke topics create`",
                -185,
                "_TIMED_OUT",
                is_retriable=False,
            )
        return error

    def close(self) -> None:
        """Ends the client, and every wait for a topic. Closing again does nothing. Usable from any thread."""
        self._closed.set()
        self._native.close()
        self._source.close()

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _topic_info(name: str, partitions: list[tuple[int, int, list[int], list[int]]]) -> TopicInfo:
    return TopicInfo(name, [PartitionInfo(*partition) for partition in partitions])


def _check_topics(verb: str, topics: list[tuple[str, int, str, str]]) -> None:
    for name, code, code_name, text in topics:
        if code:
            raise kafka_error(f"{verb} topic {name!r}: {text or code_name}", code, code_name, False)
