"""Lists, shows, creates and changes topics. Each function blocks until the brokers have answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from awoke.admin import Admin, BrokerInfo, TopicInfo
from awoke.console.access import TIMEOUT_S
from awoke.console.clusters.risks import risks_of
from awoke.console.clusters.views import (
    BrokerView,
    ConfigChange,
    ConfigView,
    NewTopic,
    TopicPartition,
    TopicRow,
    TopicsView,
    TopicView,
)
from awoke.errors import ConfigError, KafkaError, OperationTimeout
from awoke.preconditions import checks

PAGE = 100
"""The topics of a page."""
PARTITIONS_MAX = 10_000
"""The most partitions that are created: more are a mistake more often than a plan."""
MIN_IN_SYNC = "min.insync.replicas"


def list_topics(admin: Admin, search: str = "", at: int = 0, limit: int = PAGE) -> TopicsView:
    """Returns a page of the topics whose name has a text in it: the app's own first, then by name.

    Raises:
        BrokerUnreachable; AuthorizationFailed.
    """
    brokers, topics = admin.brokers(TIMEOUT_S), admin.topics(TIMEOUT_S)
    wanted = sorted((each for each in topics if search.lower() in each.name.lower()), key=_order)
    ids = [each.id for each in brokers]
    return TopicsView(
        brokers=[_broker(each, topics) for each in brokers],
        topics=[_row(each, ids) for each in wanted[at : at + limit]],
        total=len(wanted),
        at=at,
    )


def show_topic(admin: Admin, name: str, offsets_max: int = PARTITIONS_MAX) -> TopicView:
    """Returns one topic with offsets, settings and risks; what can't be asked is left out, and named in the notes.

    A topic of more partitions than `offsets_max` has no offsets: `offsets_of` asks for those of some partitions.

    Raises:
        UnknownTopic; BrokerUnreachable; AuthorizationFailed.
    """
    found, brokers = admin.describe_topic(name, TIMEOUT_S), admin.brokers(TIMEOUT_S)
    notes: list[str] = []
    starts, ends, configs = dict[int, int](), dict[int, int](), list[ConfigView]()
    try:
        if len(found.partitions) <= offsets_max:
            starts, ends = admin.start_offsets(name, TIMEOUT_S), admin.end_offsets(name, TIMEOUT_S)
    except (KafkaError, OperationTimeout) as error:
        notes.append(f"offsets are not known: {error}")
    try:
        configs = configs_of(admin, name)
    except (KafkaError, OperationTimeout) as error:
        notes.append(f"settings are not known: {error}")
    partitions = [_partition(each, starts, ends) for each in _partitions(found)]
    offsets = [each.offsets for each in partitions]
    known = [each for each in offsets if each is not None]
    return TopicView(
        name=found.name,
        partitions=partitions,
        offsets=sum(known) if len(known) == len(offsets) else None,
        configs=configs,
        risks=risks_of(partitions, [each.id for each in brokers], _min_in_sync(configs)),
        notes=notes,
    )


def offsets_of(admin: Admin, name: str, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Returns these partitions with their offsets; without them where they can't be asked. Blocks."""
    numbers = [each.partition for each in partitions]
    try:
        starts = admin.start_offsets(name, TIMEOUT_S, partitions=numbers)
        ends = admin.end_offsets(name, TIMEOUT_S, partitions=numbers)
    except (KafkaError, OperationTimeout):
        return list(partitions)
    return [_partition(msgspec.structs.replace(each), starts, ends) for each in partitions]


def configs_of(admin: Admin, name: str) -> list[ConfigView]:
    """Returns the settings of a topic, those that are not the defaults first.

    Raises:
        UnknownTopic; AuthorizationFailed; BrokerUnreachable.
    """
    found = [ConfigView(**each._asdict()) for each in admin.describe_configs(name, TIMEOUT_S).values()]
    return sorted(found, key=lambda each: (each.is_default, each.name))


def check_new(new: NewTopic) -> None:
    """Refuses a topic that no broker would create.

    Raises:
        ConfigError: Its name, or a number, is wrong.
    """
    checks.topic("the topic", "name", new.name)
    if new.partitions is not None and not 1 <= new.partitions <= PARTITIONS_MAX:
        raise ConfigError(f"partitions is a number from 1 to {PARTITIONS_MAX}, not {new.partitions}", "partitions")
    if new.replicas is not None and not 1 <= new.replicas <= 100:
        raise ConfigError(f"replicas is a number from 1 to 100, not {new.replicas}", "replicas")


def create_topic(admin: Admin, new: NewTopic) -> None:
    """Creates a topic.

    Raises:
        ConfigError: Its name, or a number, is wrong. KafkaError: `TOPIC_ALREADY_EXISTS`, or the brokers refuse it.
    """
    check_new(new)
    admin.create_topic(
        new.name,
        partitions=-1 if new.partitions is None else new.partitions,
        replicas=-1 if new.replicas is None else new.replicas,
        config=new.config,
        timeout_s=TIMEOUT_S,
    )


def add_partitions(admin: Admin, name: str, total: int) -> int:
    """Adds partitions up to a total; returns the number of those that were added. Keys go to others from then on.

    Raises:
        ConfigError: The topic has this number already: Kafka removes none. UnknownTopic; KafkaError.
    """
    count = len(admin.describe_topic(name, TIMEOUT_S).partitions)
    if not count < total <= PARTITIONS_MAX:
        text = f"total is a number from {count + 1} to {PARTITIONS_MAX}: topic {name!r} has {count} partitions"
        raise ConfigError(text, "total")
    admin.create_partitions(name, total, TIMEOUT_S)
    return total - count


def plan_configs(admin: Admin, name: str, changes: Mapping[str, str | None]) -> list[ConfigChange]:
    """Returns what a change of settings would change; None takes a setting back to its default.

    Raises:
        ConfigError: There is no such setting, or it can't be changed. UnknownTopic; AuthorizationFailed.
    """
    return list(_config_changes({each.name: each for each in configs_of(admin, name)}, changes))


def change_configs(admin: Admin, name: str, changes: Mapping[str, str | None]) -> list[ConfigChange]:
    """Changes settings of a topic and leaves the others; returns the changes that were made.

    Raises:
        ConfigError: There is no such setting. KafkaError: `INVALID_CONFIG`; nothing was changed.
    """
    made = plan_configs(admin, name, changes)
    admin.alter_configs(name, {each.name: each.after for each in made}, TIMEOUT_S)
    return made


def _config_changes(configs: Mapping[str, ConfigView], changes: Mapping[str, str | None]) -> Iterator[ConfigChange]:
    for name, after in changes.items():
        if name not in configs:
            raise ConfigError(f"a topic has no setting {name!r}", name)
        before = configs[name]
        if before.is_read_only:
            raise ConfigError(f"the setting {name!r} can't be changed", name)
        if after != before.value and not (after is None and before.is_default):
            yield ConfigChange(name=name, before=before.value, after=after)


def _min_in_sync(configs: list[ConfigView]) -> int | None:
    value = next((each.value for each in configs if each.name == MIN_IN_SYNC), None)
    return int(value) if value is not None and value.isdecimal() else None


def _order(topic: TopicInfo) -> tuple[bool, str]:
    return topic.name.startswith("__"), topic.name


def _broker(broker: BrokerInfo, topics: list[TopicInfo]) -> BrokerView:
    partitions = [each for topic in topics for each in topic.partitions]
    leads = sum(each.leader == broker.id for each in partitions)
    return BrokerView(
        id=broker.id,
        address=broker.address,
        leads=leads,
        replicas=sum(broker.id in each.replicas for each in partitions),
    )


def _row(topic: TopicInfo, brokers: list[int]) -> TopicRow:
    partitions = _partitions(topic)
    return TopicRow(
        name=topic.name,
        partitions=len(partitions),
        replicas=min((len(each.replicas) for each in partitions), default=0),
        is_internal=topic.name.startswith("__"),
        risks=risks_of(partitions, brokers),
    )


def _partitions(topic: TopicInfo) -> list[TopicPartition]:
    return [
        TopicPartition(
            partition=each.partition,
            leader=None if each.leader < 0 else each.leader,
            replicas=each.replicas,
            in_sync=each.in_sync,
        )
        for each in topic.partitions
    ]


def _partition(partition: TopicPartition, starts: dict[int, int], ends: dict[int, int]) -> TopicPartition:
    partition.start, partition.end = starts.get(partition.partition), ends.get(partition.partition)
    return partition
