"""A signal's handler may wait on the client on which the main thread waits: neither waits for the other.

Each runs in a process of its own, because Python runs the handlers of signals on its main thread.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

DELIVERY = """
import signal, threading
import awoke
from awoke.testing import EmbeddedCluster

with EmbeddedCluster() as cluster, awoke.Producer(cluster.bootstrap_servers) as producer:
    cluster.create_topic("signals")
    producer.produce("signals", b"first").wait()
    cluster.set_round_trip(1, 1_000)  # So the signal comes while the main thread waits.
    found = []

    def on_signal(*_):
        found.append(producer.produce("signals", b"handler's").wait(20))

    signal.signal(signal.SIGALRM, on_signal)
    send = lambda: producer.produce("signals", b"other's").wait(20)
    others = [threading.Thread(target=send) for _ in range({others})]
    for other in others:
        other.start()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    delivery = producer.produce("signals", b"main's").wait(20)
    for other in others:
        other.join()
    assert len(found) == 1, found
    print("answered")
"""

CALL = """
import os, signal, threading
import awoke
from awoke import rpc
from awoke.testing import EmbeddedCluster, running

app = awoke.App("signals")
may_end = threading.Event()

@app.rpc.method
def slow() -> bool:
    os.kill(os.getpid(), signal.SIGUSR1)
    return may_end.wait(20)

@app.rpc.method
def fast() -> None:
    may_end.set()

with EmbeddedCluster() as cluster, running(app, bootstrap_servers=cluster.bootstrap_servers):
    with rpc.Caller("signals", cluster.bootstrap_servers, timeout_s=20) as caller:
        signal.signal(signal.SIGUSR1, lambda *_: caller.call("fast"))
        assert caller.call("slow") is True
print("answered")
"""


def runs(script: str) -> None:
    """Run a script; it says that it was answered."""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "answered" in found.stdout, found.stdout + found.stderr
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("others", [0, 2], ids=["the main thread serves", "another thread serves"])
def test_a_handler_waits_for_its_own_delivery(others: int) -> None:
    runs(DELIVERY.replace("{others}", str(others)))


def test_a_handler_waits_for_its_own_call() -> None:
    runs(CALL)
