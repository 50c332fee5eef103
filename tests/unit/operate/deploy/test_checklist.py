"""The checks before production: each is met, or says what to do."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.admin import ConfigEntry, PartitionInfo, TopicInfo
from awoke.declare.routing import Route
from awoke.operate.deploy import checklist
from awoke.settings import RunSettings, Settings

GOOD = Settings(
    bootstrap_servers="a:9092,b:9092", metrics_port=9404, kafka={"security.protocol": "SASL_SSL", "acks": "all"}
)
RUN = RunSettings(log_format="json")


def missing(checks: Any) -> list[str]:
    return [each.subject for each in checks if not each.is_met]


def test_settings_for_production_are_met() -> None:
    assert missing(checklist.of_settings(GOOD, RUN)) == []


@pytest.mark.parametrize(
    ("settings", "run", "subject"),
    [
        ({"bootstrap_servers": "a:9092"}, {}, "several brokers to begin with"),
        ({"bootstrap_servers": "127.0.0.1:9092,127.0.0.1:9093"}, {}, "several brokers to begin with"),
        ({"kafka": {}}, {}, "connections are encrypted"),
        ({"kafka": {"security.protocol": "ssl", "acks": "1"}}, {}, "acks=all"),
        ({"metrics_port": None, "metrics_otel": True}, {}, "health and readiness"),
        ({"registry_register": "always"}, {}, "schemas are registered by a release, and not by processes"),
        ({}, {"log_format": "console"}, "logs are JSON"),
        ({}, {"nodes": 2}, "nodes have a memory limit"),
    ],
)
def test_a_setting_that_is_not_for_production_is_missing(
    settings: dict[str, Any], run: dict[str, Any], subject: str
) -> None:
    names = [name for name in Settings.__struct_fields__ if getattr(GOOD, name) != getattr(Settings(), name)]
    given = {**{name: getattr(GOOD, name) for name in names}, **settings}
    assert missing(checklist.of_settings(Settings(**given), RunSettings(**{"log_format": "json", **run}))) == [subject]


def route(**options: Any) -> Route:
    app = awoke.App("shop")
    app.on("orders", **options)(lambda message: None)
    return app.all_routes[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dead_letter": "dead", "retry": awoke.Retry(attempts=3), "max_processing_s": 9.0}, []),
        ({"retry": awoke.Retry(on_exhausted="skip"), "max_processing_s": 9.0}, []),
        ({"max_processing_s": 9.0}, ["does not end the app"]),
        ({"dead_letter": "dead", "max_processing_s": 9.0}, ["reaches the dead letter topic"]),
        ({"dead_letter": "dead", "retry": awoke.Retry(attempts=3)}, ["that hangs is found"]),
    ],
)
def test_a_route_is_checked(options: dict[str, Any], words: list[str]) -> None:
    found = missing(checklist.of_routes([route(**options)]))
    assert len(found) == len(words)
    assert all(word in subject for word, subject in zip(words, found, strict=True))


class Cluster:
    """Has the topic `orders`."""

    def __init__(self, replicas: int, least: str | None) -> None:
        self._replicas, self._least = replicas, least

    def describe_topic(self, name: str) -> TopicInfo:
        if name != "orders":
            raise awoke.UnknownTopic(f"topic {name!r} does not exist", 3, "UNKNOWN_TOPIC_OR_PART")
        return TopicInfo(name, [PartitionInfo(0, 1, list(range(self._replicas)), [1])])

    def describe_configs(self, topic: str) -> dict[str, ConfigEntry]:
        entry = ConfigEntry("min.insync.replicas", self._least, "default", True, False, False)
        return {} if self._least is None else {entry.name: entry}


@pytest.mark.parametrize(
    ("cluster", "count"), [(Cluster(3, "2"), 0), (Cluster(2, "2"), 1), (Cluster(3, "1"), 1), (Cluster(1, None), 2)]
)
def test_a_topic_is_checked(cluster: Cluster, count: int) -> None:
    assert len(missing(checklist.of_topics(["orders"], cluster))) == count


def test_a_topic_that_does_not_exist_is_missing() -> None:
    names = checklist.topics_of([route(dead_letter="dead")])
    assert names == ["orders", "dead"]
    assert missing(checklist.of_topics(names, Cluster(3, "2"))) == ["topic dead exists"]
