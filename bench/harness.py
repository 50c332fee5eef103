"""Run contestants in turn, each in a fresh process, on one broker, and gather what they print.

1. Start a broker, unless one is given; make the topic, and fill it where the program consumes.
2. For each run and contestant: `python -m bench.<name> --contestant …` measures itself and prints JSON.
3. Report medians and ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.report import Reference, Report, Result

REPOSITORY = Path(__file__).resolve().parent.parent
VALUE_BYTES = 100
VALUE = b"x" * VALUE_BYTES
CONTESTANT_TIMEOUT_S = 600.0
CLUSTER_TIMEOUT_S = 60.0
WARM_UP_SHARE = 4


@dataclass(frozen=True)
class Job:
    """The task of one contestant in its process."""

    bootstrap_servers: str
    topic: str
    group: str
    messages: int


Contestant = Callable[[Job], Result]


class ContestantFailed(RuntimeError):
    """A contestant ended with an error; the text has the end of its output."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One benchmark: its contestants, its topic, and the measure that is compared."""

    name: str
    title: str
    contestants: Mapping[str, Contestant]
    messages: int
    partitions: int
    main: str
    is_higher_better: bool
    references: tuple[Reference, ...]
    is_filled: bool = False
    """The topic holds the messages before, and all contestants read the same; else each has an empty one."""
    is_counted: bool = False
    """The topic must have taken in at least the messages. It keeps only the last of them, so that the broker's first
    access to each page of memory is not measured."""


def main(program: Program) -> None:
    """Runs the command line: all contestants, or the one that is named."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{program.name}", description=program.title)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--messages", type=int, default=program.messages)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="contestants whose name contains this")
    parser.add_argument("--contestant", choices=list(program.contestants), help=argparse.SUPPRESS)
    parser.add_argument("--topic", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.messages < 1 or options.runs < 1:
        parser.error("--messages and --runs must be at least 1")
    if options.contestant:
        job = Job(options.bootstrap_servers, options.topic, unique("bench-group"), options.messages)
        print(json.dumps(program.contestants[options.contestant](job)), flush=True)
        return
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        report = measure(program, bootstrap_servers, options.messages, options.runs, options.only)
    report.write({"messages": options.messages, "runs": options.runs, "value_bytes": VALUE_BYTES})
    if report.failures:
        sys.exit(1)


MEMORY = Path("/dev/shm")
"""The directory of the brokers' logs, in memory: the changing speed of a disk must not be measured."""

MEMORY_BYTES_MIN = 8 * 1024**3

SEGMENT_BYTES = 16 * 1024**2
"""The size in bytes of each partition of a topic that keeps only the last messages."""


@contextlib.contextmanager
def brokers(given: str | None, count: int = 1) -> Iterator[str]:
    """Yields the given brokers, or real ones that last as long as the `with` block."""
    if given:
        yield given
        return
    from tests.support.kafka_broker import KafkaCluster

    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    # Deleted topics free their disk space at once, not after a minute, and old messages are deleted soon.
    properties = {"log.segment.delete.delay.ms": "100", "log.retention.check.interval.ms": "200"}
    with KafkaCluster(count, properties, MEMORY if has_room else None) as cluster:
        yield cluster.bootstrap_servers


def measure(program: Program, bootstrap_servers: str, messages: int, runs: int, only: str | None) -> Report:
    """Runs every contestant once in each run, in turn, so that a slow minute of the machine affects all of them.

    Run 0 is smaller and not counted: a broker whose JVM is cold would slow down the first contestant. Each run
    begins with another contestant for the same reason.
    """
    names = [name for name in program.contestants if only is None or only in name]
    report = Report(program.name, program.title, program.main, program.is_higher_better, program.references)
    report.results = {name: [] for name in names}
    shared = None
    if program.is_filled:
        shared = create_topic(bootstrap_servers, program.partitions)
        fill(bootstrap_servers, shared, program.partitions, messages)
    for run in range(runs + 1):
        first = run % len(names) if names else 0
        for name in names[first:] + names[:first]:
            topic = shared or create_topic(bootstrap_servers, program.partitions, not program.is_counted)
            size = messages if run else max(1, messages // WARM_UP_SHARE)
            phase = f"run {run} of {runs}" if run else "warm-up"
            print(f"{phase}: {name}", file=sys.stderr, flush=True)
            try:
                job = Job(bootstrap_servers, topic, "", size)
                result = run_contestant(program.name, name, job)
                if program.is_counted:
                    check_count(job, program.partitions)
                if run:
                    report.results[name].append(result)
            except ContestantFailed as error:
                report.failures[name] = str(error)
            if shared is None:
                delete_topic(bootstrap_servers, topic)
    if shared is not None:
        delete_topic(bootstrap_servers, shared)
    return report


def run_contestant(program: str, contestant: str, job: Job) -> Result:
    """Runs one contestant in its own process. Returns its measurements.

    Raises:
        ContestantFailed: it ended with an error or not at all.
    """
    options = asdict(job)
    command = [sys.executable, "-m", f"bench.{program}", "--contestant", contestant]
    for name in ("bootstrap_servers", "topic", "messages"):
        command += [f"--{name.replace('_', '-')}", str(options[name])]
    try:
        done = subprocess.run(
            command,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=CONTESTANT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ContestantFailed(f"did not end within {CONTESTANT_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0 or not done.stdout.strip():
        raise ContestantFailed(f"exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


def native(mode: str, job: Job, properties: Mapping[str, object]) -> dict[str, float]:
    """Runs a native contestant. Returns seconds and messages as it printed them."""
    from bench.native.build import build

    command = [str(build()), mode, job.bootstrap_servers, job.topic, job.group, str(job.messages)]
    command += [f"{name}={value}" for name, value in properties.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ContestantFailed(done.stderr.strip())
    result: dict[str, float] = json.loads(done.stdout)
    return result


def rate(seconds: float, messages: int) -> dict[str, float]:
    """Returns seconds and messages per second."""
    return {"messages_per_s": messages / seconds, "seconds": seconds}


def unique(word: str) -> str:
    """Returns a unique name."""
    return f"{word}-{uuid.uuid4().hex[:12]}"


# Set-up and checks use confluent-kafka, so that they do not depend on the measured client.


def create_topic(bootstrap_servers: str, partitions: int, keeps_all: bool = True, bytes_max: int | None = None) -> str:
    """Creates a topic of one replica, with batches of at most `bytes_max`. Returns its name."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    name = unique("bench")
    # Deleted topics free their disk space soon.
    config = {"file.delete.delay.ms": "100"}
    if not keeps_all:
        config |= {"segment.bytes": str(SEGMENT_BYTES), "retention.bytes": str(SEGMENT_BYTES)}
    if bytes_max is not None:
        config["max.message.bytes"] = str(bytes_max)
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([topic], operation_timeout=CLUSTER_TIMEOUT_S)[name].result(CLUSTER_TIMEOUT_S)
    return name


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Deletes a topic."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.delete_topics([name])[name].result(CLUSTER_TIMEOUT_S)


def fill(bootstrap_servers: str, topic: str, partitions: int, messages: int, value: bytes = VALUE) -> None:
    """Writes the messages, the same number to each partition."""
    from confluent_kafka import Producer

    settings = {"queue.buffering.max.messages": 0, "message.max.bytes": max(1_000_000, 2 * len(value))}
    producer = Producer({"bootstrap.servers": bootstrap_servers, **settings})
    for number in range(messages):
        producer.produce(topic, value, partition=number % partitions)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(CLUSTER_TIMEOUT_S) or count(bootstrap_servers, topic, partitions) != messages:
        raise RuntimeError("the topic could not be filled")


def count(bootstrap_servers: str, topic: str, partitions: int) -> int:
    """Returns the number of messages in a topic."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": unique("bench-count")})
    try:
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=CLUSTER_TIMEOUT_S)[1]
            for each in range(partitions)
        )
    finally:
        consumer.close()


def check_count(job: Job, partitions: int) -> None:
    """Checks that the topic has the messages that a producer reported as sent."""
    found = count(job.bootstrap_servers, job.topic, partitions)
    if found < job.messages:
        raise ContestantFailed(f"only {found:,} of {job.messages:,} messages arrived")
