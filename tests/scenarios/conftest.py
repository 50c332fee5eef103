"""What the scenarios of swarms share: a topic, messages that flow into it, and the code of an app on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters import RealCluster, unique
from tests.support.swarms import PARTITIONS, Flow


@pytest.fixture
def topic(real_cluster: RealCluster) -> str:
    """A topic of its own on real Kafka."""
    name = unique("swarm")
    real_cluster.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def flow(real_cluster: RealCluster, topic: str) -> Iterator[Flow]:
    """Messages that are sent to the topic all the while."""
    with Flow(real_cluster.bootstrap_servers, topic) as flow:
        yield flow


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The app's code on disk."""
    file = tmp_path / "code"
    file.write_text("")
    return file
