"""A supervisor with many idle clients and few file descriptors: no node dies because of it."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from awoke.observe.web.listener import CONNECTIONS_MAX
from tests.support.clusters import MockCluster, unique
from tests.support.processes import Process
from tests.support.swarms import Swarm

OPTIONS = ("--metrics-port", "0", "--no-static-members", "--restarts-max", "100", "--restart-backoff-s", "0")
CANARY = "canary-7"
KILLS = 2


@pytest.fixture
def swarm(mock_cluster: MockCluster, tmp_path: Path) -> Iterator[Swarm]:
    topic = unique("besieged")
    mock_cluster.create_topic(topic, 2)
    secret = ("--kafka", f"sasl.password={CANARY}")
    with Swarm(mock_cluster.bootstrap_servers, topic, tmp_path, *OPTIONS, *secret) as swarm:
        swarm.wait_up(2)
        yield swarm
        assert swarm.stop() == 0


def port_of(swarm: Swarm) -> int:
    line = next(each for each in swarm.process.output.splitlines() if "health and metrics at" in each)
    return int(line.rpartition(":")[2])


def limit(swarm: Swarm, descriptors: int) -> None:
    """Sets how many file descriptors the supervisor may have."""
    _, most = resource.prlimit(swarm.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(swarm.process.pid, resource.RLIMIT_NOFILE, (descriptors, most))


@contextlib.contextmanager
def besieged(port: int, path: str) -> Iterator[None]:
    """Opens hundreds of connections that say nothing, again and again."""
    stop = threading.Event()

    def besiege() -> None:
        while not stop.is_set():
            with contextlib.ExitStack() as clients:
                for _ in range(2 * CONNECTIONS_MAX):
                    with contextlib.suppress(OSError):
                        clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
                        talk = clients.enter_context(socket.socket(socket.AF_UNIX))
                        talk.settimeout(5)
                        talk.connect(path)
                stop.wait(0.1)

    threads = [threading.Thread(target=besiege) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        stop.set()
        for each in threads:
            each.join()


def test_idle_clients_cost_no_node_its_life(swarm: Swarm) -> None:
    port, pids = port_of(swarm), {number: swarm.pid_of(number) for number in (1, 2)}
    limit(swarm, 64)
    with besieged(port, swarm.socket):
        swarm.process.wait_for("idle connections are closed")
        for _ in range(KILLS):
            killed = swarm.kill(1)
            gone = (killed, None)
            swarm.wait_until(lambda found, gone=gone: found["nodes"][0]["pid"] not in gone)  # type: ignore[misc]
            swarm.wait_up(2)
            assert swarm.get(port, "/health")[0] in (200, 503)
            assert swarm.get(port, "/ready") == (200, "ready\n")
    found = swarm.wait_up(2)
    assert [each["restarts"] for each in found["nodes"]] == [KILLS, 0]
    assert swarm.pid_of(2) == pids[2], "the other node has not noticed"
    assert swarm.get(port, "/live") == (200, "alive\n")


def test_a_supervisor_without_any_descriptor_starts_a_node_when_it_has_some(swarm: Swarm) -> None:
    killed, other = swarm.pid_of(1), swarm.pid_of(2)
    limit(swarm, 10)
    os.kill(killed, signal.SIGKILL)
    swarm.process.wait_for("node 1 can't be started: Too many open files")
    limit(swarm, 64)
    found = swarm.wait_until(
        lambda found: [each["state"] for each in found["nodes"]] == ["up", "up"] and found["nodes"][0]["pid"] != killed
    )
    assert found["nodes"][1]["pid"] == other


def test_no_process_of_a_swarm_shows_a_secret(swarm: Swarm) -> None:
    found = swarm.status()
    shown = {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes()
        for pid in (found["pid"], found["mold_pid"], *(each["pid"] for each in found["nodes"]))
    }
    assert len(shown) == 4
    assert not [pid for pid, line in shown.items() if CANARY.encode() in line]
    assert b"sasl.password=********" in shown[found["pid"]]
    assert b"awoke.swarm.mold" in shown[found["mold_pid"]]


def test_a_single_process_shows_no_secret(mock_cluster: MockCluster, tmp_path: Path) -> None:
    topic = unique("alone")
    mock_cluster.create_topic(topic)
    options = ("--socket", str(tmp_path / "s"), "-b", mock_cluster.bootstrap_servers)
    env = {"SWARM_TOPIC": topic, "AWOKE_GROUP": topic}
    secret = ("--kafka", f"sasl.password={CANARY}")
    with Process("run", "tests.scenarios.swarm_app:app", *options, *secret, env=env) as process:
        process.wait_for("a start-up function was called")
        assert CANARY.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
