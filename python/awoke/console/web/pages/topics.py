"""The topics of the cluster: listed, shown with their risks, created and changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from awoke.console.clusters import topics as found
from awoke.console.clusters.views import BrokerView, ConfigView, NewTopic, Risk, TopicPartition, TopicRow
from awoke.console.web.grants import Role
from awoke.console.web.page import Asked, Done, NoSuchPage, Page, PageAction, Rows, Wrong
from awoke.console.web.recorded import recorded, text_of
from awoke.console.web.rendering import segment
from awoke.errors import ConfigError, UnknownTopic

ALL = 1_000_000
ALL_OFFSETS_MAX = 500
"""Of a topic with more partitions, the offsets of those that are shown are asked, and not added."""


class TopicsPage(msgspec.Struct, kw_only=True):
    """The brokers and the topics."""

    brokers: list[BrokerView]
    topics: Rows[TopicRow]
    at_risk: int
    """The topics with a risk."""


class TopicPage(msgspec.Struct, kw_only=True):
    """One topic."""

    name: str
    offsets: int | None
    risks: list[Risk]
    notes: list[str]
    partitions: Rows[TopicPartition]
    configs: list[ConfigView]


def topics(asked: Asked) -> TopicsPage:
    """Returns the topics."""
    view = asked.ask("topics", lambda admin: found.list_topics(admin, limit=ALL))
    columns = {
        "topic": lambda each: (each.is_internal, each.name),
        "partitions": lambda each: each.partitions,
        "replicas": lambda each: each.replicas,
        "risk": lambda each: -max((risk.severity for risk in each.risks), default=0),
    }
    rows = asked.rows(view.topics, "topic", columns, text=lambda each: each.name)
    return TopicsPage(brokers=view.brokers, topics=rows, at_risk=sum(bool(each.risks) for each in view.topics))


def topic(asked: Asked) -> TopicPage:
    """Returns one topic."""
    name = asked.path["topic"]
    # The offsets of all partitions of a large topic take long: they are asked where the table is sorted by them.
    most = ALL if asked.query.get("sort") == "offsets" else ALL_OFFSETS_MAX
    try:
        view = asked.ask(("topic", name, most), lambda admin: found.show_topic(admin, name, most))
    except UnknownTopic as error:
        raise NoSuchPage(str(error)) from None
    columns: dict[str, Callable[[TopicPartition], Any]] = {
        "partition": lambda each: each.partition,
        "offsets": lambda each: each.offsets,
    }
    table = asked.rows(view.partitions, "partition", columns)
    if table.total > most:
        numbers = tuple(each.partition for each in table.rows)
        rows = table.rows
        table.rows = asked.ask(("offsets", name, numbers), lambda admin: found.offsets_of(admin, name, rows))
    return TopicPage(
        name=view.name,
        offsets=view.offsets,
        risks=view.risks,
        notes=view.notes,
        partitions=table,
        configs=view.configs,
    )


def create(asked: Asked) -> Done:
    """Creates a topic."""
    name = text_of(asked, "name") or ""
    new = NewTopic(name=name, partitions=_number(asked, "partitions"), replicas=_number(asked, "replicas"))
    try:
        found.check_new(new)
    except ConfigError as error:
        raise Wrong(str(error)) from None

    def act() -> str:
        with asked.brokers.admin() as admin:
            found.create_topic(admin, new)
        return f"topic {name} was created"

    arguments = {"topic": name, "partitions": new.partitions, "replicas": new.replicas}
    return recorded(asked, "create_topic", arguments, act, f"/topics/{segment(name)}")


def add_partitions(asked: Asked) -> Done:
    """Adds partitions to a topic."""
    name, total = asked.path["topic"], asked.integer("total", 0)

    def act() -> str:
        with asked.brokers.admin() as admin:
            added = found.add_partitions(admin, name, total)
        return f"topic {name} has {total} partitions now, {added} of them new; its keys go to others from now on"

    return recorded(asked, "add_partitions", {"topic": name, "total": total}, act, f"/topics/{segment(name)}")


def configure(asked: Asked) -> Done:
    """Changes one setting of a topic; an empty value takes it back to its default."""
    name, setting, value = asked.path["topic"], text_of(asked, "setting"), text_of(asked, "value")
    if setting is None:
        raise Wrong("name a setting")

    def act() -> str:
        with asked.brokers.admin() as admin:
            made = found.change_configs(admin, name, {setting: value})
        said = ", ".join(f"{each.name} from {each.before} to {each.after or 'the default'}" for each in made)
        return f"topic {name}: {said or 'nothing has changed'}"

    arguments = {"topic": name, "setting": setting, "value": value}
    return recorded(asked, "configure", arguments, act, f"/topics/{segment(name)}")


def _number(asked: Asked, name: str) -> int | None:
    return None if text_of(asked, name) is None else asked.integer(name, 0)


PAGES = [
    Page("/topics", "Topics", topics, "topics.html", section="Kafka"),
    Page("/topics/{topic}", "Topic", topic, "topic.html"),
]
ACTIONS = [
    PageAction("/topics", "Create a topic", create, verb="create_topic", role=Role.ADMIN),
    PageAction("/topics/{topic}/partitions", "Add partitions", add_partitions, verb="add_partitions", role=Role.ADMIN),
    PageAction("/topics/{topic}/config", "Change a setting", configure, verb="configure", role=Role.ADMIN),
]
