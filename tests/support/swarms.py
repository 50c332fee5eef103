"""Swarms in processes of their own, and that nothing of them is left."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import awoke
from awoke.cli.swarm import ask
from tests.support.clusters import RealCluster
from tests.support.line_files import whole_lines
from tests.support.processes import Process, signal_process
from tests.support.waiting import became

TARGET = "tests.scenarios.swarm_app:app"
PARTITIONS = 4
WITHIN_S = 120.0
"""Two starts of Python, one after the other, forks and a join of the group come within this on a busy machine."""


class Swarm:
    """`awoke run … --nodes`. A context manager: leaving it kills what still runs and checks that nothing is left."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        folder: Path,
        *options: str,
        nodes: int = 2,
        env: dict[str, str] | None = None,
        is_classic: bool = True,
        target: str = TARGET,
    ) -> None:
        self._target = target
        self.socket = str(folder / "swarm.sock")
        self.log = folder / "done"
        classic = ("session.timeout.ms=3000", "heartbeat.interval.ms=500") if is_classic else ()
        kafka = (*classic, "reconnect.backoff.max.ms=500")
        arguments = ["run", target, "--nodes", str(nodes), "--socket", self.socket, "-b", bootstrap_servers]
        arguments += [word for each in kafka for word in ("--kafka", each)]
        env = {"SWARM_TOPIC": topic, "AWOKE_GROUP": topic, "SWARM_LOG": str(self.log), **(env or {})}
        self.process = Process(*arguments, *options, env=env)
        self._seen: set[int] = set()

    def status(self) -> dict[str, Any]:
        """Returns the supervisor's status."""
        found = ask(self._target, self.socket, "status")
        self._seen |= {each["pid"] for each in found["nodes"] if each["pid"]}
        return found

    def wait_until(self, is_so: Callable[[dict[str, Any]], bool], within_s: float = WITHIN_S) -> dict[str, Any]:
        """Asks until the status is as expected, and returns it. Blocks; fails when the time is up."""
        found: dict[str, Any] = {}

        def is_reached() -> bool:
            assert self.process.is_running, self.process.output
            found.clear()
            with contextlib.suppress(awoke.AwokeError):
                found.update(self.status())
            return bool(found) and is_so(found)

        assert became(is_reached, within_s, every_s=0.05), f"still {found}\n{self.process.output}"
        return found

    def wait_up(self, nodes: int = 2, assigned: int = 0) -> dict[str, Any]:
        """Waits until `nodes` nodes are up, and have `assigned` partitions together."""

        def is_up(found: dict[str, Any]) -> bool:
            up = [each for each in found["nodes"] if each["state"] == "up"]
            held = [each["assigned"] for each in up]
            # One that joins first has all of them for a moment: a rebalance is still under way then.
            is_settled = sum(held) >= assigned and min(held, default=0) >= assigned // nodes
            return len(up) == len(found["nodes"]) == nodes and is_settled

        return self.wait_until(is_up)

    def pid_of(self, node: int) -> int:
        """A node's process."""
        return int(next(each["pid"] for each in self.status()["nodes"] if each["node"] == node))

    def kill(self, node: int, number: signal.Signals = signal.SIGKILL) -> int:
        """Signal a node that this swarm started; its process."""
        pid = self.pid_of(node)
        signal_process(pid, number)
        return pid

    def kill_mold(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal a mold of this swarm, as `status` has named it."""
        self._seen.add(pid)
        signal_process(pid, number)

    def ask(self, command: str, within_s: float = 60.0, **fields: Any) -> dict[str, Any]:
        """Ask the supervisor."""
        return ask(self._target, self.socket, command, within_s, **fields)

    def stop(self, within_s: float = 60.0) -> int:
        """Stop it in order; its exit code."""
        self.status()
        self.process.signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def done(self) -> dict[int, list[int]]:
        """The offsets that were processed, by partition, in order."""
        found: dict[int, list[int]] = defaultdict(list)
        for line in whole_lines(self.log):
            _, partition, offset, _ = line.split(" ", 3)
            found[int(partition)].append(int(offset))
        return found

    def wait_done(self, count: int, within_s: float = WITHIN_S) -> None:
        """Waits until `count` different messages were processed. Blocks; fails when the time is up."""

        def are_done() -> bool:
            if sum(len(set(offsets)) for offsets in self.done().values()) >= count:
                return True
            assert self.process.is_running, self.process.output
            return False

        assert became(are_done, within_s, every_s=0.05), f"only {self.done()}\n{self.process.output}"

    def get(self, port: int, path: str) -> tuple[int, str]:
        """Returns status and body of a page that it serves over HTTP."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def json(self, text: str) -> Any:
        """As JSON."""
        return json.loads(text)

    def __enter__(self) -> Swarm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.__exit__(kind, error, trace)
        if kind is None:
            assert "which is a bug" not in self.process.output, self.process.output
            assert gone(self._seen, 15.0) == set(), f"left: {gone(self._seen, 0)}\n{self.process.output}"


def gone(pids: set[int], within_s: float) -> set[int]:
    """Returns the processes that still exist after this time."""

    def left() -> set[int]:
        return {pid for pid in pids if Path(f"/proc/{pid}").exists()}

    became(lambda: not left(), within_s, every_s=0.05)
    return left()


def is_in_order(offsets: list[int]) -> bool:
    """Tells whether each message came after those before it; repeated messages do not count."""
    first = list(dict.fromkeys(offsets))
    return first == sorted(first)


class Flow:
    """Messages that flow into a topic until it is stopped."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._servers, self._topic = bootstrap_servers, topic
        self._stop = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with awoke.Producer(self._servers) as producer:
            while not self._stop.wait(0.02):
                awoke.wait_all([producer.produce(self._topic, b"x", partition=each) for each in range(PARTITIONS)], 30)
                self.sent += PARTITIONS

    def stop(self) -> int:
        """No more; how many there were."""
        self._stop.set()
        self._thread.join()
        return self.sent

    def __enter__(self) -> Flow:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def send(cluster: RealCluster, topic: str, value: bytes, partition: int = 0) -> None:
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        producer.produce(topic, value, partition=partition).wait(30)


def check(swarm: Swarm, sent: int) -> None:
    """Nothing was lost, and each partition came in order."""
    swarm.wait_done(sent)
    done = swarm.done()
    assert sum(len(set(offsets)) for offsets in done.values()) == sent
    assert all(is_in_order(offsets) for offsets in done.values())
