"""The topics of a service: they are found, or created; and those of replies are looked up while calls come."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from awoke.admin import Admin
from awoke.errors import AuthorizationFailed, AwokeError, ConfigError, KafkaError, UnknownTopic
from awoke.rpc.protocol import ServiceTopics
from awoke.settings import Settings
from awoke.waiting.clock import monotonic_s

logger = logging.getLogger(__name__)

RETENTION = {"retention.ms": "3600000", "segment.ms": "600000", "message.timestamp.type": "CreateTime"}
"""Requests older than an hour have expired for every caller."""

AGAIN_S = 10.0
"""Interval between two lookups, which an unknown partition causes."""

FRESH_S = 1.0
"""A call that was read before a lookup ended may be read again for this time."""


def partitions_of(settings: Settings, topics: Iterable[str]) -> dict[str, int]:
    """Looks up how many partitions topics have; 0 for one that does not exist, or may not be described.

    Blocks up to `startup_timeout_s` for each.

    Raises:
        BrokerUnreachable.
    """
    found: dict[str, int] = {}
    with Admin(settings=settings) as admin:
        for topic in topics:
            try:
                found[topic] = len(admin.describe_topic(topic, settings.startup_timeout_s).partitions)
            except (UnknownTopic, AuthorizationFailed):
                found[topic] = 0
    return found


def ensure(settings: Settings, topics: ServiceTopics, partitions: int) -> None:
    """Creates the topics that do not exist. Blocks up to `startup_timeout_s` for each.

    Raises:
        UnknownTopic: one does not exist and can't be created; says why. BrokerUnreachable.
    """
    # Embedded brokers create a topic only when its metadata is requested.
    kafka = {"allow.auto.create.topics": "true", **settings.kafka}
    with Admin(settings=msgspec.structs.replace(settings, kafka=kafka)) as admin:
        for topic in topics:
            try:
                admin.describe_topic(topic, settings.startup_timeout_s)
            except UnknownTopic:
                _create(admin, topic, partitions, settings.startup_timeout_s)


def ensure_partitions(settings: Settings, topics: ServiceTopics, partitions: int) -> None:
    """Creates the topics that do not exist, as `ensure`; that of calls has exactly this number of partitions.

    Blocks up to `startup_timeout_s` for each.

    Raises:
        UnknownTopic: as `ensure`. ConfigError: the topic of calls has another number of partitions. BrokerUnreachable.
    """
    kafka = {**settings.kafka, "allow.auto.create.topics": "false"}
    with Admin(settings=msgspec.structs.replace(settings, kafka=kafka)) as admin:
        for topic in topics:
            try:
                found = len(admin.describe_topic(topic, settings.startup_timeout_s).partitions)
            except UnknownTopic:
                _create(admin, topic, partitions, settings.startup_timeout_s)
                continue
            if topic == topics.calls and found != partitions:
                text = f"topic {topic!r} has {found} partitions, and needs {partitions}: delete it, awoke makes it anew"
                raise ConfigError(text, "partitions")


def check(settings: Settings, service: str, topics: ServiceTopics) -> None:
    """Checks that the topics exist. Blocks up to `startup_timeout_s` for each.

    Raises:
        UnknownTopic: one does not. BrokerUnreachable.
    """
    with Admin(settings=settings) as admin:
        for topic in topics:
            try:
                admin.find_topic(topic, settings.startup_timeout_s)
            except UnknownTopic as error:
                text = (
                    f"service {service!r} has no topic {topic} on {settings.bootstrap_servers}: if that is its name, "
                    "start it, which makes its topics, or make them here with create_topics=True"
                )
                raise UnknownTopic(text, error.code, error.code_name) from None


def _create(admin: Admin, topic: str, partitions: int, timeout_s: float) -> None:
    try:
        admin.create_topic(topic, partitions=partitions, config=RETENTION, timeout_s=timeout_s)
    except KafkaError as error:
        if error.code_name != "TOPIC_ALREADY_EXISTS":
            text = (
                f"topic {topic!r} does not exist and can't be created ({error}); "
                f"create it: awoke topics create {topic} --partitions {partitions}"
            )
            raise UnknownTopic(text, error.code, error.code_name) from None
        admin.wait_for_topic(topic, timeout_s)  # Another process has just created it.


class ReplyTopics:
    """Looks up the partitions of one responder's reply topics. Any thread.

    A call whose reply can't be sent is not executed.
    """

    def __init__(self, settings: Settings, names: Iterable[str]) -> None:
        self._settings, self._names = settings, sorted(names)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._began_s = self._ended_s = float("-inf")
        """When the last lookup began and ended, on awoke's clock."""

    def look_up(self) -> dict[str, int]:
        """Looks up how many partitions each has. Blocks up to `startup_timeout_s` for each.

        Raises:
            BrokerUnreachable.
        """
        self._began_s = monotonic_s()
        return partitions_of(self._settings, self._names)

    def is_looking_again(self, tell: Callable[[Mapping[str, int]], None]) -> bool:
        """Looks them up again on another thread, unless that was done lately. `tell` gets the result. Does not block.

        Returns whether another partition may be known soon, or since the call was read.
        """
        with self._lock:
            now_s = monotonic_s()
            if self._thread is not None and (self._thread.is_alive() or now_s < self._ended_s + FRESH_S):
                return True
            if now_s < self._began_s + AGAIN_S:
                return False
            self._began_s = now_s
            self._thread = threading.Thread(target=self._run, args=(tell,), name="awoke-rpc-lookup", daemon=True)
            self._thread.start()
            return True

    def _run(self, tell: Callable[[Mapping[str, int]], None]) -> None:
        try:
            tell(self.look_up())
        except AwokeError as error:
            logger.warning("the partitions of %s could not be looked up: %s", ", ".join(self._names), error)
        finally:
            self._ended_s = monotonic_s()

    def close(self, deadline_s: float) -> None:
        """Waits for a lookup that is under way, at most until the deadline. Blocks."""
        thread = self._thread
        if thread is not None:
            thread.join(max(0.0, deadline_s - time.monotonic()))
