"""The connection of a caller: opened on first use, and closed once.

Opening it checks the service's topics and finds the caller's place on the reply topic. A constructor that did so on an
event loop's thread would block the loop. There `async with`, `await Caller.open(…)` or the first call opens the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import NamedTuple

from awoke import _native
from awoke._native import Signal
from awoke.errors import ClosedError
from awoke.observe.events import Events, EventSource
from awoke.rpc import topics
from awoke.rpc.protocol import LINGER, ServiceTopics
from awoke.settings import Settings, client_properties
from awoke.text.secrets import shown_repr
from awoke.waiting.clock import wait

DELIVERY_TIMEOUT = {"message.timeout.ms": "30000"}
"""A request that was not delivered by then is dropped, and its call, if it still waits, ends with Unavailable."""


class ServiceAddress(NamedTuple):
    """The service that a caller calls, and the caller's bounds, as the engine takes them."""

    calls_topic: str
    replies_topic: str
    group: str
    """Empty: it is not looked up."""
    name: str
    calls_max: int
    bytes_max: int
    reply_bytes_max: int
    secret: bytes | None

    def __repr__(self) -> str:
        return shown_repr(self, self._fields)


class Opening(NamedTuple):
    """Opens a caller."""

    service: str
    settings: Settings
    address: ServiceAddress
    events: Events | None
    creates_topics: bool
    partitions: int

    def open(self) -> tuple[_native.Caller, EventSource]:
        """Connects; returns the engine's caller and its events.

        Blocks up to `startup_timeout_s`, and as long for each topic.

        Raises:
            ConfigError, BrokerUnreachable; UnknownTopic: the service's topics are not there.
        """
        settings, at = self.settings, ServiceTopics.of(self.service)
        if self.creates_topics:
            topics.ensure(settings, at, self.partitions)
        else:
            topics.check(settings, self.service, at)
        source = EventSource(self.events)
        try:
            consuming, timeout_s = client_properties(settings), settings.startup_timeout_s
            native = _native.Caller(self._producing(), consuming, self.address, timeout_s, source.box)
        except BaseException:
            source.close()
            raise
        return native, source

    def _producing(self) -> dict[str, str]:
        # Two names of one property: setting either decides.
        kafka = self.settings.kafka
        is_decided = any(name in kafka for name in ("message.timeout.ms", "delivery.timeout.ms"))
        timeout = {} if is_decided else DELIVERY_TIMEOUT
        return client_properties(self.settings, **{**LINGER, **timeout, **kafka})


class CallerConnection:
    """The engine's caller, and whether it is closed. Any thread, any event loop."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._opening_lock = threading.Lock()
        self._closed = Signal()
        self._source: EventSource | None = None
        self.native: _native.Caller | None = None
        """The engine's caller; None before the first use."""

    def open(self) -> _native.Caller:
        """Returns the engine's caller; opens it on first use, and blocks then.

        Raises:
            ClosedError: the caller was closed before. ConfigError, BrokerUnreachable, UnknownTopic: see `Opening.open`.
        """
        native = self.native
        if native is not None:
            return native
        with self._opening_lock:
            if self.native is None:
                if self.is_closed:
                    raise ClosedError("this caller is closed")
                self.native, self._source = self._opening.open()
            return self.native

    @property
    def is_closed(self) -> bool:
        """True if the caller is closed."""
        return self._closed.is_set()

    def refuse_calls(self) -> None:
        """Ends all pauses, and opens nothing any more. Does not block."""
        self._closed.set()

    def close(self, timeout_s: float) -> None:
        """Ends all calls, back-offs included, and delivers what was sent. Blocks. Closing again does nothing."""
        self.refuse_calls()
        with self._opening_lock:
            if self.native is None:
                return
            try:
                self.native.close(timeout_s)
            finally:
                if self._source is not None:
                    self._source.close()

    def pause(self, delay_s: float) -> RetryPause:
        """Returns a pause of this length, which ends early when the caller is closed. Does not block."""
        return RetryPause(self._closed, delay_s)


class RetryPause:
    """The back-off of a call, for a flow to wait for; its result is whether the caller is closed."""

    __slots__ = ("_closed", "_delay_s")

    def __init__(self, closed: Signal, delay_s: float) -> None:
        self._closed, self._delay_s = closed, delay_s

    def wait(self) -> bool:
        """Pauses the calling thread; returns whether the caller is closed."""
        return self._closed.wait(self._delay_s)

    def __await__(self) -> Generator[object, object, bool]:
        """Pauses the calling task, without a thread."""
        return wait(self._closed, self._delay_s).__await__()
