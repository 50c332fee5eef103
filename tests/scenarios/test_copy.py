"""100,000 records are copied exactly once, 750 to a transaction, while processes are killed and the broker is bounced."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.clusters import RealCluster
from tests.support.copying import Copying, out_of_order

MESSAGES = 100_000

CRASH = os.environ.get("AWOKE_CRASH", "bounce")
"""Set to `crash`, the broker is killed, too. Kafka 4.4, killed between a decision to commit and its markers, may say when it
comes again that the transaction is complete, without having written them: readers then wait for ever."""


@pytest.fixture
def broker() -> Iterator[RealCluster]:
    """A broker of this test's own: it is killed."""
    cluster = RealCluster()
    yield cluster
    cluster.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("by", ["partition", "by_key"])
def test_nothing_is_missing_and_nothing_comes_twice(broker: RealCluster, by: str) -> None:
    copying = Copying(broker, MESSAGES, by=by)
    faults = ["kill", "stop", CRASH, "kill", "bounce", "kill"]
    for numbers in copying.run(faults, every_s=2.5, within_s=150):
        assert len(numbers) == len(set(numbers)), f"{len(numbers) - len(set(numbers))} came twice"
        assert set(numbers) == set(range(MESSAGES))
        assert out_of_order(numbers) == 0
    assert copying.kills >= 3
    assert copying.bounces >= 1


@pytest.mark.timeout(300)
def test_a_process_that_wakes_up_too_late_changes_nothing(broker: RealCluster) -> None:
    copying = Copying(broker, 30_000, per_s=3_000)
    for numbers in copying.run(["freeze"], every_s=1.5, within_s=150):
        assert sorted(numbers) == list(range(30_000))
        assert out_of_order(numbers) == 0
    assert copying.freezes == 1
