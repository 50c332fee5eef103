"""A handler that runs longer than `max.poll.interval.ms` loses neither its partition nor its place."""

from __future__ import annotations

import awoke
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import Collected, elapse, work_for

POLL_INTERVAL_S = 6.0


def test_a_handler_may_run_longer_than_the_poll_interval(real_cluster: RealCluster) -> None:
    topic = unique("long")
    real_cluster.create_topic(topic, partitions=2)
    app = awoke.App(
        unique("app"),
        bootstrap_servers=real_cluster.bootstrap_servers,
        kafka={"max.poll.interval.ms": int(POLL_INTERVAL_S * 1_000), "session.timeout.ms": 6_000},
    )
    seen: Collected[bytes] = Collected()
    changes: Collected[awoke.Event] = Collected()
    for name in ("partitions.assigned", "partitions.revoked", "partitions.lost"):
        app.events.subscribe(name, changes.add)

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"long":
            work_for(2 * POLL_INTERVAL_S)
        seen.add(message.value)

    with awoke.Producer(real_cluster.bootstrap_servers) as producer, running(app):
        producer.produce(topic, b"long", partition=0).wait(30)
        for _ in range(4):  # The other partition is pulled from meanwhile, which restarts librdkafka's poll clock.
            producer.produce(topic, b"beside", partition=1).wait(30)
            elapse(2.0, "a part of the poll interval passes")
        seen.wait_until(lambda values: b"long" in values, 60)
        assert [event.name for event in changes.items] == ["partitions.assigned"]
    with awoke.Admin(real_cluster.bootstrap_servers) as admin:
        assert admin.group_offsets(app.name) == {(topic, 0): 1, (topic, 1): 4}
