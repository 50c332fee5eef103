"""Writes unique values with keys to the input, by a client that is not awoke's, and records which were acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka

from tests.history.settings import KEYS, PARTITIONS

EVERY_S = 0.02
FLUSH_WITHIN_S = 90.0


def value_of(key: int, sequence: int) -> bytes:
    """A value that no other message has."""
    return b"%d:%d" % (key, sequence)


def key_and_sequence(value: bytes) -> tuple[int, int]:
    """The arguments of `value_of`."""
    key, sequence = value.split(b":")
    return int(key), int(sequence)


class Feeder:
    """A thread that produces at a steady rate until it is closed. A context manager."""

    def __init__(self, servers: str, topic: str, per_s: int) -> None:
        self._servers, self._topic, self._burst = servers, topic, max(1, round(per_s * EVERY_S))
        self.acknowledged: list[set[bytes]] = [set()]
        """Values, by incarnation of the topic."""
        self.sent = 0
        self._next = [0] * KEYS
        self._turn = 0
        self._lock = threading.Lock()
        """Held while messages are produced, and to change what follows."""
        self._may_run = False
        self._is_closed = threading.Event()
        self._producer = self._connect()
        self._thread = threading.Thread(target=self._run, name="history-feeder")

    def pause(self) -> None:
        """Stop producing; returns when all that was produced is acknowledged, or has failed."""
        with self._lock:
            self._may_run = False
        left = self._producer.flush(FLUSH_WITHIN_S)
        assert left == 0, f"{left} messages are not answered"
        self._producer.close()

    def resume(self, *, has_new_topic: bool = False) -> None:
        """Go on after a pause, with a new client: an old one may expect the log to be what it was."""
        if has_new_topic:
            self.acknowledged.append(set())
        with self._lock:
            self._producer = self._connect()
            self._may_run = True

    def was_sent(self, value: bytes) -> bool:
        """Tells whether a value is one of those that were produced."""
        key, sequence = key_and_sequence(value)
        return sequence < self._next[key]

    def _connect(self) -> confluent_kafka.Producer:
        return confluent_kafka.Producer(
            {
                "bootstrap.servers": self._servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )

    def _run(self) -> None:
        while not self._is_closed.wait(EVERY_S):
            with self._lock:
                for _ in range(self._burst if self._may_run else 0):
                    self._produce()
                if self._may_run:
                    self._producer.poll(0)

    def _produce(self) -> None:
        key, self._turn = self._turn, (self._turn + 1) % KEYS
        value = value_of(key, self._next[key])
        self._next[key] += 1
        self.sent += 1
        on_delivery = self._on_delivery(value, self.acknowledged[-1])
        self._producer.produce(self._topic, value, b"%d" % key, key % PARTITIONS, on_delivery=on_delivery)

    @staticmethod
    def _on_delivery(value: bytes, acknowledged: set[bytes]) -> Callable[[Any, Any], None]:
        def note(error: Any, _: Any) -> None:
            if error is None:
                acknowledged.add(value)

        return note

    def __enter__(self) -> Feeder:
        self._may_run = True
        self._thread.start()
        return self

    def close(self) -> None:
        """End the thread. Closing again does nothing."""
        self._is_closed.set()
        self._thread.join()
        if self._may_run:  # It was not paused, so a fault of the run's own ends it.
            self._may_run = False
            self._producer.close()

    def __exit__(self, *_: object) -> None:
        self.close()
