"""Routes of all topics whose names match a pattern, on brokers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import awoke
from awoke.testing import Runs, running
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]


def test_a_route_reads_all_topics_that_match_also_those_that_come_later(cluster: Cluster) -> None:
    prefix, app, seen = unique("orders"), new_app(cluster), Collected[tuple[str, bytes]]()
    app.use(kafka={"topic.metadata.refresh.interval.ms": 200})
    for name in ("eu", "us", "dead", "other-"):
        cluster.create_topic(f"{prefix}.{name}" if name != "other-" else f"other-{prefix}.eu")

    @app.on(awoke.pattern(rf"{re.escape(prefix)}\..*"), dead_letter=f"{prefix}.dead")
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add((message.topic, message.value))

    matched = Collected[awoke.Event]()
    app.events.subscribe("topic.matched", matched.add)
    for name in (f"{prefix}.eu", f"{prefix}.us", f"{prefix}.dead", f"other-{prefix}.eu"):
        send(cluster, name, [b"1"])
    with running(app):
        assert sorted(seen.wait_for(2)) == [(f"{prefix}.eu", b"1"), (f"{prefix}.us", b"1")]
        cluster.create_topic(f"{prefix}.asia")
        send(cluster, f"{prefix}.asia", [b"2"])
        assert seen.wait_for(3)[-1] == (f"{prefix}.asia", b"2")
        send(cluster, f"{prefix}.eu", [b"3"])
        assert seen.wait_for(4)[-1] == (f"{prefix}.eu", b"3")
    assert [each.fields["topic"] for each in matched.items] == [f"{prefix}.asia"]
    assert_committed(cluster, app, {(f"{prefix}.eu", 0): 2, (f"{prefix}.us", 0): 1, (f"{prefix}.asia", 0): 1})


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_a_pattern_may_match_its_first_topic_while_the_app_runs(cluster: Cluster, *, is_async: bool) -> None:
    prefix, app, seen = unique("late"), new_app(cluster), Collected[bytes]()
    app.use(kafka={"topic.metadata.refresh.interval.ms": 200})
    pattern = awoke.pattern(rf"{prefix}-.*", may_match_nothing=True)

    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    async def handle_async(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    app.on(pattern)(handle_async if is_async else handle)
    with running(app):
        cluster.create_topic(f"{prefix}-1")
        send(cluster, f"{prefix}-1", [b"1", b"2"])
        assert seen.wait_for(2) == [b"1", b"2"]


def test_a_consumer_class_and_a_router_take_patterns_too(cluster: Cluster, awoke_run: Runs) -> None:
    prefix, app, router, seen = f"{unique('eu')}.", new_app(cluster), awoke.Router(), Collected[str]()

    @router.consumer(awoke.pattern(r"orders-\d"))
    class Orders(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for _ in batch:
                seen.add(self.topic)

    app.include(router, prefix=prefix)
    for name in ("orders-1", "orders-2", "orders-x"):
        cluster.create_topic(prefix + name)
        send(cluster, prefix + name, [b"1"])
    awoke_run(app).idle()
    assert sorted(seen.items) == [f"{prefix}orders-1", f"{prefix}orders-2"]


def test_a_pattern_that_matches_nothing_ends_the_start(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.on(awoke.pattern("no-such-topic-.*"))
    def handle(message: awoke.Message[bytes]) -> None:
        raise AssertionError

    with pytest.raises(awoke.UnknownTopic, match=r"pattern\('no-such-topic-\.\*'\) matches no topic"), running(app):
        pass


def test_a_topic_that_two_routes_match_ends_the_start(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic("a")
    both: list[list[awoke.Pattern | str]] = [
        [awoke.pattern(rf"{name}.*"), awoke.pattern(rf".*{name}")],
        [awoke.pattern(name), name],
    ]
    for others in both:
        app = new_app(cluster)

        @app.on(others)
        def handle(message: awoke.Message[bytes]) -> None:
            raise AssertionError

        with pytest.raises(awoke.ConfigError, match=rf"topic '{name}' has two routes"), running(app):
            pass


def test_a_new_topic_that_two_patterns_match_is_told_and_the_others_go_on(cluster: Cluster) -> None:
    prefix, app, seen = unique("two"), new_app(cluster), Collected[bytes]()
    app.use(kafka={"topic.metadata.refresh.interval.ms": 200})
    cluster.create_topic(f"{prefix}-a")
    cluster.create_topic(f"b-{prefix}")

    @app.on([awoke.pattern(rf"{prefix}-.*"), awoke.pattern(rf".*-{prefix}")])
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    refused = Collected[awoke.Event]()
    app.events.subscribe("topic.refused", refused.add)
    with running(app):
        cluster.create_topic(f"{prefix}-{prefix}")
        (event,) = refused.wait_for(1)
        assert "has two routes" in str(event.fields["error"])
        cluster.create_topic(f"{prefix}-z")
        send(cluster, f"{prefix}-z", [b"0"])
        assert seen.wait_for(1) == [b"0"]
        send(cluster, f"{prefix}-a", [b"1"])
        assert seen.wait_for(2) == [b"0", b"1"]


def test_a_topic_that_this_process_creates_is_read_at_once(cluster: Cluster) -> None:
    prefix, app, seen = unique("mine"), new_app(cluster), Collected[bytes]()

    @app.on(awoke.pattern(rf"{prefix}-.*", may_match_nothing=True))
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    app.use(kafka={"topic.metadata.refresh.interval.ms": 3_600_000})
    with running(app), awoke.Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(f"{prefix}-1", partitions=1)
        send(cluster, f"{prefix}-1", [b"1"])
        assert seen.wait_for(1) == [b"1"]
