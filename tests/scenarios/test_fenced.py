"""A member whose place another one took (same `group.instance.id`) can't go on: its app stops and says why."""

from __future__ import annotations

import awoke
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import Collected


def member(cluster: RealCluster, topic: str, group: str) -> tuple[awoke.App, Collected[bytes]]:
    """An app with a static place in its group."""
    app = awoke.App(
        unique("member"),
        group=group,
        bootstrap_servers=cluster.bootstrap_servers,
        kafka={"group.instance.id": "one-place", "session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
    )
    seen: Collected[bytes] = Collected()

    @app.on(topic)
    def see(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    return app, seen


def test_a_fenced_member_stops(real_cluster: RealCluster) -> None:
    topic, group = unique("fenced"), unique("group")
    real_cluster.create_topic(topic)
    (first, seen_by_first), (second, seen_by_second) = (member(real_cluster, topic, group) for _ in range(2))
    errors: Collected[awoke.Event] = Collected()
    first.events.subscribe("client.error", errors.add)
    with awoke.Producer(real_cluster.bootstrap_servers) as producer, running(first) as server:
        producer.produce(topic, b"1").wait(30)
        seen_by_first.wait_for(1)
        with running(second):
            errors.wait_until(lambda events: any(event.fields["is_fatal"] for event in events))
            producer.produce(topic, b"2").wait(30)
            seen_by_second.wait_until(lambda values: b"2" in values)
    assert isinstance(server.fatal_error, awoke.KafkaError)
    assert "can't go on" in str(server.fatal_error)
