"""Copies a topic exactly once while processes are killed and brokers restart, and reads the copy twice.

After the transaction tests of Kafka's own (`transactions_test.py`). The readers share no code with awoke.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import defaultdict
from collections.abc import Sequence

import confluent_kafka

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process
from tests.support.waiting import elapse

KEYS = 97
FROZEN_S = 5.0
OVER_S = 20.0
"""Longer than any transaction lasts, and than it takes the broker to notice."""
HELD_UP = "could not find out where to begin"
"""The message of a process that ends because a transaction holds offsets up for too long."""
PARTITIONS = 4
CHANGELOG = "copy.table.counts"
"""The app's table counts the messages of each key."""
KAFKA = (
    "session.timeout.ms=3000",
    "heartbeat.interval.ms=500",
    "transaction.timeout.ms=3000",
    "reconnect.backoff.max.ms=500",
    "topic.metadata.refresh.interval.ms=2000",
)


class BrokerHoldsUp(Exception):
    """A transaction that is over still holds offsets up, and no client runs: the broker has lost its markers."""


class CommittedReader:
    """Reads committed messages on a thread until it has the expected number or is stopped."""

    def __init__(self, bootstrap_servers: str, topic: str, messages: int) -> None:
        self.numbers: list[int] = []
        """In the order in which they came."""
        self.over = threading.Event()
        self._messages = messages
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": unique("oracle"),
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 2_000,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="committed-reader")
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1_000, 0.2):
                if message.error() is None:
                    self.numbers.append(int(message.value() or b""))
            if len(self.numbers) >= self._messages:
                self.over.set()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()


class Copying:
    """One copy, with faults in its midst."""

    def __init__(
        self, cluster: RealCluster, messages: int, *, by: str = "partition", per_s: int = 5_000, counts: bool = True
    ) -> None:
        self._cluster, self._messages, self._by, self._per_s, self._counts = cluster, messages, by, per_s, counts
        self.source, self.copy = unique("copy-from"), unique("copy-to")
        for topic in (self.source, self.copy):
            cluster.create_topic(topic, PARTITIONS)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            for number in range(messages):
                producer.produce(self.source, b"%d" % number, key=b"%d" % (number % KEYS))
            assert producer.flush(120)
        self.kills = self.bounces = self.freezes = 0
        self.rows: dict[int, int] = {}
        """The rows of the app's table in the end."""

    def run(self, faults: Sequence[str], every_s: float, within_s: float) -> tuple[list[int], list[int]]:
        """Copies with faults, and returns the numbers that the two readers saw.

        Faults come one after the other: `kill`, `stop`, `freeze` (a process), `bounce`, `crash` (a broker). `within_s`
        is the time for which nothing may be copied after the last of them.
        """
        meanwhile = CommittedReader(self._cluster.bootstrap_servers, self.copy, self._messages)
        processes = [self._start(), self._start()]
        try:
            for number, fault in enumerate(faults):
                if meanwhile.over.wait(every_s):
                    break
                self._do(fault, processes, number % len(processes))
            self._wait_for_the_rest(meanwhile, processes, within_s)
            if not meanwhile.over.is_set():
                self._look_at_the_broker(processes)
                outputs = "\n\n".join(process.output for process in processes)
                raise AssertionError(f"the copy has stopped, and the broker holds nothing up:\n{outputs}")
            # What would come twice comes now: nothing is left to copy.
            for process in processes:
                process.signal(signal.SIGTERM)
                code = process.wait()
                assert code == 0, f"{code}: {process.output}"
        finally:
            for process in processes:
                process.__exit__(None, None, None)
            meanwhile.stop()
        after = CommittedReader(self._cluster.bootstrap_servers, self.copy, self._messages)
        after.over.wait(60)
        after.stop()
        if self._counts:
            self.rows = self._read_rows()
        return meanwhile.numbers, after.numbers

    def _read_rows(self) -> dict[int, int]:
        """Returns the rows of the app's table, as another client reads its changelog: the number of messages by key."""
        settings = {"bootstrap.servers": self._cluster.bootstrap_servers, "group.id": self.source, "log_level": 0}
        more = {"isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**settings, **more})
        found: dict[int, int] = {}
        at_end: set[int] = set()
        try:
            consumer.assign([confluent_kafka.TopicPartition(CHANGELOG, each, 0) for each in range(PARTITIONS)])
            while len(at_end) < PARTITIONS:
                message = consumer.poll(60)
                assert message is not None, f"partitions {at_end} have ended"
                if message.error() is None:
                    found[int(message.key() or b"")] = int(message.value() or b"")
                else:
                    at_end.add(message.partition() or 0)
        finally:
            consumer.close()
        return found

    def _wait_for_the_rest(self, reader: CommittedReader, processes: list[Process], within_s: float) -> None:
        """Ends with the copy's last message, or when the copy stands still for `within_s`: how fast it goes is free."""
        seen, deadline_s = -1, 0.0
        while not reader.over.wait(0.5):
            if len(reader.numbers) != seen:
                seen, deadline_s = len(reader.numbers), time.monotonic() + within_s
            if time.monotonic() > deadline_s or any(HELD_UP in process.output for process in processes):
                return
            assert any(process.is_running for process in processes), processes[0].output

    def _look_at_the_broker(self, processes: list[Process]) -> None:
        """Asks the broker by another client than awoke's, while nothing runs that could hold offsets up.

        Raises:
            BrokerHoldsUp: The broker still holds them up.
        """
        for process in processes:
            process.__exit__(None, None, None)
        elapse(OVER_S, "every transaction has timed out")
        try:
            answered, stable = self._ask("read_committed")
            _, ends = self._ask("read_uncommitted")
        except confluent_kafka.KafkaException as error:
            raise BrokerHoldsUp(f"{error}\n{processes[0].output}") from None
        if any(error is not None for error in answered) or stable != ends:
            raise BrokerHoldsUp(f"{answered}, {stable} of {ends}\n{processes[0].output}")

    def _ask(self, isolation: str) -> tuple[Sequence[object], list[int]]:
        """Returns the errors of the source's committed offsets, and the ends of the copy's partitions."""
        settings = {"bootstrap.servers": self._cluster.bootstrap_servers, "group.id": self.source}
        consumer = confluent_kafka.Consumer({**settings, "isolation.level": isolation, "log_level": 0})
        try:
            places = [confluent_kafka.TopicPartition(self.source, each) for each in range(PARTITIONS)]
            errors = [place.error for place in consumer.committed(places, 15)]
            copies = [confluent_kafka.TopicPartition(self.copy, each) for each in range(PARTITIONS)]
            return errors, [consumer.get_watermark_offsets(copy, 15)[1] for copy in copies]
        finally:
            consumer.close()

    def _do(self, fault: str, processes: list[Process], which: int) -> None:
        if fault == "freeze":
            processes[which].signal(signal.SIGSTOP)
            elapse(FROZEN_S, "longer than its session and its transaction last: it wakes up as a zombie")
            processes[which].signal(signal.SIGCONT)
            self.freezes += 1
        elif fault in ("kill", "stop"):
            processes[which].signal(signal.SIGKILL if fault == "kill" else signal.SIGTERM)
            processes[which].wait()
            processes[which].__exit__(None, None, None)
            processes[which] = self._start()
            self.kills += 1
        else:
            # A start may give up while no broker answers.
            for process in processes:
                process.says("app.started")
            end = self._cluster.kafka.stop_broker if fault == "bounce" else self._cluster.kafka.kill_broker
            end(1)
            self._cluster.kafka.start_broker(1)
            self.bounces += 1

    def _start(self) -> Process:
        env = {
            "COPY_FROM": self.source,
            "COPY_TO": self.copy,
            "COPY_BY": self._by,
            "COPY_PER_S": str(self._per_s),
            "AWOKE_GROUP": self.source,
            "COPY_COUNTS": "1" if self._counts else "",
        }
        kafka = [word for each in KAFKA for word in ("--kafka", each)]
        servers = self._cluster.bootstrap_servers
        process = Process("run", "tests.scenarios.copy_app:app", "--bootstrap-servers", servers, *kafka, env=env)
        process.__enter__()
        return process


def out_of_order(numbers: Sequence[int]) -> int:
    """Returns how often a message of a key came before an earlier one."""
    last: dict[int, int] = defaultdict(lambda: -1)
    count = 0
    for number in numbers:
        count += number <= last[number % KEYS]
        last[number % KEYS] = number
    return count
