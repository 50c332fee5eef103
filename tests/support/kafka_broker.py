"""Real Apache Kafka for tests: resolved from Maven Central, started on free loopback ports, stopped by process id.

`python -m tests.support.kafka_broker run [--brokers 3]` prints `READY host:port,…`. It obeys `stop 1`,
`kill 1` and `start 1` on standard input, answers each with `OK`, and stops everything at the end of its input.
`… fetch` only makes what brokers need (see `kafka_home`).
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from tests.support.kafka_home import format_folder, java, new_archive, resolve_jars
from tests.support.processes import signal_process

READY_WITHIN_S = 150.0
PORTS = range(20_000, 32_000)
"""Below those that the system gives to outgoing connections: one of them might take a port before its broker does."""


WORKERS_MAX = 8
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Returns free ports of the loopback interface, from this test process's own share of them.

    A broker binds its ports seconds later, and gives them up while it is stopped: another process must not choose them
    meanwhile. So each worker of a test run has a share of its own, and gives no port twice.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", f"gw{WORKERS_MAX - 1}")[2:]) % WORKERS_MAX
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            port = random.choice(PORTS[worker::WORKERS_MAX])
            if port in _given:
                continue
            with contextlib.suppress(OSError):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                found.append(port)
                _given.add(port)
        return found


class Broker:
    """One broker process, and the last lines of its log."""

    def __init__(self, broker_id: int, port: int, properties: Path) -> None:
        self.id = broker_id
        self.port = port
        self.properties = properties
        self._process: subprocess.Popen[bytes] | None = None
        self._log: deque[str] = deque(maxlen=5_000)
        self._reader: threading.Thread | None = None
        self._is_started = False  # Written by the reader before it sets `_said`.
        self._said = threading.Event()

    @property
    def is_running(self) -> bool:
        """Tells whether the process was started and has not been stopped."""
        return self._process is not None

    def launch(self, options: Sequence[str] = ()) -> None:
        """Start the process, in a session of its own, and a thread that reads its log from the first line on.

        Every broker has its reader at once: one without a reader blocks on a full pipe,
        and the quorum then waits for it.
        """
        # Unbuffered: a lock that the reader held at a fork would stay held in the child.
        process = subprocess.Popen(
            java("kafka.Kafka", str(self.properties), options=options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )
        assert process.stdout is not None
        self._process, self._is_started, self._said = process, False, threading.Event()
        self._reader = threading.Thread(
            target=self._read, args=(process.stdout.fileno(),), name=f"kafka-{self.id}-log", daemon=True
        )
        self._reader.start()

    def wait_ready(self) -> None:
        """Wait until the log says that the broker has started."""
        self._said.wait(READY_WITHIN_S)
        if not self._is_started:
            self.stop(signal.SIGKILL)
            raise RuntimeError(f"broker {self.id} did not start:\n" + "\n".join(list(self._log)[-40:]))

    def _read(self, output: int) -> None:
        """Keep the log's lines until its end; say when the broker has started, or has ended without."""
        rest = b""
        while piece := os.read(output, 65536):
            *lines, rest = (rest + piece).split(b"\n")
            self._log.extend(line.decode(errors="replace") for line in lines)
            if not self._is_started and any(b"Kafka Server started" in line for line in lines):
                self._is_started = True
                self._said.set()
        self._said.set()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Signal the process that this object started, and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join()
        if process.stdout is not None:
            process.stdout.close()

    def fill_disk(self) -> None:
        """Refuse every write that makes a file longer, as a full disk does. Waits for the broker's end by it."""
        process = self._process
        assert process is not None, f"broker {self.id} does not run"
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
        try:
            process.wait(READY_WITHIN_S)
        finally:
            self.stop(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Signal the process that this object started, if it runs."""
        if self._process is not None:
            signal_process(self._process.pid, number)

    def log_text(self) -> str:
        """The last lines of the broker's log."""
        return "\n".join(self._log.copy())  # A copy: the reader appends meanwhile.


class KafkaCluster:
    """One or more brokers in KRaft combined mode. A context manager: leaving it stops them and removes their data.

    The data are in a folder under `parent`; None for where the system has temporary files. The first `controllers`
    brokers are controllers, too; None for all of them. Without a majority of the controllers, no leader is elected.
    """

    def __init__(
        self,
        brokers: int = 1,
        properties: dict[str, str] | None = None,
        parent: Path | None = None,
        *,
        controllers: int | None = None,
    ) -> None:
        self._count = brokers
        self._controllers = controllers or brokers
        self._extra = properties or {}
        self._cluster_id = uuid.uuid4().hex[:22]
        self._folder = Path(tempfile.mkdtemp(prefix="awoke-kafka-", dir=parent))
        self._brokers: dict[int, Broker] = {}
        self._owner = os.getpid()

    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers listen."""
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self._brokers.values())

    def start(self) -> None:
        """Format and start every broker; returns when all have started."""
        self._prepare()
        self._launch(self._brokers)

    def run_once(self, options: Sequence[str]) -> None:
        """Start a single broker with options for its JVM, and stop it in order."""
        try:
            self._prepare()
            broker = self._brokers[1]
            broker.launch(options)
            broker.wait_ready()
            broker.stop()
        finally:
            self.stop()

    def _prepare(self) -> None:
        """Choose ports and format every broker."""
        resolve_jars()
        atexit.register(self.stop)
        ports = free_ports(2 * self._count)
        ids = range(1, self._count + 1)
        voters = ",".join(f"{each}@127.0.0.1:{ports[self._count + each - 1]}" for each in ids[: self._controllers])
        for each in ids:
            port, controller = ports[each - 1], ports[self._count + each - 1]
            properties = self._write_properties(each, port, controller, voters)
            self._brokers[each] = Broker(each, port, properties)
        for broker_id in self._brokers:
            self._format(broker_id)

    def _format(self, broker_id: int) -> None:
        format_folder(self._data(broker_id), self._brokers[broker_id].properties, broker_id, self._cluster_id)

    def _data(self, broker_id: int) -> Path:
        return self._folder / f"data-{broker_id}"

    def _launch(self, broker_ids: Iterable[int]) -> None:
        """Start these brokers; returns when they have started."""
        brokers = [self._brokers[each] for each in broker_ids]
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            broker.wait_ready()

    def _write_properties(self, broker_id: int, port: int, controller: int, voters: str) -> Path:
        replicas = str(min(self._count, 3))
        is_controller = broker_id <= self._controllers
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": str(broker_id),
            "controller.quorum.voters": voters,
            "listeners": listeners + (f",CONTROLLER://127.0.0.1:{controller}" if is_controller else ""),
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._data(broker_id)),
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            # What was killed is missed soon: users' brokers miss it after 45 s under the new group protocol.
            "group.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.session.timeout.ms": "6000",
            "group.consumer.heartbeat.interval.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "1000",
            "auto.create.topics.enable": "false",
            # Tests write messages with timestamps of long ago, which the check of each five minutes would delete.
            "log.retention.ms": "-1",
            # What is given may name the broker's own ports.
            **{name: value.format(port=port, controller=controller) for name, value in self._extra.items()},
        }
        file = self._folder / f"broker-{broker_id}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return file

    def stop_broker(self, broker_id: int) -> None:
        """Stop one broker in order."""
        self._brokers[broker_id].stop()

    def kill_broker(self, broker_id: int) -> None:
        """Kill one broker."""
        self._brokers[broker_id].stop(signal.SIGKILL)

    def fill_disk_of_broker(self, broker_id: int) -> None:
        """Let a broker write to no file any more; returns when it has ended by that. It starts with space again."""
        self._brokers[broker_id].fill_disk()

    def start_broker(self, broker_id: int) -> None:
        """Start a broker again on the ports and the data that it had."""
        self._brokers[broker_id].launch()
        self._brokers[broker_id].wait_ready()

    def empty_broker(self, broker_id: int) -> None:
        """Remove the data of a broker that is stopped: it starts with none."""
        assert not self._brokers[broker_id].is_running, f"broker {broker_id} runs"
        shutil.rmtree(self._data(broker_id))
        self._format(broker_id)

    def freeze_broker(self, broker_id: int) -> None:
        """Suspend a broker's process; its connections stay open."""
        self._brokers[broker_id].signal(signal.SIGSTOP)

    def thaw_broker(self, broker_id: int) -> None:
        """Resume a broker's process."""
        self._brokers[broker_id].signal(signal.SIGCONT)

    def log_text(self, broker_id: int) -> str:
        """The last lines of a broker's log."""
        return self._brokers[broker_id].log_text()

    def stop(self) -> None:
        """Kill every broker and remove their data. Stopping again does nothing."""
        if os.getpid() != self._owner:
            return  # A forked child that ends must not take its parent's brokers along.
        for broker in self._brokers.values():
            broker.stop(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.stop)

    def __enter__(self) -> KafkaCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def fetch() -> Path:
    """Resolves the jars, and keeps the classes that a broker loads. Returns the folder of the jars."""
    libraries = resolve_jars()
    with new_archive() as options:
        if options:
            KafkaCluster().run_once(options)
    return libraries


def commands() -> Iterator[list[str]]:
    """The words of each line of standard input."""
    for line in sys.stdin:
        if words := line.split():
            yield words


def main() -> None:
    """Obey the command line."""
    parser = argparse.ArgumentParser(description="Apache Kafka for tests")
    parser.add_argument("action", choices=["run", "fetch"])
    parser.add_argument("--brokers", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.action == "fetch":
        print(fetch())
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with KafkaCluster(arguments.brokers) as cluster:
        print(f"READY {cluster.bootstrap_servers}", flush=True)
        actions = {"stop": cluster.stop_broker, "kill": cluster.kill_broker, "start": cluster.start_broker}
        for action, broker_id in commands():
            actions[action](int(broker_id))
            print("OK", flush=True)


if __name__ == "__main__":
    main()
