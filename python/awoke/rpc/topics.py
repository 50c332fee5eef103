"""Finds the topics of a service, or creates them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from awoke.admin import Admin
from awoke.errors import AuthorizationFailed, KafkaError, UnknownTopic
from awoke.rpc.protocol import Topics
from awoke.settings import Settings

RETENTION = {"retention.ms": "3600000", "segment.ms": "600000", "message.timestamp.type": "CreateTime"}
"""Requests older than an hour have expired for every caller."""


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


def ensure(settings: Settings, topics: Topics, partitions: int) -> None:
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


def check(settings: Settings, service: str, topics: Topics) -> None:
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
