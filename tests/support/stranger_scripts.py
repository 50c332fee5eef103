"""Runs a program of its own with an app, brokers and a library of others: such a library changes its whole process."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

WITHIN_S = 120.0

PRELUDE = """
import asyncio, json, threading

def run_app(app, values=(b"1", b"2", b"3"), topic="orders", other="calls"):
    '''Runs the app beside brokers until all values are handled, which it notes with `done`. Returns its runner.'''
    import awoke
    from awoke.testing import EmbeddedCluster, running

    with EmbeddedCluster() as cluster:
        cluster.create_topic(topic)
        app.use(bootstrap_servers=cluster.bootstrap_servers)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            awoke.wait_all([producer.produce(topic, value) for value in values], 30)
        with running(app) as runner:
            for _ in values:
                assert handled.acquire(timeout=60), "not all messages came"
        return runner

handled = threading.Semaphore(0)

def tell(**found):
    print(json.dumps(found), flush=True)
"""


def told_by(script: str, *options: str) -> dict[str, Any]:
    """Runs a script behind `PRELUDE`; returns what it has told last. Fails if it fails."""
    done = subprocess.run(
        [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found["stderr"] = done.stderr
    return found
