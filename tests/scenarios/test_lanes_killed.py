"""A process with many lanes is killed in the middle: nothing is lost, keys keep their order, little is done again."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import RealCluster, unique
from tests.support.lanes import Killed, fill

MESSAGES = 20_000
HANGS_AT = 2_000


def test_a_kill_loses_nothing_and_repeats_only_what_was_not_committed_as_done(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    topic = unique("killed-lanes")
    real_cluster.create_topic(topic)
    fill(real_cluster.bootstrap_servers, topic, MESSAGES, keys=2_000)
    killed = Killed(real_cluster.bootstrap_servers, topic, MESSAGES, tmp_path, LANES_MEAN_MS="20")
    # What is done beyond the hanging message takes three commit intervals at least.
    killed.run(kill_at=HANGS_AT + 10_000, within_s=100, hangs_at=HANGS_AT)
    first, second = killed.done
    assert killed.lost == 0
    assert (first.out_of_order(), second.out_of_order()) == (0, 0)
    assert len(set(first.offsets)) == len(first.offsets)
    # All of it is done beyond the committed offset, and commits tell of most of it.
    assert killed.committed <= HANGS_AT
    assert killed.done_beyond >= 10_000
    assert killed.repeated < killed.done_beyond
