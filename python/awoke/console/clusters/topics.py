"""Lists, shows, creates and changes topics. Each function blocks until the brokers have answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from awoke.admin import Admin, BrokerInfo, TopicInfo
from awoke.console.access import TIMEOUT_S
from awoke.console.clusters.views import (
    BrokerView,
    ConfigChange,
    ConfigView,
    NewTopic,
    Risk,
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
OFFLINE, REFUSED, AT_LEAST, BEHIND, SINGLE, TIGHT = 90, 80, 70, 60, 40, 30
"""The severity of each kind: the loss of messages and of service comes first."""
NAMED_MAX = 10
"""The most partitions that a text names."""


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


def risks_of(
    partitions: Sequence[TopicPartition], brokers: Collection[int], min_in_sync: int | None = None
) -> list[Risk]:
    """Returns the risks, the most severe first. Without `min.insync.replicas` those about it are left out."""
    return sorted(_all(partitions, brokers, min_in_sync), key=lambda each: (-each.severity, each.kind))


def _all(partitions: Sequence[TopicPartition], brokers: Collection[int], least: int | None) -> Iterable[Risk]:
    offline = [each for each in partitions if each.leader is None]
    if offline:
        text = f"{_named(offline)} has no leader: its messages can be neither read nor written"
        yield _risk("no leader", OFFLINE, text, "start the brokers that have its replicas", offline)
    led = [each for each in partitions if each.leader is not None]
    if least is not None:
        refused = [each for each in led if len(each.in_sync) < least]
        if refused:
            text = f"{_named(refused)} has fewer than {least} replicas in sync: messages with acks=all are refused"
            yield _risk("producers refused", REFUSED, text, "start the brokers that lag behind", refused)
        last = [each for each in led if len(each.in_sync) == least and len(each.replicas) > least]
        if last:
            text = f"{_named(last)} has {least} replicas in sync: one less, and messages with acks=all are refused"
            yield _risk("at the least", AT_LEAST, text, "start the brokers that lag behind", last)
    behind = [each for each in led if len(each.in_sync) < len(each.replicas)]
    if behind:
        text = f"{_named(behind)} has replicas that are not in sync"
        yield _risk("under-replicated", BEHIND, text, "look for brokers that are away or slow", behind)
    single = [each for each in partitions if len(each.replicas) == 1]
    if single and len(brokers) > 1:
        text = f"{_named(single)} has one replica: the loss of its broker is the loss of its messages"
        yield _risk("one replica", SINGLE, text, "add replicas with kafka-reassign-partitions", single)
    tight = [each for each in led if least is not None and 1 < len(each.replicas) <= least]
    if tight:
        text = f"min.insync.replicas is {least}, the number of replicas: the restart of a broker refuses producers"
        yield _risk("no spare replica", TIGHT, text, "lower min.insync.replicas, or add replicas", tight)


def _risk(kind: str, severity: int, text: str, advice: str, of: Sequence[TopicPartition]) -> Risk:
    numbers = [each.partition for each in of]
    return Risk(kind=kind, severity=severity, text=text, advice=advice, partitions=numbers)


def _named(partitions: Sequence[TopicPartition]) -> str:
    numbers = [str(each.partition) for each in partitions[:NAMED_MAX]]
    rest = ", …" if len(partitions) > NAMED_MAX else ""
    return f"partition {', '.join(numbers)}{rest}"
