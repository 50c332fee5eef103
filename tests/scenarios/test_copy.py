"""Records are copied, and counted in a table, exactly once while processes are killed and the broker restarts."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from tests.support.clusters import RealCluster
from tests.support.copying import KEYS, BrokerHoldsUp, Copying, out_of_order

MESSAGES = int(os.environ.get("AWOKE_COPIED", "40000"))
PER_S = 5_000
"""By each of the two processes: the copy lasts for longer than the faults take."""

CRASH = os.environ.get("AWOKE_CRASH", "bounce")
"""With `crash`, the broker is killed, too. Kafka 4.4 may be killed between a decision to commit and its markers. After
its restart it may then report the transaction as complete without them, and readers wait for ever."""


TRIES = 3
"""A broker that has lost the markers of a transaction, shown without awoke, proves nothing: another one is tried."""


@contextlib.contextmanager
def new_broker() -> Iterator[RealCluster]:
    """A broker of this test's own: it is bounced."""
    cluster = RealCluster()
    try:
        yield cluster
    finally:
        cluster.close()


def copied(by: str, *, counts: bool = True) -> tuple[Copying, tuple[list[int], list[int]]]:
    faults = (
        ["kill", CRASH, "stop", "kill"] if MESSAGES < 100_000 else ["kill", "stop", CRASH, "kill", "bounce", "kill"]
    )
    for left in reversed(range(TRIES)):
        with new_broker() as broker:
            copying = Copying(broker, MESSAGES, by=by, per_s=PER_S, counts=counts)
            try:
                return copying, copying.run(faults, every_s=MESSAGES / 40_000, within_s=150)
            except BrokerHoldsUp as error:
                print(f"the broker holds offsets up for ever: {error}")
                if not left:
                    raise
    raise AssertionError("unreachable")


def counted(numbers: Iterable[int]) -> dict[int, int]:
    """Returns the rows that the app's table has after these messages."""
    return dict(Counter(number % KEYS for number in numbers))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("by", [pytest.param("partition", marks=pytest.mark.soak), "by_key"])
@pytest.mark.parametrize("counts", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["table", "no-table"])
def test_nothing_is_missing_and_nothing_comes_twice(by: str, counts: bool) -> None:
    copying, seen = copied(by, counts=counts)
    for numbers in seen:
        assert len(numbers) == len(set(numbers)), f"{len(numbers) - len(set(numbers))} came twice"
        assert set(numbers) == set(range(MESSAGES))
        assert out_of_order(numbers) == 0
    if counts:
        assert copying.rows == counted(range(MESSAGES))
    assert copying.kills >= 3
    assert copying.bounces >= 1


def test_a_process_that_wakes_up_too_late_changes_nothing() -> None:
    with new_broker() as broker:
        copying = Copying(broker, 15_000, per_s=3_000)
        seen = copying.run(["freeze"], every_s=1.0, within_s=150)
    for numbers in seen:
        assert sorted(numbers) == list(range(15_000))
        assert out_of_order(numbers) == 0
    assert copying.rows == counted(range(15_000))
    assert copying.freezes == 1
