"""An app that is stopped while it joins its group ends: no crash of its process, and no thread that waits for ever."""

from __future__ import annotations

import subprocess
import sys

STOPS = 20
"""Of each of three threads: they make the moment of a stop within the join another one each time."""
PROGRAM = f"""
import contextlib, sys, threading
import awoke
from awoke.runtime.process.runner import AppRunner
from tests.support.clusters import MockCluster, unique

def stop_often():
    with contextlib.closing(MockCluster()) as cluster:
        for _ in range({STOPS}):
            topic = unique("orders")
            cluster.create_topic(topic, 1)
            app = awoke.App(unique("shop"), bootstrap_servers=cluster.bootstrap_servers)
            app.on(topic)(lambda message: None)
            runner = AppRunner(app)
            runner.start()
            clean.append(runner.stop(30))

clean = []
threads = [threading.Thread(target=stop_often) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(0 if clean == [True] * {3 * STOPS} else f"unclean: {{clean}}")
"""


def test_a_stop_during_the_join_is_clean() -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
