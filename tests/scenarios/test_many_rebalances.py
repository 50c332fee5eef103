"""Many rebalances leave threads and descriptors where they were, lose nothing and repeat nothing."""

from __future__ import annotations

import os

from tests.support.clusters import RealCluster, unique
from tests.support.rebalances import PARTITIONS, Rebalances
from tests.support.resource_usage import ResourceUsage, resource_usage

REBALANCES = int(os.environ.get("AWOKE_REBALANCES", "24"))
CONNECTIONS = 3
"""That librdkafka may open, or close, between two looks: far below one for each rebalance."""


def test_many_rebalances_leave_nothing_behind(real_cluster: RealCluster) -> None:
    topic = unique("many")
    real_cluster.create_topic(topic, PARTITIONS)
    rebalances, taken = Rebalances(real_cluster.bootstrap_servers, topic, unique("group")), dict[int, ResourceUsage]()
    sent = rebalances.run(REBALANCES, lambda done: taken.setdefault(done, resource_usage()))
    early, late = taken[10], taken[REBALANCES]
    assert late.names == early.names
    assert late.descriptors <= early.descriptors + CONNECTIONS
    assert late.resident_kb < early.resident_kb * 1.2 + 10_000
    assert rebalances.lost_and_repeated(sent) == (0, 0), "members that leave in order repeat nothing"
