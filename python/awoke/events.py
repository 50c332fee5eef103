"""What happens inside awoke, for logs, tests and user code to hear of.

Events of the engine come out of bounded boxes, which one thread of the process serves while there is any; events of the
runtime are emitted where they happen. A subscriber that raises is logged and does not disturb the others.
"""

from __future__ import annotations

import inspect
import logging
import os
import selectors
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from awoke._native import EventBox, Mailbox
from awoke.broker_lines import BrokerLines
from awoke.errors import ConfigError
from awoke.printable import harmless, shown
from awoke.secrets import without_userinfo

logger = logging.getLogger(__name__)
librdkafka_logger = logging.getLogger("awoke.librdkafka")


class Event(NamedTuple):
    """Something that happened."""

    name: str
    """`app.started`, `job.failed`, `partitions.assigned`, …"""
    fields: Mapping[str, Any]
    """What there is to say about it, by name."""


Subscriber = Callable[[Event], object]

LEVELS = {
    "client.error": logging.WARNING,
    "commit.failed": logging.WARNING,
    "fetch.failed": logging.WARNING,
    "job.failed": logging.WARNING,
    "job.overdue": logging.ERROR,
    "job.slow": logging.ERROR,
    "background.failed": logging.ERROR,
    "background.overdue": logging.ERROR,
    "thread.leaked": logging.WARNING,
    "crash_record.failed": logging.WARNING,
    "dead_letter.failed": logging.ERROR,
    "dead_letter.shortened": logging.WARNING,
    "message.dead_lettered": logging.ERROR,
    "partition.paused": logging.ERROR,
    "partition.resumed": logging.INFO,
    "app.resized": logging.INFO,
    "group.waiting": logging.INFO,
    "transaction.aborted": logging.WARNING,
    "producer.replaced": logging.WARNING,
    "hook.failed": logging.ERROR,
    "shutdown.failed": logging.ERROR,
    "message.skipped": logging.ERROR,
    "partition.stuck": logging.ERROR,
    "partition.rewound": logging.WARNING,
    "partition.careful": logging.WARNING,
    "clock.stepped": logging.WARNING,
    "messages.expired": logging.DEBUG,
    "messages.filtered": logging.DEBUG,
    "lane.failed": logging.WARNING,
    "rpc.failed": logging.ERROR,
    "rpc.refused": logging.WARNING,
    "rpc.reply_refused": logging.WARNING,
    "client.statistics": logging.DEBUG,
    "offsets.committed": logging.DEBUG,
    "offsets.not_committed": logging.ERROR,
    "partitions.assigned": logging.INFO,
    "partitions.revoked": logging.INFO,
    "partitions.lost": logging.WARNING,
    "app.started": logging.INFO,
    "app.stopping": logging.INFO,
    "app.stopped": logging.INFO,
}
"""The level at which each event is logged. `client.log` has its own, from librdkafka; names of user code get DEBUG."""

FROM_USER_CODE = frozenset(
    {"job.failed", "hook.failed", "background.failed", "shutdown.failed", "lane.failed", "rpc.failed"}
)
"""Events whose error is logged with its traceback."""

SIGNS_OF_BROKERS = frozenset({"offsets.committed", "partitions.assigned"})
"""Events that say that a broker has answered."""


class Events:
    """Subscribers by the name of the event; `"*"` hears all. Any thread may subscribe and emit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._broker_lines = BrokerLines()

    def subscribe(self, name: str, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(event)` for events of this name; returns what ends it.

        Raises:
            ConfigError: It is `async def`: nothing would await it.
        """
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

    def emit(self, name: str, **fields: Any) -> None:
        """Tell the subscribers, on this thread."""
        event = Event(name, fields)
        log(event, self._broker_lines)
        with self._lock:
            subscribers = [*self._subscribers.get(name, ()), *self._subscribers.get("*", ())]
        for subscriber in subscribers:
            try:
                subscriber(event)
            except Exception:
                logger.exception("a subscriber of %s failed", name)


def log(event: Event, broker_lines: BrokerLines) -> None:
    """Writes an event to the log."""
    if event.name == "client.log":
        # One set of properties serves producers and consumers; librdkafka warns of those that are the other kind's.
        # A failed connection (FAIL) is said again by `client.error`.
        is_said_elsewhere = event.fields["facility"] in ("CONFWARN", "FAIL")
        level = logging.DEBUG if is_said_elsewhere else log_level(event.fields["level"])
        librdkafka_logger.log(
            level, "%s: %s", event.fields["facility"], harmless(without_userinfo(event.fields["text"]))
        )
        return
    level = logging.ERROR if event.fields.get("is_fatal") else LEVELS.get(event.name, logging.DEBUG)
    if event.name == "client.error" and not event.fields["is_fatal"] and not broker_lines.is_change(event.fields):
        level = logging.DEBUG
    if event.name == "commit.failed" and event.fields["will_retry"]:
        level = logging.INFO  # As in each rebalance that comes during a commit.
    if event.name.startswith("partitions.") and not event.fields["partitions"]:
        level = logging.DEBUG  # As in each rebalance that changes nothing for this member.
    if event.name in SIGNS_OF_BROKERS and broker_lines.is_return():
        logger.info("brokers answer again")
    write(event, level)


def write(event: Event, level: int) -> None:
    """Writes an event to the log at this level; a message that is tried again has its traceback there already."""
    if not logger.isEnabledFor(level):
        return
    error = event.fields.get("error")
    is_traced = event.name in FROM_USER_CODE and event.fields.get("attempt", 1) == 1
    untold = {"error"} if is_traced or error is None else set()
    said = " ".join(f"{name}={shown(value)}" for name, value in event.fields.items() if name not in untold)
    more = {"event": event}  # For formatters that write fields apart.
    logger.log(level, "%s %s", event.name, without_userinfo(said), exc_info=error if is_traced else None, extra=more)


def log_level(syslog_level: int) -> int:
    """logging's level for one of syslog's."""
    if syslog_level <= 3:
        return logging.ERROR
    return {4: logging.WARNING, 5: logging.INFO, 6: logging.INFO}.get(syslog_level, logging.DEBUG)


class Listener(Protocol):
    """Hears of the engine's events."""

    def emit(self, name: str, **fields: Any) -> None:
        """Hears of one."""


class EventPump:
    """The thread that takes the engine's events out of their boxes; lives while there is a box.

    1. Wait until a box has events, or the boxes have changed.
    2. Give each event to its box's listener.
    3. End when the last box has gone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[EventBox, Listener] = {}
        self._changed = Mailbox()
        self._thread: threading.Thread | None = None

    def add(self, box: EventBox, listener: Listener) -> None:
        """Serve this box from now on."""
        with self._lock:
            self._listeners[box] = listener
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="awoke-events", daemon=True)
                self._thread.start()
        self._changed.post(0)

    def remove(self, box: EventBox) -> None:
        """Serve this box no more; its last events are given out here. Joins the thread after the last box."""
        with self._lock:
            listener = self._listeners.pop(box, None)
            thread = self._thread if not self._listeners else None
            if thread is not None:
                self._thread = None
        self._changed.post(0)
        if listener is not None:
            deliver(box, listener)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                if self._thread is not me:
                    return
                boxes = dict(self._listeners)
            with selectors.DefaultSelector() as selector:
                selector.register(self._changed.fileno(), selectors.EVENT_READ)
                for box in boxes:
                    selector.register(box.fileno(), selectors.EVENT_READ, box)
                self._serve(selector, boxes)

    def _serve(self, selector: selectors.BaseSelector, boxes: Mapping[EventBox, Listener]) -> None:
        """Serve these boxes until they have changed."""
        while True:
            for key, _ in selector.select():
                if key.data is None:
                    self._changed.drain()
                    return
                deliver(key.data, boxes[key.data])


def deliver(box: EventBox, listener: Listener) -> None:
    """Gives all events of a box to its listener; librdkafka's texts quote addresses, with the user and password in them."""
    for client, name, fields in box.drain():
        cut = {key: without_userinfo(value) if isinstance(value, str) else value for key, value in fields.items()}
        listener.emit(name, client=client, **cut)


pump = EventPump()


class EventSource:
    """A box of the engine's events whose listener is served for as long as it is open."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.box = EventBox()
        self._pid = os.getpid()
        pump.add(self.box, listener or Events())

    def close(self) -> None:
        """Give the last events out and end. Closing again does nothing."""
        if self._pid == os.getpid():
            pump.remove(self.box)


def _forget_threads() -> None:
    """In a forked child the parent's thread and its boxes are gone."""
    global pump
    pump = EventPump()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
