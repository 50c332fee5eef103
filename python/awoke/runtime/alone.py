"""Sends records one to a batch: a broker that refuses a batch as too large does not say which record is at fault.

Dead letters go this way at once, and results that were refused in company: what is refused here is refused for its own sake.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from awoke._native import DeliveryHandle
from awoke.dead_letter import producer_properties
from awoke.errors import TOO_LARGE_CODE, ClosedError, DeliveryFailed
from awoke.message import RecordOptions
from awoke.producer import Producer

if TYPE_CHECKING:
    from awoke.app import App

IDLE_AFTER_S = 60.0
"""What is refused, or exhausted, is rare: the connection does not stay open for it."""


class AloneProducer:
    """A producer with a connection of its own, made on first use. Any thread."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._is_closed = False

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> DeliveryHandle:
        """Send a record in a batch of its own; as `Producer.produce`."""
        return self._ready().produce(topic, value, **options)

    def close(self, timeout_s: float) -> int:
        """Send what is queued and end; how many records were not delivered. Blocks up to `timeout_s`."""
        with self._lock:
            producer, self._producer, self._is_closed = self._producer, None, True
        return 0 if producer is None else producer.close(timeout_s)

    def _ready(self) -> Producer:
        with self._lock:
            if self._is_closed:
                raise ClosedError("this producer is closed")
            if self._producer is None:
                settings = self._app.settings
                settings = msgspec.structs.replace(settings, kafka=properties_of(settings.kafka))
                self._producer = Producer(
                    settings=settings,
                    events=self._app.events,
                    idle_after_s=IDLE_AFTER_S,
                    middleware=self._app.middleware,
                    codec=self._app.codec,
                )
            return self._producer


def properties_of(kafka: Mapping[str, str]) -> dict[str, str]:
    """Returns librdkafka's properties for records that go alone."""
    return {**kafka, **producer_properties(kafka), "batch.num.messages": "1"}


def is_refused_in_company(error: BaseException) -> bool:
    """Whether a broker refused a batch for its size, so that the record itself may be taken when it is sent alone."""
    return isinstance(error, DeliveryFailed) and error.code == TOO_LARGE_CODE
