"""Sends each record in a batch of its own, and one request at a time.

A broker that refuses a batch as too large does not name the record. If it refuses a batch and takes the one behind it,
librdkafka may take the first one for delivered, which is not there. So dead letters are sent this way at once, and
results if they were refused in either way. A record that is refused here is itself the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import msgspec

from awoke._native import DeliveryHandle
from awoke.errors import TOO_LARGE_CODE, UNCONFIRMED_CODE, ClosedError, DeliveryFailed
from awoke.observe.events import Events
from awoke.payloads.dead_letter import producer_properties
from awoke.payloads.formats.format import Format
from awoke.payloads.message import RecordOptions
from awoke.payloads.topic_formats import TopicFormats
from awoke.produce.middleware import Middleware
from awoke.produce.producer import Producer
from awoke.settings import Settings

IDLE_AFTER_S = 60.0
"""Refused and exhausted records are rare: the connection is closed when it was idle for this long."""


class AloneProducer:
    """A producer with a connection of its own, made on first use. Any thread."""

    def __init__(
        self,
        settings: Settings,
        format: Format,
        events: Events,
        middleware: Sequence[Middleware],
        formats: TopicFormats,
    ) -> None:
        self._settings, self._format, self._events = settings, format, events
        self._middleware, self._formats = middleware, formats
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._is_closed = False

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> DeliveryHandle:
        """Sends a record in a batch of its own; as `Producer.produce`."""
        return self._ready().produce(topic, value, **options)

    def close(self, timeout_s: float) -> int:
        """Sends what is queued and closes; returns the number of undelivered records. Blocks up to `timeout_s`."""
        with self._lock:
            producer, self._producer, self._is_closed = self._producer, None, True
        return 0 if producer is None else producer.close(timeout_s)

    def _ready(self) -> Producer:
        with self._lock:
            if self._is_closed:
                raise ClosedError("this producer is closed")
            if self._producer is None:
                settings = msgspec.structs.replace(self._settings, kafka=properties_of(self._settings.kafka))
                self._producer = Producer(
                    settings=settings,
                    events=self._events,
                    idle_after_s=IDLE_AFTER_S,
                    middleware=self._middleware,
                    topics=self._formats,
                    format=self._format,
                )
            return self._producer


def properties_of(kafka: Mapping[str, str]) -> dict[str, str]:
    """Returns librdkafka's properties for batches of one record, and one request at a time."""
    kept = {name: value for name, value in kafka.items() if name != "max.in.flight.requests.per.connection"}
    return {**kept, **producer_properties(kafka), "batch.num.messages": "1", "max.in.flight": "1"}


def is_refused_in_company(error: BaseException) -> bool:
    """Tells whether others may be why a record is not there: a batch that is too large, a later one that was taken.

    Sent alone, the record itself may be accepted.
    """
    return isinstance(error, DeliveryFailed) and error.code in {TOO_LARGE_CODE, UNCONFIRMED_CODE}
