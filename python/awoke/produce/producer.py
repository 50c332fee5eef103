"""Producers: each message that is sent gives a delivery handle, to be waited for, awaited, or dropped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack
from weakref import WeakKeyDictionary

from awoke import _native
from awoke._native import DeliveryHandle
from awoke.errors import ConfigError, DeliveryTimeout
from awoke.observe.events import Events, EventSource
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import Format, checked_default
from awoke.payloads.message import ProduceOptions
from awoke.payloads.registry.schemas import Schemas, schemas_of
from awoke.payloads.topic_formats import TopicFormats
from awoke.preconditions import checks
from awoke.produce.middleware import Middleware, joined
from awoke.produce.transaction import Transaction
from awoke.settings import KafkaValue, Settings, client_properties, load, origins, properties_of
from awoke.settings.oauth import TokenFunction
from awoke.waiting.handles import Delivery


class ProducerOptions(TypedDict, total=False):
    """The options of a producer."""

    kafka: Mapping[str, KafkaValue] | None
    """librdkafka's properties."""
    transactional_id: str | None
    """It sends within transactions only (see `Producer.transaction`); an older producer of the same id is fenced."""
    idle_after_s: float | None
    """It closes its connection when nothing was sent for one to two times as long, and opens it again when needed."""
    middleware: Sequence[Middleware]
    """Each message passes these functions, in their order."""
    format: Format
    """Writes values that are neither bytes, text nor None; left out, protobuf's classes write themselves, and all
    others are JSON."""
    topics: Sequence[str] | TopicFormats
    """The topics whose keys and values have types: `awoke.Topic("orders", value=awoke.avro(Order))`. Messages to
    another topic have the types of the object that is passed."""
    schemas: Schemas | None
    """The schemas of an app; None for those of the registry in the settings."""
    oauth_token: TokenFunction | None
    """Returns the tokens for `sasl.mechanism=OAUTHBEARER`."""
    settings: Settings | None
    """All settings, instead of `bootstrap_servers`, `kafka`, `oauth_token` and those of the environment."""
    events: Events | None
    """Gets the events of the producer."""


class Producer(_native.Producer):
    """Sends messages and gives a delivery handle for each. Any number of threads and event loops may use one.

    A context manager: leaving it flushes and closes. The options are those of `ProducerOptions`.

    Raises:
        ConfigError: An unknown property of librdkafka, a value that it does not accept, or a wrong option.
        TypeError: An unknown option.
    """

    has_middleware: bool
    """True if its messages pass middleware, or are encoded by the types of their topics."""
    formats: TopicFormats
    """The formats of its topics."""
    _source: EventSource
    _middleware: Sequence[Middleware]
    _turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]
    _schemas: Schemas | None
    """Those that it has opened itself."""

    def __new__(cls, bootstrap_servers: str | None = None, **options: Unpack[ProducerOptions]) -> Self:
        checks.options("Producer", options, ProducerOptions)
        default = checked_default(options.get("format", BY_TYPE))
        settings = options.get("settings") or _settings_of(bootstrap_servers, options)
        properties = _properties_of(settings, options.get("transactional_id"))
        idle_after_s = options.get("idle_after_s")
        if idle_after_s is not None and idle_after_s <= 0:
            raise ConfigError(f"idle_after_s must be more than 0, not {idle_after_s}", "idle_after_s")
        middleware = tuple(options.get("middleware", ()))
        own_schemas = None
        formats = options.get("topics", ())
        if not isinstance(formats, TopicFormats):
            schemas = options.get("schemas") or (own_schemas := schemas_of(settings))
            formats = TopicFormats(formats, default, schemas)
        typed: Sequence[Middleware] = (*middleware, formats)
        source = EventSource(options.get("events"))
        try:
            with origins.named():
                self = super().__new__(
                    cls,
                    properties,
                    default.encode,
                    settings.produce_timeout_s,
                    idle_after_s,
                    source.box,
                    middleware=joined(typed) if middleware or formats else None,
                    typed=joined(typed),
                )
        except BaseException:
            source.close()
            if own_schemas is not None:
                own_schemas.close()
            raise
        self.has_middleware, self.formats = bool(middleware or formats), formats
        self._source, self._middleware, self._schemas = source, middleware, own_schemas
        self._turns = WeakKeyDictionary()
        return self

    def transaction(self, timeout_s: float | None = None) -> Transaction:
        """Returns a transaction, whose messages readers of committed messages see together or not at all.

        ```python
        with producer.transaction() as t:
            t.produce("orders", order)
            t.produce("stock", change)
        ```

        The begin waits for the transaction before it, and for the broker, up to `timeout_s` (None:
        `produce_timeout_s`). The commit waits as long (None: `transaction.timeout.ms`). Both block, or await under
        `async with`. Any thread, any event loop.

        Raises, at the begin:
            ConfigError: the producer has no transactional_id; OperationTimeout: the transaction before it did not end
            in time; KafkaError: no answer of the broker; ProducerFenced: another producer has the transactional_id;
            ClosedError; ForkedClientError.
        Raises, at the end:
            TransactionAborted: no reader will see it; TransactionInDoubt: the outcome is unknown; ProducerFenced.
        """
        return Transaction(self, self._middleware, self.formats, self._turns, timeout_s)

    def variant(self, **kafka: KafkaValue) -> Variant:
        """Returns the same producer and connection with other properties of topics.

        An example is `variant(acks=1, compression_type="lz4")`. Names are librdkafka's, with `_` for dots. librdkafka
        keeps one set of properties for a topic and a connection: a topic that was sent to under one set is refused
        under another.

        Raises:
            ConfigError: a property that topics do not have, or a value that librdkafka does not accept.
        """
        properties = properties_of({name.replace("_", "."): value for name, value in kafka.items()}, "variant")
        return Variant(self, _native.Variant(properties))

    def close(self, timeout_s: float | None = None) -> int:
        """Sends what is queued, waits for the answers, and ends. Returns the number of undelivered messages.

        Blocks up to `timeout_s` (None: `delivery.timeout.ms`); handles that are not answered by then fail. Closing
        again does nothing.

        Raises:
            ForkedClientError: the producer was made in another process.
        """
        try:
            return super().close(timeout_s)
        finally:
            self._source.close()
            if self._schemas is not None:
                self._schemas.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _settings_of(bootstrap_servers: str | None, options: ProducerOptions) -> Settings:
    given = {"kafka": options.get("kafka"), "oauth_token": options.get("oauth_token")}
    return load({"bootstrap_servers": bootstrap_servers, **given}).values


def _properties_of(settings: Settings, transactional_id: str | None) -> dict[str, str]:
    properties = client_properties(settings)
    if "transactional.id" in properties:
        raise ConfigError("set transactional_id=…, not kafka={'transactional.id': …}", "transactional.id")
    if transactional_id is not None:
        if not transactional_id:
            raise ConfigError("a transactional_id must not be empty", "transactional_id")
        properties["transactional.id"] = transactional_id  # A copy would lose the source of tokens.
    return properties


class Variant:
    """A producer with other properties of topics; made by `Producer.variant`. Any thread."""

    def __init__(self, producer: Producer, settings: _native.Variant) -> None:
        self._producer, self._settings = producer, settings

    def produce(self, topic: str, value: Any, **options: Unpack[ProduceOptions]) -> DeliveryHandle:
        """Sends a message, as `Producer.produce` does.

        Raises:
            ConfigError: the topic was sent to under other settings before; else as `Producer.produce`.
        """
        return self._producer.produce(topic, value, **options, variant=self._settings)

    def produce_many(
        self, topic: str, messages: Iterable[Any], *, timeout_s: float | None = None
    ) -> list[DeliveryHandle]:
        """Sends messages in order, as `Producer.produce_many` does."""
        return self._producer.produce_many(topic, messages, timeout_s=timeout_s, variant=self._settings)


def wait_all(handles: Iterable[DeliveryHandle], timeout_s: float | None = None) -> list[Delivery]:
    """Waits until all handles are answered. Returns where each message went, in their order.

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


def sends_directly(producer: object) -> bool:
    """Tells whether the engine sends what `produce` gets as it is: no middleware, and no class that user code
    derives."""
    return type(producer) is Producer and not producer.has_middleware
