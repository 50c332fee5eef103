"""A large app as its console's topics have it, and a console of it in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from awoke import Producer, wait_all
from awoke.admin import Admin
from awoke.console.topics import ConsoleTopics
from awoke.console.views import ErrorRecord, Failing, Handler, History, Partition, Report, Running, Sample
from awoke.operate.commands.views import MAJOR, MINOR
from bench.harness import REPOSITORY, unique
from tests.unit.console.web import fakes

NODES, PARTITIONS, KEYS, ERRORS = 50, 5_000, 10_000, 100_000
KINDS = 200
"""The fingerprints of the errors."""
STARTED_WITHIN_S = 60.0
SEEDED_WITHIN_S = 300.0
"""A busy broker needs minutes for 5,000 partitions, and makes the topic of committed offsets after them."""
TRACEBACK = "Traceback (most recent call last):\n" + '  File "shop/orders.py", line 7, in handle\n' * 12


class Scale(NamedTuple):
    """The size of an app."""

    nodes: int = NODES
    partitions: int = PARTITIONS
    keys: int = KEYS
    errors: int = ERRORS


def now_ms() -> int:
    """Returns the time as milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def report_of(app: str, node: int, scale: Scale, sequence: int = 1) -> Report:
    """Returns the report of one process: its share of the partitions and of the keys under way.

    Of the numbers of a partition most change with the sequence.
    """
    at_ms, each_has = now_ms(), scale.partitions // scale.nodes
    numbers = range(node * each_has, (node + 1) * each_has)
    keys = max(1, scale.keys // scale.partitions)
    samples = [Sample(at_ms - 5_000 * each, 900 + each, 1, 5_000, 90_000_000) for each in range(60, 0, -1)]
    return fakes.report(
        f"host-{node // 10}.{1_000 + node}",
        *(partition_of(app, number, keys, at_ms, sequence) for number in numbers),
        minor=MINOR,
        app=app,
        secrets=[],
        host=f"host-{node // 10}",
        pid=1_000 + node,
        started_at_ms=at_ms - 3_600_000,
        at_ms=at_ms,
        sequence=sequence,
        groups=[app],
        memory_bytes=90_000_000,
        threads={"worker": 8, "engine": 3},
        failures=ERRORS // NODES,
        versions={"awoke": "0.1.0", "python": "3.11.7"},
        handlers=[
            Handler(
                name="handle",
                group=app,
                topic=app,
                is_async=False,
                concurrency=64,
                exactly_once=False,
                dead_letter=None,
                messages_per_s=1_000.0,
            )
        ],
        history=History(of_5_s=samples, of_minutes=samples),
    )


def partition_of(app: str, number: int, keys: int, at_ms: int, sequence: int) -> Partition:
    """Returns a partition with keys under way; every fiftieth has a message that fails."""
    failing = Failing(
        offset=100, key_hash="9f3a0c11", attempts=3, error="ValueError: no good", since_ms=at_ms, next_ms=at_ms + 60_000
    )
    jobs = [
        Running(offset=101 + each, attempt=1, remaining=2, since_ms=at_ms - 200, key_hash=f"{number:06x}{each:02x}")
        for each in range(keys)
    ]
    return Partition(
        group=app,
        topic=app,
        partition=number,
        position=120 + sequence,
        committed=100 + sequence,
        end_offset=150 + sequence,
        in_flight=20 + (number + sequence) % 7,
        offsets_per_s=10.0 + (number * sequence) % 90 / 10,
        oldest_offset=100,
        failing=[failing] if number % 50 == 0 else [],
        running=jobs,
        commit_gap=20,
        commit_gap_max=10_000,
    )


def error_of(app: str, number: int) -> ErrorRecord:
    """Returns one failure of the last hour."""
    kind = number % KINDS
    return ErrorRecord(
        major=MAJOR,
        minor=MINOR,
        at_ms=now_ms() - 3_000_000 + number * 30,
        node="host-0.1000",
        app=app,
        event="job.failed",
        fingerprint=f"{kind:016x}",
        error_type=f"shop.errors.Error{kind}",
        error_text=f"order {number} has no good",
        traceback=TRACEBACK,
        handler="handle",
        topic=app,
        partition=number % PARTITIONS,
        offset=number,
        key_hash=f"{number:08x}",
        attempt=1,
    )


def seed(bootstrap_servers: str, scale: Scale) -> str:
    """Writes the topics of an app of this size, and commits its offsets. Returns its name, also of topic and group."""
    app = unique("bench-shop")
    topics = ConsoleTopics.of(app)
    with Admin(bootstrap_servers) as admin:
        for name, config in topics.configs.items():
            admin.create_topic(name, partitions=1, config=config, timeout_s=SEEDED_WITHIN_S)
        admin.create_topic(topics.audit, partitions=1, timeout_s=SEEDED_WITHIN_S)
        admin.create_topic(app, partitions=scale.partitions, timeout_s=SEEDED_WITHIN_S)
        committed = {(app, number): 0 for number in range(scale.partitions)}
        admin.alter_group_offsets(app, committed, timeout_s=SEEDED_WITHIN_S)
    with Producer(bootstrap_servers, kafka={"compression.type": "zstd"}) as producer:
        handles = []
        for node in range(scale.nodes):
            report = report_of(app, node, scale)
            handles.append(producer.produce(topics.reports, msgspec.json.encode(report), key=report.node))
        for number in range(scale.errors):
            error = error_of(app, number)
            handles.append(producer.produce(topics.errors, msgspec.json.encode(error), key=error.fingerprint))
        wait_all(handles, SEEDED_WITHIN_S)
    return app


class Console:
    """A console that is served by a process of its own."""

    def __init__(self, url: str, pid: int) -> None:
        self.url, self.pid = url, pid
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=STARTED_WITHIN_S)

    def get(self, path: str, *, is_json: bool = False) -> tuple[float, bytes]:
        """Returns the milliseconds until the whole answer was there, and the answer."""
        begin_s = time.perf_counter()
        self._connection.request("GET", path, headers={"Accept": "application/json" if is_json else "text/html"})
        answer = self._connection.getresponse()
        body = answer.read()
        took_ms = (time.perf_counter() - begin_s) * 1e3
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[-500:]!r}")
        return took_ms, body

    def memory_mb(self) -> dict[str, float]:
        """Returns the resident memory of the process now, and the most that it had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        found = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
        return {"memory_mb": int(found["VmRSS"]) / 1024, "memory_most_mb": int(found["VmHWM"]) / 1024}


@contextlib.contextmanager
def console_of(app: str, bootstrap_servers: str) -> Iterator[Console]:
    """Serves the console of an app until the end of the `with` block."""
    program = "import sys; from awoke.cli import main; sys.argv[0] = 'awoke'; main()"
    options = ["console", app, "--bootstrap-servers", bootstrap_servers, "--port", "0", "--payloads"]
    command = [sys.executable, "-u", "-c", program, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:
                raise RuntimeError("the console did not start; see its error above")
            yield Console(found[0], process.pid)
        finally:
            process.terminate()
            process.wait(STARTED_WITHIN_S)
