"""Messages that were done while an earlier one was not are not done again by the next process."""

from __future__ import annotations

import threading

import awoke
from awoke.testing import running
from tests.contract.test_consume import assert_committed, new_app
from tests.contract.test_lanes import numbered, send_keyed
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import WITHIN_S, Collected, wait_until


def test_what_is_done_beyond_the_offset_is_not_done_again_after_a_restart(real_cluster: RealCluster) -> None:
    cluster, name, first, second = real_cluster, unique("restarted"), Collected[int](), Collected[int]()
    cluster.create_topic(name)
    release = threading.Event()
    app = new_app(cluster, shutdown_timeout_s=0.5, revoke_timeout_s=0.5)

    @app.on(name, concurrency=awoke.by_key(4))
    def handle(message: awoke.Message[bytes]) -> None:
        if message.offset == 5:
            release.wait(WITHIN_S)
        first.add(message.offset)

    send_keyed(cluster, name, numbered(100, 100))
    with running(app) as server:
        first.wait_for(99)

        def gaps() -> list[tuple[int, int]]:
            found = [each.commit_gap for each in server.partitions()]
            return [(each.oldest_offset, each.done) for each in found if each is not None]

        # A handler that has returned is noted when its job ends, or when the lanes behind a slow one are taken away.
        wait_until(lambda: gaps() == [(5, 94)], "all but one are noted", WITHIN_S, every_s=0.01)
        assert server.own.member is not None
        server.own.member.commit().wait(30)
        # The job at offset 5 outlives the shutdown's deadline.
    release.set()
    assert_committed(cluster, app, {(name, 0): 5})

    again = new_app(cluster, group=app.settings.group or app.name)

    @again.on(name, concurrency=awoke.by_key(4))
    def handle_again(message: awoke.Message[bytes]) -> None:
        second.add(message.offset)

    send_keyed(cluster, name, [(b"end", b"end")])
    with running(again):
        second.wait_for(2)
    assert sorted(second.items) == [5, 100]
    assert_committed(cluster, app, {(name, 0): 101})
