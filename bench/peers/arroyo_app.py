"""A stream processor of sentry-arroyo: `RunTask`, then `Produce` where there is an output, then `CommitOffsets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arroyo import Message, Topic  # type: ignore[import-not-found]
from arroyo.backends.kafka import (  # type: ignore[import-not-found]
    KafkaConsumer,
    KafkaPayload,
    KafkaProducer,
    build_kafka_configuration,
    build_kafka_consumer_configuration,
)
from arroyo.commit import ONCE_PER_SECOND  # type: ignore[import-not-found]
from arroyo.processing import StreamProcessor  # type: ignore[import-not-found]
from arroyo.processing.strategies import CommitOffsets, Produce, RunTask  # type: ignore[import-not-found]

from bench.peers.common import Counter, Task, task


class Factory:
    """Makes the steps of a partition assignment."""

    def __init__(self, given: Task) -> None:
        self._given, self._counter = given, Counter(given.messages, ends_process=not given.output)
        servers = build_kafka_configuration({}, bootstrap_servers=[given.bootstrap_servers])
        self._producer = KafkaProducer(servers) if given.output else None

    def create_with_partitions(self, commit: Any, partitions: Mapping[Any, int]) -> Any:
        """Returns the first step."""
        last: Any = CommitOffsets(commit)
        if self._producer is not None:
            last = Produce(self._producer, Topic(self._given.output), last)

        def handle(message: Message[KafkaPayload]) -> KafkaPayload:
            self._counter.count()
            return message.payload

        return RunTask(handle, last)

    def shutdown(self) -> None:
        """Does nothing: the process is ended from outside."""


def main() -> None:
    """Runs the processor until the process is ended."""
    given = task()
    consumer = KafkaConsumer(
        build_kafka_consumer_configuration(
            {}, bootstrap_servers=[given.bootstrap_servers], auto_offset_reset="earliest", group_id=given.group
        )
    )
    StreamProcessor(consumer, Topic(given.topic), Factory(given), ONCE_PER_SECOND).run()


if __name__ == "__main__":
    main()
