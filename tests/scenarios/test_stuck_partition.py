"""A partition that cannot be read makes the app unhealthy, with a reason; `resume` or a new topic ends that."""

from __future__ import annotations

from collections.abc import Sequence

import confluent_kafka
from confluent_kafka.admin import AdminClient

import awoke
from awoke.runtime.process.runner import AppRunner
from awoke.testing import running
from tests.support import judge
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import Collected, wait_until

KAFKA: dict[str, str | int] = {"session.timeout.ms": 10_000, "topic.metadata.refresh.interval.ms": 500}
WITHIN_S = 45.0
OLD = [b"old-%d" % number for number in range(20)]
NEW = [b"new-%d" % number for number in range(20)]


class Watched:
    """An app with one route, what it handled, and its events `partition.stuck`."""

    def __init__(self, cluster: RealCluster, **kafka: str) -> None:
        self.servers, self.topic, self.group = cluster.bootstrap_servers, unique("stuck"), unique("group")
        cluster.create_topic(self.topic)
        self.handled: Collected[bytes] = Collected()
        self.stuck: Collected[awoke.Event] = Collected()
        self.app = awoke.App(
            self.group, bootstrap_servers=self.servers, kafka={**KAFKA, **kafka}, shutdown_timeout_s=10.0
        )
        self.app.on(self.topic)(self._handle)
        self.app.events.subscribe("partition.stuck", self.stuck.add)

    def _handle(self, message: awoke.Message[bytes]) -> None:
        self.handled.add(message.value)

    def check_stuck(self, server: AppRunner, place: str, partition: int, code_names: Sequence[str]) -> None:
        """Health and an event name the partition (-1: the topic as a whole) and the reason."""
        wait_until(lambda: not server.health().is_healthy, "the app is unhealthy", WITHIN_S)
        reasons = server.health().reasons
        assert any(place in reason for reason in reasons), reasons
        fields = self.stuck.wait_for(1)[0].fields
        assert (fields["topic"], fields["partition"]) == (self.topic, partition)
        assert fields["code_name"] in code_names
        assert fields["text"]
        assert any(fields["text"] in reason or fields["code_name"] in reason for reason in reasons), reasons

    def check_goes_on(self, server: AppRunner, values: Sequence[bytes]) -> None:
        """These are handled and committed, and all is well."""
        self.handled.wait_until(lambda items: set(values) <= set(items), WITHIN_S)
        assert judge.comes_to_end(self.servers, self.group, self.topic, WITHIN_S)
        wait_until(lambda: server.health().is_healthy, f"all is well: {server.health().reasons}", WITHIN_S)


def commit(servers: str, group: str, topic: str, offset: int) -> None:
    """Commit an offset of a group without members."""
    with judge.consumer(servers, group) as client:
        client.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, offset)], asynchronous=False)


def test_no_offset_and_no_reset(real_cluster: RealCluster) -> None:
    watched = Watched(real_cluster, **{"auto.offset.reset": "error"})
    judge.feed(watched.servers, watched.topic, OLD)
    with running(watched.app) as server:
        watched.check_stuck(server, f"{watched.topic}[0]", 0, ["_NO_OFFSET", "_AUTO_OFFSET_RESET"])
        assert f"awoke resume MODULE:APP {watched.topic} 0" in server.health().reasons[0]
        assert watched.handled.items == []
        assert watched.app.resume(watched.topic, 0)
        watched.check_goes_on(server, OLD)


def test_an_offset_out_of_range_and_no_reset(real_cluster: RealCluster) -> None:
    watched = Watched(real_cluster, **{"auto.offset.reset": "error"})
    judge.feed(watched.servers, watched.topic, OLD)
    commit(watched.servers, watched.group, watched.topic, 1_000)
    with running(watched.app) as server:
        watched.check_stuck(server, f"{watched.topic}[0]", 0, ["OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET"])
        assert watched.handled.items == []
        assert watched.app.resume(watched.topic, 0)
        watched.check_goes_on(server, OLD)


def test_a_topic_that_is_deleted_and_made_again(real_cluster: RealCluster) -> None:
    watched = Watched(real_cluster)
    judge.feed(watched.servers, watched.topic, OLD)
    with running(watched.app) as server:
        watched.check_goes_on(server, OLD)
        admin = AdminClient({"bootstrap.servers": watched.servers, "log_level": 0})
        admin.delete_topics([watched.topic], operation_timeout=30)[watched.topic].result(30)
        watched.check_stuck(server, f"topic {watched.topic}", -1, ["UNKNOWN_TOPIC_OR_PART"])
        real_cluster.create_topic(watched.topic)
        judge.feed(watched.servers, watched.topic, NEW)
        watched.check_goes_on(server, NEW)
