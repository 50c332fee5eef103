"""Looks up the topics that an app reads, writes and declares, before it joins its group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from awoke.admin import Admin, TopicInfo
from awoke.declare.patterns import Pattern
from awoke.declare.routing import Route
from awoke.errors import AuthorizationFailed, ConfigError, KafkaError, OperationTimeout, UnknownTopic
from awoke.observe.events import TopicDiffers, TopicUnchecked
from awoke.payloads.declared_topics.differences import DifferenceRow, TopicDifference, numbers_that_differ
from awoke.payloads.declared_topics.plan import Unread, compared_settings
from awoke.payloads.topics import Topic
from awoke.rpc import topics as rpc_topics
from awoke.rpc.protocol import ServiceTopics
from awoke.runtime.process.context import RunnableApp
from awoke.settings import Settings, embedded
from awoke.state.table import Table
from awoke.waiting.time import monotonic_s

UNKNOWN_TOPIC = 3
KNOWN_WITHIN_S = 5.0
"""The time after which brokers that do not know a topic are believed: one that has just started may not know it yet."""

KEPT_BY = ("cleanup.policy", "retention.ms")
"""The settings of a changelog that decide which rows Kafka deletes."""

SHOWN_MAX = 5
"""The most differences that the error at start names."""


def check_topics(app: RunnableApp, settings: Settings) -> Mapping[str, int]:
    """Looks up the app's topics, and creates those of its methods. Blocks.

    Returns the number of partitions of each topic that it reads.

    Topics that the app declares are compared with the cluster's, as `topics_check` says. Brokers inside the
    process are not compared: a test declares replicas and settings of production, which it has no use for.

    Raises:
        UnknownTopic: its text names all that are missing, the commands that create them, and all patterns that match
        nothing; BrokerUnreachable.
        ConfigError: A topic is not as it is declared, and `topics_check` is `error`; a route names a partition that
        its topic does not have.
    """
    counts: dict[str, int] = {}
    if app.rpc.methods:
        partitions = app.rpc.settings.partitions
        topics = ServiceTopics.of(app.rpc.service)
        rpc_topics.ensure(settings, topics, partitions)
        counts[topics.calls] = partitions
    is_compared = settings.topics_check != "off" and settings.bootstrap_servers not in embedded
    compared: Mapping[str, Topic] = app.topics if is_compared else {}
    wanted = {*app.read_topics, *_written(app), *compared}
    with Admin(settings=settings) as admin:
        unmatched = _match(app, admin, settings) if app.patterns else []
        described, missing = _described(admin, sorted({*wanted, *app.read_topics}), settings)
        if texts := [*_missing(app, missing, settings), *unmatched]:
            raise UnknownTopic("; ".join(texts), UNKNOWN_TOPIC, "UNKNOWN_TOPIC_OR_PART")
        differences = list(_differences(app, admin, [described[topic] for topic in sorted(compared)]))
    _report(app, settings, [row for each in differences for row in each.rows()])
    counts |= {topic: len(described[topic].partitions) for topic in app.read_topics}
    changelogs: dict[str, tuple[Table[Any, Any], int]] = {}
    for route in app.all_routes:
        _check_partitions(route, counts)
        for table in route.tables:
            name = str(table.changelog)
            if isinstance(table, Table):
                changelogs[name] = (table, counts[route.topic])
            elif len(described[name].partitions) != counts[route.topic]:
                found, own = len(described[name].partitions), counts[route.topic]
                text = f"topic {name!r} of a reference has {found} partitions, and {route.topic!r} has {own}"
                raise ConfigError(f"{text}: rows would not be found under their keys", "tables")
    if changelogs:
        _ensure_changelogs(settings, changelogs)
    return counts


def _ensure_changelogs(settings: Settings, changelogs: Mapping[str, tuple[Table[Any, Any], int]]) -> None:
    """Makes the changelogs that do not exist, each with the number of partitions beside its table. Blocks.

    Raises:
        UnknownTopic: One does not exist and can't be made. ConfigError: One has another number of partitions, or Kafka
            would delete rows from it.
    """
    kafka = {**settings.kafka, "allow.auto.create.topics": "false"}
    with Admin(settings=msgspec.structs.replace(settings, kafka=kafka)) as admin:
        for topic, (table, wanted) in changelogs.items():
            try:
                found = len(admin.describe_topic(topic, settings.startup_timeout_s).partitions)
            except UnknownTopic:
                found = _made(admin, topic, wanted, table.topic_config, settings.startup_timeout_s)
            if found != wanted:
                text = f"changelog {topic!r} has {found} partitions, and the topic of its route has {wanted}"
                raise ConfigError(f"{text}: rows would not be found under their keys", "tables")
            if settings.bootstrap_servers not in embedded:
                _check_kept(admin, topic, table)


def _check_kept(admin: Admin, topic: str, table: Table[Any, Any]) -> None:
    """Refuses a changelog from which Kafka deletes rows that the table still has. Blocks."""
    try:
        found = {name: each.value for name, each in admin.describe_configs(topic).items()}
    except (KafkaError, OperationTimeout):
        return  # It may describe topics, and not their settings.
    policy, kept_ms = found.get("cleanup.policy") or "compact", int(found.get("retention.ms") or -1)
    is_short = table.ttl_s is None or 0 <= kept_ms < table.ttl_s * 1_000
    if "compact" not in policy or ("delete" in policy and is_short):
        kept = f"cleanup.policy={policy}" + (f", retention.ms={kept_ms}" if table.ttl_s is not None else "")
        wanted = ", ".join(f"{name}={table.topic_config[name]}" for name in KEPT_BY if name in table.topic_config)
        text = f"changelog {topic!r} has {kept}, so that Kafka deletes rows that are in use; it needs {wanted}"
        raise ConfigError(text, "tables")


def _made(admin: Admin, topic: str, partitions: int, config: Mapping[str, str], timeout_s: float) -> int:
    """Makes a changelog, unless another process has just done so. Returns how many partitions it has. Blocks."""
    try:
        admin.create_topic(topic, partitions=partitions, config=config, timeout_s=timeout_s)
    except KafkaError as error:
        if error.code_name != "TOPIC_ALREADY_EXISTS":
            text = f"changelog {topic!r} does not exist and can't be created ({error})"
            raise UnknownTopic(text, error.code, error.code_name) from None
        admin.wait_for_topic(topic, timeout_s)
        return len(admin.describe_topic(topic, timeout_s).partitions)
    return partitions


def _written(app: RunnableApp) -> Iterator[str]:
    """Yields the topics that routes write to, and those of references; those of a pattern's routes when it has found
    topics."""
    for group in app.groups.values():
        for route in group.routes.values():
            yield from route.topics_out
            yield from (str(table.changelog) for table in route.tables if not isinstance(table, Table))


def named_topics(app: RunnableApp) -> set[str]:
    """Returns the topics that routes read and write, also those that nothing declares: all must exist at the start.

    What a pattern matches is among them when it has found topics.
    """
    written = {topic for route in app.all_routes for topic in route.topics_out}
    return {*app.read_topics, *written, *_written(app)}


def _check_partitions(route: Route, counts: Mapping[str, int]) -> None:
    if route.partitions and max(route.partitions) >= counts[route.topic]:
        count, owner = counts[route.topic], f"route {route.topic!r}: partitions={list(route.partitions)}"
        raise ConfigError(f"{owner}: the topic has {count} partitions, 0 to {count - 1}", "partitions")


def _match(app: RunnableApp, admin: Admin, settings: Settings) -> list[str]:
    """Makes the routes of patterns; returns the error texts of those that match no topic, although they must."""

    def missing() -> list[Pattern]:
        return [pattern for pattern in app.unmatched() if not pattern.may_match_nothing]

    def are_enough(topics: Sequence[TopicInfo]) -> bool:
        _, refused = app.match([each.name for each in topics])
        if refused:
            raise refused[0]
        return not missing()

    admin.find_topics(are_enough, settings.startup_timeout_s, _known_within_s(settings))
    text = f"matches no topic of {settings.bootstrap_servers}; create one, or pass may_match_nothing=True"
    return [f"{pattern!r} {text}" for pattern in missing()]


def _known_within_s(settings: Settings) -> float:
    """Returns the time after which brokers are believed. Those inside the process know each topic at once."""
    return 0.0 if settings.bootstrap_servers in embedded else KNOWN_WITHIN_S


def _described(
    admin: Admin, topics: Sequence[str], settings: Settings
) -> tuple[Mapping[str, TopicInfo], Sequence[str]]:
    """Describes topics, of which some may be new: the brokers are believed after a time for all of them.

    Returns the descriptions, and the topics that do not exist.
    """
    described, missing = dict[str, TopicInfo](), list[str]()
    believed_s = monotonic_s() + _known_within_s(settings)
    for topic in topics:
        try:
            known_within_s = max(0.0, believed_s - monotonic_s())
            described[topic] = admin.find_topic(topic, settings.startup_timeout_s, known_within_s)
        except UnknownTopic:
            missing.append(topic)
    return described, missing


def _missing(app: RunnableApp, topics: Sequence[str], settings: Settings) -> Iterator[str]:
    """Yields the error text for topics that do not exist, if there are any."""
    if not topics:
        return
    names = ", ".join(map(repr, topics))
    said, them = (f"topic {names} does", "it") if len(topics) == 1 else (f"topics {names} do", "them")
    plain = " ".join(topic for topic in topics if topic not in app.topics)
    commands = [f"awoke topics create {plain}"] if plain else []
    if any(topic in app.topics for topic in topics):
        commands.append("awoke topics apply MODULE:APP")
    yield f"{said} not exist on {settings.bootstrap_servers}; create {them}: {', '.join(commands)}"


def _differences(app: RunnableApp, admin: Admin, topics: Sequence[TopicInfo]) -> Iterator[TopicDifference]:
    """Yields the differences of topics, and tells of settings that can't be compared.

    Brokers that do not answer the first request for settings are not asked again: the start would wait for each.
    """
    is_answered = True
    for topic in topics:
        declaration = app.topics[topic.name].declaration
        assert declaration is not None
        yield from numbers_that_differ(topic.name, declaration, topic)
        settings = compared_settings(admin, topic.name, declaration.config if is_answered else {})
        if isinstance(settings, Unread):
            app.events.emit(TopicUnchecked(topic=settings.topic, error=settings.error))
            is_answered = isinstance(settings.error, AuthorizationFailed)
        else:
            yield from settings


def _report(app: RunnableApp, settings: Settings, rows: Sequence[DifferenceRow]) -> None:
    if rows and settings.topics_check == "error":
        said = [
            f"topic {row.topic!r}: {row.option} is {row.found}, and {row.declared} is declared"
            for row in rows[:SHOWN_MAX]
        ]
        said += [f"{len(rows) - SHOWN_MAX} more differences"] if len(rows) > SHOWN_MAX else []
        advice = "awoke topics plan MODULE:APP shows all, awoke topics apply MODULE:APP ends those that it can"
        raise ConfigError(f"{'; '.join(said)}; {advice}", "topics_check")
    for row in rows:
        app.events.emit(TopicDiffers(topic=row.topic, option=row.option, found=row.found, declared=row.declared))
