"""An app with nothing to do does nothing: its threads stay blocked."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import elapse

IDLE_S = 10.0
WINDOWS = 3


def switches() -> dict[str, int]:
    """Voluntary context switches of this process's threads, by thread; not of librdkafka's and the test brokers'."""
    counts = {}
    brokers = {str(each.native_id) for each in threading.enumerate() if each.name.startswith("kafka-")}
    for task in (each for each in Path("/proc/self/task").iterdir() if each.name not in brokers):
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        # The embedded brokers of this process serve the clients of other tests.
        if not status["Name"].startswith(("rdk:", "awoke-brokers")):
            counts[f"{status['Name']}-{task.name}"] = int(status["voluntary_ctxt_switches"])
    return counts


def woken() -> dict[str, int]:
    """Counts the wake-ups while nothing is to be done, by thread; not those of the main thread, which waits here."""
    before = switches()
    elapse(IDLE_S, "wake-ups are counted over this time")
    after = switches()
    main = f"-{os.getpid()}"
    return {name: after[name] - before[name] for name in after if name in before and not name.endswith(main)}


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts what Linux counts")
def test_an_idle_app_wakes_less_than_once_a_second(real_cluster: RealCluster) -> None:
    topic = unique("idle")
    real_cluster.create_topic(topic, 8)
    app = awoke.App(unique("idle"), bootstrap_servers=real_cluster.bootstrap_servers)
    app.on(topic)(print)
    assigned = threading.Event()
    app.events.subscribe("partitions.assigned", lambda event: assigned.set())
    with running(app):
        assert assigned.wait(30)
        elapse(1.0, "the wake-ups of the start end")
        seen: list[dict[str, int]] = []
        # The best of three: a rebalance or a broker that was away wakes threads, too.
        while len(seen) < WINDOWS and not (seen and sum(seen[-1].values()) < IDLE_S):
            seen.append(woken())
    assert sum(seen[-1].values()) < IDLE_S, seen
