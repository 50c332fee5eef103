"""Sending messages: every one gives a delivery handle, to be waited for, awaited, or dropped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

from awoke import _native, origins, serde
from awoke._native import DeliveryHandle
from awoke._waiting import Delivery
from awoke.errors import ConfigError, DeliveryTimeout
from awoke.events import Events, EventSource
from awoke.middleware import Headers, Middleware, Outgoing, through
from awoke.oauth import TokenFunction
from awoke.settings import KafkaValue, Settings, client_properties, load, properties_of
from awoke.transaction import Transaction


class Record(NamedTuple):
    """A record to be sent, for `produce_many`, and for handlers of routes with an output to return."""

    value: Any
    key: bytes | str | None = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class Producer(_native.Producer):
    """Takes messages in and gives a delivery handle for each. Usable from any number of threads and event loops.

    A context manager: leaving it flushes and closes.

    With a `transactional_id` it sends within transactions only (see `transaction`); an older producer of the same id is
    fenced. With `idle_after_s` it closes its connection when nothing was sent for one to two times as long, and opens
    it again when something is. What it sends goes through the functions of `middleware`, in their order.

    Raises:
        ConfigError: a property that librdkafka does not know, or a value that it does not accept.
    """

    _source: EventSource
    _middleware: Sequence[Middleware]
    _turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]

    def __new__(
        cls,
        bootstrap_servers: str | None = None,
        *,
        kafka: Mapping[str, KafkaValue] | None = None,
        transactional_id: str | None = None,
        idle_after_s: float | None = None,
        middleware: Sequence[Middleware] = (),
        oauth_token: TokenFunction | None = None,
        settings: Settings | None = None,
        events: Events | None = None,
    ) -> Self:
        arguments = {"bootstrap_servers": bootstrap_servers, "kafka": kafka, "oauth_token": oauth_token}
        settings = settings or load(arguments).values
        properties = client_properties(settings)
        if "transactional.id" in properties:
            raise ConfigError("say transactional_id=…, not kafka={'transactional.id': …}", "transactional.id")
        if transactional_id is not None:
            if not transactional_id:
                raise ConfigError("a transactional_id must not be empty", "transactional_id")
            properties["transactional.id"] = transactional_id
        if idle_after_s is not None and idle_after_s <= 0:
            raise ConfigError(f"idle_after_s must be more than 0, not {idle_after_s}", "idle_after_s")
        if middleware and not issubclass(cls, _Shaping):
            cls = type(cls.__name__, (_Shaping, cls), {})  # Without middleware nothing of it costs anything.
        source = EventSource(events)
        try:
            with origins.named():
                producer = super().__new__(
                    cls, properties, serde.encode, settings.produce_timeout_s, idle_after_s, source.box
                )
        except BaseException:
            source.close()
            raise
        producer._source = source
        producer._middleware = tuple(middleware)
        producer._turns = WeakKeyDictionary()
        return producer

    def transaction(self, timeout_s: float | None = None) -> Transaction:
        """Messages that are seen together or not at all.

        ```python
        with producer.transaction() as t:
            t.produce("orders", order)
            t.produce("stock", change)
        ```

        To begin waits for the transaction before, and for the broker, up to `timeout_s` (None: `produce_timeout_s`); so
        does the commit (None: `transaction.timeout.ms`). Both block, or, under `async with`, await. Any thread, any
        event loop.

        Raises, at the begin:
            ConfigError: the producer has no transactional_id; OperationTimeout: no turn in time; KafkaError: no answer of the
            broker; ProducerFenced: another producer has the transactional_id; ClosedError; ForkedClientError.
        Raises, at the end:
            TransactionAborted: nothing will be seen; TransactionInDoubt: nobody knows; ProducerFenced.
        """
        return Transaction(self, self._middleware, self._turns, timeout_s)

    def variant(self, **kafka: KafkaValue) -> Variant:
        """The same producer and connection, under other settings of topics: `variant(acks=1, compression_type="lz4")`.

        Names are librdkafka's, with `_` for dots. librdkafka keeps one set of them for a topic and a connection: a
        topic that was sent to under one set is refused under another.

        Raises:
            ConfigError: a property that topics do not have, or a value that librdkafka does not accept.
        """
        properties = properties_of({name.replace("_", "."): value for name, value in kafka.items()}, "variant")
        return Variant(self, _native.Variant(properties))

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


class _Shaping(Producer):
    """A producer whose messages go through middleware first."""

    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
        variant: _native.Variant | None = None,
    ) -> DeliveryHandle:
        message = through(self._middleware, Outgoing(topic, value, key, headers, partition, timestamp_ms))
        return super().produce(
            message.topic,
            message.value,
            key=message.key,
            headers=message.headers,
            partition=message.partition,
            timestamp_ms=message.timestamp_ms,
            timeout_s=timeout_s,
            variant=variant,
        )

    def produce_many(
        self,
        topic: str,
        messages: Iterable[Any],
        *,
        timeout_s: float | None = None,
        variant: _native.Variant | None = None,
    ) -> list[DeliveryHandle]:
        return [
            self.produce(topic, **record_of(message)._asdict(), timeout_s=timeout_s, variant=variant)
            for message in messages
        ]


class Variant:
    """A producer under other settings of topics; made by `Producer.variant`."""

    def __init__(self, producer: Producer, settings: _native.Variant) -> None:
        self._producer, self._settings = producer, settings

    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
    ) -> DeliveryHandle:
        """Send a message; as `Producer.produce`.

        Raises:
            ConfigError: the topic was sent to under other settings before; else as `Producer.produce`.
        """
        return self._producer.produce(
            topic,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp_ms,
            timeout_s=timeout_s,
            variant=self._settings,
        )

    def produce_many(
        self, topic: str, messages: Iterable[Any], *, timeout_s: float | None = None
    ) -> list[DeliveryHandle]:
        """Send messages in order; as `Producer.produce_many`."""
        return self._producer.produce_many(topic, messages, timeout_s=timeout_s, variant=self._settings)


def record_of(message: Any) -> Record:
    """A message of `produce_many`: a `Record`, a pair of value and key, or a value alone."""
    if type(message) is Record:
        return message
    return Record(*message) if type(message) is tuple else Record(message)


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
