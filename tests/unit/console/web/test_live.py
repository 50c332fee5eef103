"""The state follows the topics and asks the brokers; without either it says why."""

from __future__ import annotations

import threading

import msgspec

import awoke
from awoke.console.topics import ConsoleTopics
from awoke.console.web.live import Live
from awoke.embedded import EmbeddedCluster
from awoke.settings import Settings, load
from tests.unit.console.web.fakes import report


def settings_of(cluster: EmbeddedCluster) -> Settings:
    return load({"bootstrap_servers": cluster.bootstrap_servers}).values


def test_an_app_that_has_never_reported_is_a_problem_with_advice() -> None:
    with EmbeddedCluster() as cluster:
        live = Live("shop", settings_of(cluster))
        try:
            assert "console=True" in (live.snapshot().problem or "")
        finally:
            live.close()
        assert live.is_closed


def test_a_new_report_is_told_and_shown() -> None:
    topics = ConsoleTopics.of("shop")
    with EmbeddedCluster() as cluster, awoke.Producer(cluster.bootstrap_servers) as producer:
        for topic in topics:
            cluster.create_topic(topic)
        producer.produce(topics.reports, msgspec.json.encode(report("a")), key="a").wait(60)
        live, told = Live("shop", settings_of(cluster)), threading.Event()
        try:
            assert list(live.snapshot().reports) == ["a"]
            unsubscribe = live.subscribe(lambda: told.set() if "b" in live._state._nodes else None)
            producer.produce(topics.reports, msgspec.json.encode(report("b")), key="b").wait(60)
            assert told.wait(60)
            unsubscribe()
            assert sorted(live.snapshot().reports) == ["a", "b"]
        finally:
            live.close()
