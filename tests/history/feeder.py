"""Writes unique values with keys to a topic, by a client that is not awoke's, and records which were acknowledged."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka

from tests.history.settings import KEYS, PARTITIONS
from tests.support.judge import Log

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
    """A thread that produces at a steady rate until it is closed.

    `number` tells the topics of a run apart: no two have a key in common.
    """

    def __init__(self, servers: str, topic: str, per_s: int, number: int = 0) -> None:
        self._servers, self.topic, self._burst = servers, topic, max(1, round(per_s * EVERY_S))
        self.acknowledged: list[set[bytes]] = [set()]
        """Values, by incarnation of the topic."""
        self.deleted: list[Log] = []
        """The log of each incarnation but the last, when it was deleted."""
        self._next = dict.fromkeys(range(number * KEYS, (number + 1) * KEYS), 0)
        self._keys = itertools.cycle(self._next)
        self._lock = threading.Lock()
        """Held while messages are produced, and to change what follows."""
        self._may_run = False
        self._is_closed = threading.Event()
        self._producer = self._connect()
        self._thread = threading.Thread(target=self._run, name="history-feeder")

    def pause(self) -> None:
        """Stop producing; returns when all that was produced is acknowledged, or has failed. Again does nothing."""
        with self._lock:
            if not self._may_run:
                return
            self._may_run = False
        left = self._producer.flush(FLUSH_WITHIN_S)
        assert left == 0, f"{left} messages are not answered"
        self._producer.close()

    def resume(self, deleted: Log | None = None) -> None:
        """Go on after a pause, with a new client: an old one may expect the log to be what it was.

        Where the topic was made again, `deleted` is the log that it had before.
        """
        if deleted is not None:
            self.deleted.append(deleted)
            self.acknowledged.append(set())
        with self._lock:
            self._producer = self._connect()
            self._may_run = True

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
        key = next(self._keys)
        value = value_of(key, self._next[key])
        self._next[key] += 1
        on_delivery = self._on_delivery(value, self.acknowledged[-1])
        self._producer.produce(self.topic, value, b"%d" % key, key % PARTITIONS, on_delivery=on_delivery)

    @staticmethod
    def _on_delivery(value: bytes, acknowledged: set[bytes]) -> Callable[[Any, Any], None]:
        def note(error: Any, _: Any) -> None:
            if error is None:
                acknowledged.add(value)

        return note

    def start(self) -> None:
        """Begin to produce."""
        self._may_run = True
        self._thread.start()

    def close(self) -> None:
        """End the thread. Closing again does nothing."""
        self._is_closed.set()
        self._thread.join()
        if self._may_run:  # It was not paused, so a fault of the run's own ends it.
            self._may_run = False
            self._producer.close()
