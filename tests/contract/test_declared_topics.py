"""Declared topics on Kafka: created, increased, set, applied again, refused, and compared at start."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

import pytest

import awoke
from awoke.observe.events import TopicDiffers
from awoke.payloads.declared_topics.plan import TopicPlan, apply, plan_of
from awoke.testing import running
from tests.support.clusters import MockCluster, RealCluster, unique
from tests.support.waiting import wait_until


class Topics:
    """Topics of one test on a cluster, and the plan of an app that declares them."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.admin = cluster.admin

    def app(self, name: str, **declared: Any) -> awoke.App:
        """Returns an app that declares and reads a topic."""
        app = awoke.App(unique("app"), bootstrap_servers=self.cluster.bootstrap_servers)
        app.on(app.topic(name, **declared))(lambda message: None)
        return app

    def plan(self, app: awoke.App) -> TopicPlan:
        return plan_of(self.admin, app.topics)

    def rows(self, app: awoke.App) -> list[tuple[str, str, str, str]]:
        """Returns option, found, declared and change of each difference."""
        return [row[1:] for each in self.plan(app).differences for row in each.rows()]

    def apply(self, app: awoke.App) -> list[str]:
        return list(apply(self.plan(app), self.admin))

    def setting(self, topic: str, name: str) -> str | None:
        return self.admin.describe_configs(topic)[name].value

    def wait_for_rows(self, app: awoke.App, expected: list[tuple[str, str, str, str]]) -> None:
        """Waits until the plan has these rows: a broker may learn of a change after it was answered."""
        wait_until(lambda: self.rows(app) == expected, f"the plan has {expected}")


@pytest.fixture
def topics(real_cluster: RealCluster) -> Topics:
    return Topics(real_cluster)


def test_a_missing_topic_is_created_as_declared_and_a_second_run_changes_nothing(topics: Topics) -> None:
    name = unique("declared")
    config = {"cleanup.policy": "compact, delete", "retention.ms": 7 * 24 * 3.6e6, "min.cleanable.dirty.ratio": 0.25}
    app = topics.app(name, partitions=3, replication=1, config={**config, "preallocate": True})
    assert [row[:2] for row in topics.rows(app)] == [("topic", "missing")]
    assert len(topics.apply(app)) == 1
    assert len(topics.admin.describe_topic(name).partitions) == 3
    assert topics.setting(name, "cleanup.policy") == "compact,delete"
    assert topics.setting(name, "retention.ms") == "604800000"
    assert topics.setting(name, "min.cleanable.dirty.ratio") == "0.25"
    assert topics.setting(name, "preallocate") == "true"
    assert topics.plan(app) == TopicPlan(())
    assert topics.apply(app) == []


def test_a_topic_of_which_nothing_is_said_is_created_as_the_brokers_choose(topics: Topics) -> None:
    app = topics.app(unique("declared"), config={})
    assert len(topics.apply(app)) == 1
    assert topics.plan(app) == TopicPlan(())


def test_partitions_are_added(topics: Topics) -> None:
    name = unique("declared")
    topics.cluster.create_topic(name, 2)
    app = topics.app(name, partitions=5)
    assert topics.rows(app) == [("partitions", "2", "5", "add 3")]
    assert topics.apply(app) == [f"topic {name}: 5 partitions instead of 2"]
    topics.wait_for_rows(app, [])
    assert len(topics.admin.describe_topic(name).partitions) == 5


def test_partitions_are_never_removed_nor_replicas_changed(topics: Topics) -> None:
    name = unique("declared")
    topics.cluster.create_topic(name, 3)
    app = topics.app(name, partitions=2, replication=3)
    assert topics.rows(app) == [("partitions", "3", "2", "none"), ("replication", "1", "3", "none")]
    assert topics.apply(app) == []
    assert len(topics.admin.describe_topic(name).partitions) == 3


def test_settings_that_drifted_are_set_and_others_are_left_alone(topics: Topics) -> None:
    name = unique("declared")
    app = topics.app(name, config={"retention.ms": 1_000, "max.message.bytes": 2_000_000})
    topics.apply(app)
    topics.admin.alter_configs(name, {"retention.ms": "5000", "segment.ms": "60000"})
    topics.wait_for_rows(app, [("retention.ms", "5000", "1000", "set it")])
    assert topics.apply(app) == [f"topic {name}: set retention.ms=1000"]
    topics.wait_for_rows(app, [])
    assert topics.setting(name, "segment.ms") == "60000"
    assert topics.setting(name, "max.message.bytes") == "2000000"


@pytest.mark.parametrize(
    ("config", "text"),
    [({"retntion.ms": 5}, "retntion.ms"), ({"retention.ms": "soon"}, "soon"), ({"cleanup.policy": "keep"}, "keep")],
)
def test_a_wrong_setting_is_refused_by_the_brokers_and_changes_nothing(
    topics: Topics, config: dict[str, Any], text: str
) -> None:
    name = unique("declared")
    with pytest.raises(awoke.AwokeError, match=text) as refused:
        topics.apply(topics.app(name, partitions=2, config=config))
    assert "0 of 1 changes were made before" in str(refused.value)
    with pytest.raises(awoke.UnknownTopic):
        topics.admin.describe_topic(name)
    topics.cluster.create_topic(name)
    with pytest.raises(awoke.AwokeError, match=f"{text}.*1 of 2 changes were made before"):
        topics.apply(topics.app(name, partitions=2, config={**config, "segment.ms": 60_000}))
    assert len(topics.admin.describe_topic(name).partitions) == 2
    assert topics.setting(name, "segment.ms") == "604800000"


def test_what_was_refused_is_made_by_the_next_run(topics: Topics) -> None:
    app, first, second = awoke.App(unique("app")), unique("declared"), unique("declared")
    for name, replication in ((first, 1), (second, 1_000)):
        app.topic(name, replication=replication)
    with pytest.raises(awoke.AwokeError, match="1 of 2 changes were made before"):
        topics.apply(app)
    corrected = awoke.App(app.name)
    for name in (first, second):
        corrected.topic(name, replication=1)
    assert topics.apply(corrected) == [f"topic {second} created: 1 replica"]


@contextlib.contextmanager
def started(app: awoke.App, mode: Literal["off", "warn", "error"]) -> Iterator[list[TopicDiffers]]:
    """Runs an app while the block runs; gives the differences that it has told."""
    found: list[TopicDiffers] = []
    app.events.subscribe(TopicDiffers, found.append)
    app.use(topics_check=mode)
    with running(app):
        yield found


@pytest.mark.parametrize("mode", ["off", "warn", "error"])
def test_a_topic_as_declared_is_no_difference_at_start(topics: Topics, mode: Literal["off", "warn", "error"]) -> None:
    app = topics.app(unique("declared"), partitions=2, replication=1, config={"cleanup.policy": "compact"})
    topics.apply(app)
    with started(app, mode) as told:
        assert told == []


def test_at_start_differences_are_told_or_end_it_by_choice(topics: Topics) -> None:
    name = unique("declared")
    topics.cluster.create_topic(name, 2)
    app = topics.app(name, partitions=3, replication=2, config={"cleanup.policy": "compact", "segment.ms": 604_800_000})
    with started(app, "off") as told:
        assert told == []
    with started(app, "warn") as told:
        assert [(each.topic, each.option, each.found, each.declared) for each in told] == [
            (name, "partitions", "2", "3"),
            (name, "replication", "1", "2"),
            (name, "cleanup.policy", "delete", "compact"),
        ]
    text = r"partitions is 2, and 3 is declared.* awoke topics apply"
    with pytest.raises(awoke.ConfigError, match=text), started(app, "error"):
        pass


@pytest.mark.parametrize("mode", ["off", "warn", "error"])
def test_a_missing_topic_ends_the_start_with_the_command_that_creates_it(
    topics: Topics, mode: Literal["off", "warn", "error"]
) -> None:
    app = topics.app(unique("declared"), partitions=3)
    text = "create it: awoke topics apply MODULE:APP"
    with pytest.raises(awoke.UnknownTopic, match=text), started(app, mode):
        pass


def test_an_embedded_broker_has_the_declared_partitions_and_is_not_compared(mock_cluster: MockCluster) -> None:
    app = awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers)
    orders = app.topic(unique("declared"), partitions=3, replication=3, config={"cleanup.policy": "compact"})
    app.on(orders)(lambda message: None)
    mock_cluster.embedded.create_topic(orders)
    with started(app, "error") as told, awoke.Admin(mock_cluster.bootstrap_servers) as admin:
        assert len(admin.describe_topic(orders).partitions) == 3
    assert told == []
