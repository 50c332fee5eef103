"""Runs a slow handler on a full topic, and measures the memory of the messages that were fetched ahead."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.harness import REPOSITORY, brokers, create_topic, delete_topic, fill, unique
from bench.report import Reference, Report
from tests.support.waiting import elapse

VALUE = b"x" * 1_000
PARTITIONS = (16, 200)
TOPIC_BYTES = 1_600_000_000
STARTED_WITHIN_S = 60.0
HANDLER_S = 1.0
CONFLUENT = "confluent-kafka poll()"


def awoke_app(bootstrap_servers: str, topic: str, kafka: Mapping[str, str]) -> None:
    """Runs an app whose handler takes a second, and reports its first message. Ends with standard input."""
    import awoke
    import awoke.testing

    app = awoke.App("bench", group=unique("bench-memory"), kafka=dict(kafka), shutdown_timeout_s=5.0)
    ended = threading.Event()

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        print("READY", flush=True)
        ended.wait(HANDLER_S)

    with awoke.testing.running(app, bootstrap_servers=bootstrap_servers):
        sys.stdin.read()
        ended.set()


def with_a_bound(bootstrap_servers: str, topic: str) -> None:
    """Awoke at its default settings."""
    awoke_app(bootstrap_servers, topic, {})


def without_a_bound(bootstrap_servers: str, topic: str) -> None:
    """Awoke with librdkafka's own bound, which is per partition."""
    awoke_app(bootstrap_servers, topic, {"queued.max.messages.kbytes": "65536"})


def confluent(bootstrap_servers: str, topic: str) -> None:
    """A loop that takes a second for each message."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": unique("bench"), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        if consumer.poll(1.0) is not None:
            print("READY", flush=True)
            ended.wait(HANDLER_S)
    consumer.close()


CONTESTANTS: dict[str, Callable[[str, str], None]] = {
    "awoke": with_a_bound,
    "awoke, librdkafka's bound for each partition": without_a_bound,
    CONFLUENT: confluent,
}


def resident_mb(process_id: int) -> float:
    """Returns the peak of a process's resident memory."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def measure(name: str, bootstrap_servers: str, topic: str, seconds: float) -> float:
    """Returns the memory of a contestant after this time for fetching."""
    program = "import sys; from bench.fetch_memory import CONTESTANTS; CONTESTANTS[sys.argv[1]](*sys.argv[2:])"
    command = [sys.executable, "-c", program, name, bootstrap_servers, topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            if process.stdout.readline() != b"READY\n":
                raise RuntimeError("no message came; see the error above")
            elapse(seconds, "messages are fetched for this time")
            found = resident_mb(process.pid)
            process.stdin.close()
            process.wait(STARTED_WITHIN_S)
        finally:
            process.kill()
    return found


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.fetch_memory", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--seconds", type=float, default=15.0, help="time to fetch")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--messages", type=int, default=TOPIC_BYTES // len(VALUE))
    options = parser.parse_args()
    if options.seconds <= 0 or options.runs < 1 or options.messages < 1:
        parser.error("--seconds must be positive, --runs and --messages at least 1")
    report = Report(
        "fetch_memory",
        "A slow handler on a full topic",
        "mb_16_partitions",
        False,
        (Reference("confluent", (CONFLUENT,)),),
    )
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        for partitions in PARTITIONS:
            topic = create_topic(bootstrap_servers, partitions)
            fill(bootstrap_servers, topic, partitions, options.messages // partitions * partitions, VALUE)
            for run in range(options.runs):
                for name in CONTESTANTS:
                    found = measure(name, bootstrap_servers, topic, options.seconds)
                    runs = report.results.setdefault(name, [])
                    if len(runs) <= run:
                        runs.append({})
                    runs[run][f"mb_{partitions}_partitions"] = found
            delete_topic(bootstrap_servers, topic)
    report.write({"seconds": options.seconds, "runs": options.runs, "messages": options.messages})


if __name__ == "__main__":
    main()
