"""A swarm whose app has two consumer groups: nodes are killed and replaced, and neither group loses a message."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.test_restart import committed
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.swarms import PARTITIONS, WITHIN_S, Flow, Swarm
from tests.support.waiting import wait_until

TARGET = "tests.scenarios.groups_app:app"


def done(file: Path) -> set[tuple[int, int]]:
    """Returns the partitions and offsets that a group has processed."""
    lines = (line.split(" ", 3) for line in whole_lines(file))
    return {(int(partition), int(offset)) for _, partition, offset, _ in lines}


def test_no_group_loses_a_message_when_nodes_are_killed_and_replaced(real_cluster: RealCluster, tmp_path: Path) -> None:
    topic = unique("groups")
    real_cluster.create_topic(topic, PARTITIONS)
    with (
        Flow(real_cluster.bootstrap_servers, topic) as flow,
        Swarm(real_cluster.bootstrap_servers, topic, tmp_path, target=TARGET) as swarm,
    ):
        files = [swarm.log, Path(f"{swarm.log}.audit")]
        swarm.wait_up(assigned=2 * PARTITIONS)
        killed = swarm.kill(1)
        swarm.wait_until(lambda found: all(each["state"] == "up" and each["pid"] != killed for each in found["nodes"]))
        swarm.wait_up(assigned=2 * PARTITIONS)
        assert "done" in swarm.ask("reload")
        sent = flow.stop()
        for file in files:
            wait_until(lambda: len(done(file)) == sent, f"{file.name} has all {sent} messages", WITHIN_S)  # noqa: B023
        for group in (topic, f"{topic}-audit"):
            # What the killed node had not committed is read again, after the file has all.
            wait_until(lambda: committed(real_cluster, group) == sent, f"{group} commits all", WITHIN_S)  # noqa: B023
        assert swarm.stop() == 0
