"""awoke's pytest plugin in the contract tests: its clock where it can be moved."""

from __future__ import annotations

import pytest

from awoke.testing import VirtualClock
from tests.support.clusters import Cluster


@pytest.fixture
def clock(request: pytest.FixtureRequest, cluster: Cluster) -> VirtualClock | None:
    """awoke's clock, which stands still until the test moves it; on Apache Kafka, where time passes by itself, None."""
    if cluster.is_real:
        return None
    taken: VirtualClock = request.getfixturevalue("awoke_clock")
    return taken
