"""Gives each event to the log and to its subscribers, on the thread that emits it.

A subscriber that raises is logged and does not disturb the others.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, TypeVar, overload

from awoke.errors import ConfigError
from awoke.observe.broker_lines import BrokerLines
from awoke.observe.events.catalogue import user_event
from awoke.observe.events.clients import ClientError, ClientLog, DeliveryLost
from awoke.observe.events.event import Event
from awoke.observe.events.group import OffsetsCommitted, PartitionsAssigned
from awoke.observe.logs import keep_audible
from awoke.text.frames import from_user
from awoke.text.printable import harmless, shown, text_of
from awoke.text.secrets import without_userinfo
from awoke.waiting.raised import report
from awoke.waiting.time import monotonic_s

logger = logging.getLogger("awoke.events")
librdkafka_logger = logging.getLogger("awoke.librdkafka")

Subscriber = Callable[[Any], object]
Subscribed = TypeVar("Subscribed", bound=Event)

ALL = "*"


LOST_LINE_S = 10.0
"""Losses of one topic by one error are a line of the log at most as often."""


class LostLines:
    """Decides which losses of messages are lines of the log. Any thread."""

    def __init__(self) -> None:
        self._last_s: dict[tuple[str, int], float] = {}

    def is_due(self, event: DeliveryLost) -> bool:
        """Returns whether this loss is a line. Does not block."""
        place, now_s = (event.topic, event.code), monotonic_s()
        if now_s - self._last_s.get(place, -LOST_LINE_S) < LOST_LINE_S:
            return False
        self._last_s[place] = now_s
        return True


class Events:
    """The subscribers of one app, producer or reader, by the name of the event. Any thread may subscribe and emit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._broker_lines, self._lost_lines = BrokerLines(), LostLines()

    @overload
    def subscribe(self, event: type[Subscribed], subscriber: Callable[[Subscribed], object]) -> Callable[[], None]: ...

    @overload
    def subscribe(self, event: str, subscriber: Callable[[Event], object]) -> Callable[[], None]: ...

    def subscribe(self, event: type[Event] | str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls `subscriber(event)` for each of these events: a class, a name, or `"*"` for all. Does not block.

        Returns a function that ends the subscription.

        Raises:
            ConfigError: The subscriber is `async def`, and nothing would await it.
        """
        name = event if isinstance(event, str) else event.name
        if inspect.iscoroutinefunction(subscriber):
            raise ConfigError(
                f"a subscriber of {name!r} is async def, and nothing would await it; use def", "subscriber"
            )
        with self._lock:
            self._subscribers.setdefault(name, []).append(subscriber)

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers[name].remove(subscriber)

        return unsubscribe

    @overload
    def emit(self, event: Event, /) -> None: ...

    @overload
    def emit(self, event: str, /, **fields: Any) -> None: ...

    def emit(self, event: Event | str, /, **fields: Any) -> None:
        """Logs an event and calls its subscribers, on this thread. Blocks as long as they do.

        Events of user code are classes of their own, or a name with fields: `emit("shop.opened", customer=7)`.

        Raises:
            ConfigError: The name is one of awoke's own events.
        """
        if isinstance(event, str):
            event = user_event(event, fields)
        log(event, self._broker_lines, self._lost_lines)
        self.tell(event)

    def tell(self, event: Event) -> None:
        """Calls the subscribers of an event, on this thread, and logs nothing."""
        with self._lock:
            subscribers = [*self._subscribers.get(event.name, ()), *self._subscribers.get(ALL, ())]
        for subscriber in subscribers:
            try:
                copy_context().run(subscriber, event)
            except BaseException as error:
                report(error, logger, "a subscriber of %s failed", event.name)


def log(event: Event, broker_lines: BrokerLines, lost_lines: LostLines | None = None) -> None:
    """Writes an event to the log at its level. Any thread; does not block."""
    if logger.disabled:
        keep_audible()
    if isinstance(event, ClientLog):
        text = harmless(without_userinfo(event.text))
        librdkafka_logger.log(event.log_level, "%s: %s", event.facility, text)
        return
    if isinstance(event, OffsetsCommitted | PartitionsAssigned) and broker_lines.is_return():
        logger.info("brokers answer again")
    is_repeated = isinstance(event, ClientError) and not event.is_fatal and not broker_lines.is_change(event)
    if isinstance(event, DeliveryLost) and lost_lines is not None:
        is_repeated = not lost_lines.is_due(event)
    write(event, logging.DEBUG if is_repeated else event.log_level)


def plain(value: Any) -> Any:
    """Returns a value as formatters, exporters and pickle of others take it: numbers, texts, lists and dictionaries."""
    if isinstance(value, BaseException):
        return without_userinfo(f"{type(value).__name__}: {text_of(value)}")
    if isinstance(value, str):
        return without_userinfo(value)
    if value is None or isinstance(value, bool | int | float | bytes):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return shown(value)


def write(event: Event, level: int) -> None:
    """Writes an event to the log at this level, with the traceback of `error` where user code has raised it."""
    if not logger.isEnabledFor(level):
        return
    fields = event.fields
    error = fields.get("error")
    is_traced = event.is_traced
    left_out = {"error"} if is_traced or error is None else set()
    text = " ".join(f"{name}={shown(value)}" for name, value in fields.items() if name not in left_out)
    extra = {"awoke": {"event": event.name, "fields": plain(fields)}}  # For formatters that write fields apart.
    traced = (type(error), error, from_user(error.__traceback__)) if is_traced and error is not None else None
    logger.log(level, "%s %s", event.name, without_userinfo(text), exc_info=traced, extra=extra)
