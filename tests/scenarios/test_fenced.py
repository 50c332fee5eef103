"""A member whose place another one took (same `group.instance.id`) can't go on: its app stops and says why."""

from __future__ import annotations

from pathlib import Path

import awoke
from awoke.testing import running
from awoke.text import exit_codes
from tests.support.clusters import RealCluster, unique
from tests.support.swarms import Swarm
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


def swarm_in(folder: Path, cluster: RealCluster, topic: str, **env: str) -> Swarm:
    """Starts a swarm of one node in a folder of its own, with the socket's name of every other swarm."""
    folder.mkdir()
    return Swarm(cluster.bootstrap_servers, topic, folder, nodes=1, env=env)


def test_two_swarms_with_one_instance_id_do_not_end_each_other_for_ever(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    topic = unique("twice")
    real_cluster.create_topic(topic, 2)
    with swarm_in(tmp_path / "a", real_cluster, topic, AWOKE_INSTANCE_ID="shop") as first:
        first.wait_up(1, 2)
        with swarm_in(tmp_path / "b", real_cluster, topic, AWOKE_INSTANCE_ID="shop") as second:
            assert first.process.wait(60) == exit_codes.EXIT_CONFIGURATION, first.process.output
            assert "the same instance_id, 'shop-1': give each process its own" in first.process.output
            second.wait_up(1, 2)
            assert second.stop() == exit_codes.EXIT_CLEAN


def test_two_swarms_on_hosts_of_one_name_share_the_work(real_cluster: RealCluster, tmp_path: Path) -> None:
    topic = unique("namesakes")
    real_cluster.create_topic(topic, 2)
    with swarm_in(tmp_path / "a", real_cluster, topic) as first:
        first.wait_up(1, 2)
        with swarm_in(tmp_path / "b", real_cluster, topic) as second:
            second.wait_up(1, 1)
            first.wait_until(lambda found: found["nodes"][0]["assigned"] == 1)
            assert (first.stop(), second.stop()) == (0, 0)
