"""The pytest plugin: fixtures for tests of apps.

Each run of pytest in an environment with awoke imports this file. It imports the rest when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from awoke.testing.cluster import TestCluster
    from awoke.testing.probe import Probe


@pytest.fixture
def awoke_cluster() -> Iterator[TestCluster]:
    """Brokers of this test: topics of other tests are not on them."""
    from awoke.testing.cluster import TestCluster

    cluster = TestCluster()
    yield cluster
    cluster.close()


@pytest.fixture
def awoke_run(awoke_cluster: TestCluster) -> Iterator[Callable[..., Probe]]:
    """Runs apps on the brokers of this test: `awoke_run(app)` returns a probe. The apps stop when the test ends."""
    from awoke.testing.probe import Probe

    probes: list[Probe] = []

    def run(app: object, **settings: object) -> Probe:
        awoke_cluster.create_topics_of(app)  # type: ignore[arg-type]
        probe = Probe(app, awoke_cluster.bootstrap_servers, **settings)  # type: ignore[arg-type]
        probe.start()
        probes.append(probe)
        return probe

    yield run
    for probe in reversed(probes):
        probe.stop()
