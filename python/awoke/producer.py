"""Sending messages: every one gives a delivery handle, to be waited for, awaited, or dropped."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from awoke import _native, serde
from awoke._native import DeliveryHandle
from awoke._waiting import Delivery
from awoke.errors import DeliveryTimeout
from awoke.events import Events, EventSource
from awoke.settings import KafkaValue, Settings, client_properties, load

Headers = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]


class Record(NamedTuple):
    """A message to be sent, for `produce_many`."""

    value: Any
    key: bytes | str | None = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class Producer(_native.Producer):
    """Takes messages in and gives a delivery handle for each. Usable from any number of threads and event loops.

    A context manager: leaving it flushes and closes.

    Raises:
        ConfigError: a property that librdkafka does not know, or a value that it does not accept.
    """

    _source: EventSource

    def __new__(
        cls,
        bootstrap_servers: str | None = None,
        *,
        kafka: Mapping[str, KafkaValue] | None = None,
        settings: Settings | None = None,
        events: Events | None = None,
    ) -> Self:
        settings = settings or load({"bootstrap_servers": bootstrap_servers, "kafka": kafka}).values
        source = EventSource(events)
        try:
            producer = super().__new__(
                cls, client_properties(settings), serde.encode, settings.produce_timeout_s, source.box
            )
        except BaseException:
            source.close()
            raise
        producer._source = source
        return producer

    def produce_many(
        self, topic: str, messages: Iterable[Any], *, timeout_s: float | None = None
    ) -> list[DeliveryHandle]:
        """Send messages in order; one handle for each.

        A message is a `Record`, a pair of value and key, or a value alone. Blocks while the queue is full, for each
        message as long as `timeout_s`; on an error the messages before it have been sent.

        Raises:
            QueueFull, MessageTooLarge, EncodeError, KafkaError, ClosedError, ForkedClientError: as `produce`.
        """
        produce = super().produce
        handles = []
        for message in messages:
            if type(message) is Record:
                value, key, headers, partition, timestamp_ms = message
                handle = produce(
                    topic,
                    value,
                    key=key,
                    headers=headers,
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                    timeout_s=timeout_s,
                )
            elif type(message) is tuple:
                value, key = message
                handle = produce(topic, value, key=key, timeout_s=timeout_s)
            else:
                handle = produce(topic, message, timeout_s=timeout_s)
            handles.append(handle)
        return handles

    def close(self, timeout_s: float | None = None) -> int:
        """Send what is queued, wait for the answers, and end; how many messages were not delivered.

        Blocks up to `timeout_s` (None: `delivery.timeout.ms`); handles that are not answered by then fail. Closing again
        does nothing.

        Raises:
            ForkedClientError: the producer was made in another process.
        """
        try:
            return super().close(timeout_s)
        finally:
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wait_all(handles: Iterable[DeliveryHandle], timeout_s: float | None = None) -> list[Delivery]:
    """Wait until all handles are answered; where each message went, in their order.

    Blocks the calling thread, which is woken once for all of them. None waits for `delivery.timeout.ms`.

    Raises:
        DeliveryTimeout: not all were answered within `timeout_s`; the messages may still arrive.
        DeliveryFailed: the first that was refused; all have been answered.
    """
    handles = list(handles)
    began_s = time.monotonic()
    if not _native.wait_all(handles, timeout_s):
        waited_s = time.monotonic() - began_s
        missing = sum(not handle.done() for handle in handles)
        operation = f"produce {len(handles)} messages"
        text = f"{operation}: {missing} had no answer within {waited_s:.3f} s; they may still arrive"
        raise DeliveryTimeout(text, operation, waited_s)
    return [handle.result() for handle in handles]
