"""Reads the messages of topics for a test: each topic by one reader, which goes on where it has stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from awoke._native import Message
from awoke.declare.reader import Reader, next_messages
from awoke.settings import KafkaValue
from awoke.testing.records import SentMessage
from awoke.waiting.drive import drive

QUICK_END: Mapping[str, KafkaValue] = {"fetch.wait.max.ms": 10}
"""Brokers answer a fetch at the end of a partition after this time: only then is the end known."""


class OutputReaders:
    """The messages of topics, from the first one. One thread at a time."""

    def __init__(self, bootstrap_servers: str, kafka: Mapping[str, KafkaValue]) -> None:
        self._bootstrap_servers, self._kafka = bootstrap_servers, {**kafka, **QUICK_END}
        self._readers: dict[str, Reader] = {}
        self._read: dict[str, list[SentMessage]] = {}

    def wait_for(self, topic: str, count: int, timeout_s: float) -> list[SentMessage]:
        """Returns the first messages of a topic, in order within each partition, when there are `count`. Blocks.

        Raises:
            AssertionError: There are fewer within `timeout_s`; names those that there are.
            UnknownTopic: There is no such topic.
        """
        deadline_s = time.monotonic() + timeout_s
        found = self._read.setdefault(topic, [])
        while len(found) < count:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                shown = "".join(f"\n  {each}" for each in found)
                raise AssertionError(f"{topic}: {len(found)} of {count} messages within {timeout_s:g} s{shown}")
            found += [sent_message(each) for each in drive(next_messages(self._reader(topic), left_s))]
        return found[:count]

    def all(self, topic: str, timeout_s: float) -> list[SentMessage]:
        """Returns the messages that a topic has now. Blocks.

        Raises:
            OperationTimeout: The end of the topic was not reached within `timeout_s`. UnknownTopic.
        """
        with self._new_reader(topic) as reader:
            return [sent_message(each) for each in reader.read_until_end(timeout_s)]

    def _reader(self, topic: str) -> Reader:
        if topic not in self._readers:
            self._readers[topic] = self._new_reader(topic)
        return self._readers[topic]

    def _new_reader(self, topic: str) -> Reader:
        # From offset 0, where a test's topics begin: the reader need not ask for the first offset.
        return Reader(topic, bootstrap_servers=self._bootstrap_servers, start=0, kafka=self._kafka)

    def close(self) -> None:
        """Closes the readers. Blocks."""
        readers, self._readers = self._readers, {}
        for each in readers.values():
            each.close()


def sent_message(message: Message[Any, Any]) -> SentMessage:
    """Returns a message that keeps no memory of its batch."""
    return SentMessage(
        message.topic, message.partition, message.offset, message.key, message.value, tuple(message.headers)
    )
