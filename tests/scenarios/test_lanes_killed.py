"""A process with many lanes is killed in the middle: nothing is lost, keys keep their order, little is done again."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import RealCluster, unique
from tests.support.lanes import Killed, fill

MESSAGES = 40_000


def test_a_kill_loses_nothing_and_repeats_only_what_was_not_committed_as_done(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    topic = unique("killed-lanes")
    real_cluster.create_topic(topic)
    fill(real_cluster.bootstrap_servers, topic, MESSAGES, keys=2_000)
    killed = Killed(real_cluster.bootstrap_servers, topic, MESSAGES, tmp_path)
    killed.run(kill_at=MESSAGES // 2, within_s=100)
    first, second = killed.done
    assert killed.lost == 0
    assert (first.out_of_order(), second.out_of_order()) == (0, 0)
    assert len(set(first.offsets)) == len(first.offsets)
    # The oldest takes a second, so that much is done beyond the committed offset; and a commit tells of it.
    assert killed.done_beyond > 0
    assert killed.repeated < killed.done_beyond
