"""Reads topics without a consumer group: from offsets or the ends, until the end or for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType

from awoke import _native
from awoke._native import Message
from awoke.admin import Admin
from awoke.errors import ConfigError, OperationTimeout
from awoke.events import EventSource
from awoke.settings import KafkaValue, client_properties, load


class Reader:
    """Messages of whole topics, each partition in order. One thread may read at a time.

    `start` is `"earliest"`, `"latest"`, a negative number for the last so many messages of each partition, or an offset.

    Raises:
        UnknownTopic: a topic does not exist.
        BrokerUnreachable: no broker answered.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        *,
        bootstrap_servers: str | None = None,
        start: str | int = "earliest",
        kafka: Mapping[str, KafkaValue] | None = None,
    ) -> None:
        settings = load({"bootstrap_servers": bootstrap_servers, "kafka": kafka}).values
        names = [topics] if isinstance(topics, str) else list(topics)
        where, number = _start(start)
        with Admin(settings=settings) as admin:
            found = [admin.describe_topic(name, settings.startup_timeout_s) for name in names]
        starts = [(topic.name, each.partition, where, number) for topic in found for each in topic.partitions]
        self._at_end: set[tuple[str, int]] = set()
        self._partitions = {(topic, partition) for topic, partition, _, _ in starts}
        self._source = EventSource()
        try:
            self._native = _native.Reader(client_properties(settings), starts, self._source.box)
        except BaseException:
            self._source.close()
            raise

    def __iter__(self) -> Iterator[Message[bytes | None]]:
        """Messages for ever. Blocks while there is none; Ctrl-C ends the wait on the main thread."""
        while True:
            yield from self._next(None)

    def read_until_end(self, timeout_s: float | None = None) -> Iterator[Message[bytes | None]]:
        """Messages until every partition has been read to its end.

        Raises:
            OperationTimeout: the ends were not reached within `timeout_s`.
        """
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while self._at_end != self._partitions:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            if left_s == 0.0:
                raise OperationTimeout(
                    f"read to the end: not there within {timeout_s} s", "read to the end", timeout_s or 0
                )
            yield from self._next(left_s)

    def _next(self, timeout_s: float | None) -> Iterator[Message[bytes | None]]:
        found = self._native.next(timeout_s)
        if found is None:
            return
        if isinstance(found, tuple):
            self._at_end.add(found)
            return
        self._at_end.discard((found.topic, found.partition))
        yield from found

    def close(self) -> None:
        """Stop reading; a thread that waits gets ClosedError. Closing again does nothing."""
        self._native.close()
        self._source.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _start(start: str | int) -> tuple[str, int]:
    if isinstance(start, int):
        return ("last", -start) if start < 0 else ("offset", start)
    if start in {"earliest", "latest"}:
        return start, 0
    raise ConfigError(f"a reader starts at 'earliest', 'latest' or a number, not {start!r}", "start")
