"""awoke's pytest plugin in the contract tests: on both kinds of brokers, and its clock where it can be moved."""

from __future__ import annotations

import pytest

from awoke.testing import VirtualClock
from tests.support.clusters import Cluster, PluginCluster


@pytest.fixture
def awoke_cluster(cluster: Cluster) -> PluginCluster:
    """The brokers of the run instead of some of the test's own, so that `awoke_run` runs apps on both kinds."""
    return PluginCluster(cluster)


@pytest.fixture
def clock(request: pytest.FixtureRequest, cluster: Cluster) -> VirtualClock | None:
    """awoke's clock, which stands still until the test moves it; on Apache Kafka, where time passes by itself, None."""
    if cluster.is_real:
        return None
    taken: VirtualClock = request.getfixturevalue("awoke_clock")
    return taken
