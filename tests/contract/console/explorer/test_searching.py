"""Searches of a topic: hits as they are found, the end, and a search that is cancelled."""

from __future__ import annotations

import threading

import awoke
from awoke.console.access import Brokers
from awoke.console.explorer.parts import DecodedParts
from awoke.console.explorer.searching import Search
from awoke.console.explorer.views import SearchQuery, SearchStep
from awoke.settings import load
from awoke.testing import EmbeddedCluster
from tests.support.clusters import Cluster, unique

MESSAGES = 600


def filled(cluster: Cluster) -> tuple[Brokers, str]:
    topic = unique("topic")
    cluster.create_topic(topic, 2)
    brokers = Brokers(load({"bootstrap_servers": cluster.bootstrap_servers}).values)
    with brokers.producer() as producer:
        awoke.wait_all([producer.produce(topic, f"value {each}", partition=each % 2) for each in range(MESSAGES)], 60)
    return brokers, topic


def search(brokers: Brokers, topic: str, text: str, **bounds: int) -> list[SearchStep]:
    query = SearchQuery(topic=topic, text=text, **bounds)  # type: ignore[arg-type]
    with DecodedParts(brokers.settings, reveals=True) as parts, Search(brokers, query, parts) as running:
        return list(running.steps())


def test_hits_come_one_by_one_and_the_last_step_says_why_it_is_the_last(mock_cluster: Cluster) -> None:
    brokers, topic = filled(mock_cluster)
    steps = search(brokers, topic, "value 59")
    hits = [each.value.text for step in steps for each in step.hits]
    assert sorted(hits, key=str) == ["value 59", *(f"value {each}" for each in range(590, 600))]
    assert (steps[-1].over_because, steps[-1].scanned, steps[-1].total) == ("end", MESSAGES, MESSAGES)
    assert all(len(step.hits) <= 1 for step in steps)
    assert search(brokers, topic, "value", hits_max=2)[-1].over_because == "hits"
    assert search(brokers, topic, "nothing", scanned_max=10)[-1].scanned == 10
    assert [each.total for each in search(brokers, topic, "value", since_ms=1 << 42)] == [0]


def test_a_search_that_is_cancelled_ends_with_its_next_step(mock_cluster: Cluster) -> None:
    brokers, topic = filled(mock_cluster)
    with DecodedParts(brokers.settings, reveals=True) as parts:
        running = Search(brokers, SearchQuery(topic=topic, text="value"), parts)
        first = running.next()
        assert first is not None
        assert len(first.hits) == 1
        running.cancel()
        last = running.next()
        assert last is not None
        assert last.over_because == "cancelled"
        assert running.next() is None


def test_a_search_that_waits_for_brokers_is_cancelled_by_another_thread() -> None:
    steps = list[SearchStep | None]()
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        brokers = Brokers(load({"bootstrap_servers": cluster.bootstrap_servers}).values)
        with brokers.producer() as producer:
            awoke.wait_all([producer.produce("orders", b"value")], 30)
        parts = DecodedParts(brokers.settings, reveals=True)
        running = Search(brokers, SearchQuery(topic="orders", text="value"), parts)
        assert running.next() is not None
    while running._reader._native.next(0.5) is not None:
        pass  # The end of the partition may have come before the brokers went.
    running._messages = running._reader.read_until_end(600)  # The brokers have gone: no end comes any more.
    running._reader._at_end.clear()
    thread = threading.Thread(target=lambda: steps.append(running.next()))
    thread.start()
    running.cancel()
    thread.join(60)
    parts.close()
    assert [step and step.over_because for step in steps] == ["cancelled"]
