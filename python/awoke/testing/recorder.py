"""Records what happens in an app under test: its events, and the calls of its handlers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from awoke._native import Batch, Message
from awoke.app.app import App
from awoke.declare.router import surround
from awoke.declare.routing import Route
from awoke.observe.events import (
    ClientStatistics,
    Event,
    JobFailed,
    MessageDeadLettered,
    MessageRepeated,
    MessagesExpired,
    MessagesFiltered,
    MessageSkipped,
    OffsetsCommitted,
    PartitionsAssigned,
)
from awoke.observe.ledger import current_work
from awoke.runtime.watch.overdue import WatchedJob
from awoke.testing.records import Call, Commit, DeadLetter, Failure, RecordedRetry

NO_LIMIT_S = 0.0


class Processed(NamedTuple):
    """A message in one group: that of the route with this number."""

    route_number: int
    topic: str
    partition: int
    offset: int


class RecordedChanges:
    """Counts the changes of all apps of a test, and wakes the thread that waits for one. Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def note(self, _: object = None) -> None:
        """Notes that something has changed."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    @property
    def count(self) -> int:
        """The number of changes until now."""
        with self._changed:
            return self._count

    def wait(self, seen: int, deadline_s: float) -> bool:
        """Waits until there are more changes than `seen`. Returns false if the deadline passed first. Blocks."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count > seen, max(0.0, deadline_s - time.monotonic()))


class RunRecorder:
    """Records the events of an app and the calls of its handlers, between `begin` and `end`. Any thread."""

    def __init__(self, app: App, changes: RecordedChanges) -> None:
        self._app, self._changes = app, changes
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self._numbers = itertools.count()
        self._running: dict[int, WatchedJob] = {}
        self.failures: list[Failure] = []
        self.retries: list[RecordedRetry] = []
        self.dead_letters: list[DeadLetter] = []
        self.commits: list[Commit] = []
        self.committed: dict[tuple[str, str, int], int] = {}
        """The offset of the last commit, by group, topic and partition."""
        self.calls: list[Call] = []
        self.assigned: set[str] = set()
        """The groups that have assigned partitions."""
        self.processed: Counter[Processed] = Counter()
        """The number of times that a handler has completed each message since a failure let it come again.

        One that has to come again is not there until it does. One that may come again, or not, has 0."""
        self.sent: set[tuple[str, int, int]] = set()
        """The messages that the test has sent: topic, partition, offset."""
        self.left_out: set[str] = set()
        """Topics of which messages were skipped, filtered or too old."""

    def begin(self) -> None:
        """Begins to record. To be called before the app runs."""
        self._ends = [
            self._app.events.subscribe("*", self._on_event),
            surround(self._app, self._around_message, self._around_batch),
        ]

    def end(self) -> None:
        """Ends the recording."""
        for end in self._ends:
            end()
        self._ends = []

    def running(self) -> list[WatchedJob]:
        """Returns the calls of handlers that run now. Does not block."""
        with self._lock:
            return list(self._running.values())

    def _on_event(self, event: Event) -> None:
        if isinstance(event, ClientStatistics):
            return  # No change: it would end each wait for one.
        error = getattr(event, "error", None)
        with self._lock:
            if event.is_of_user_code and isinstance(error, BaseException):
                self.failures.append(failure_of(event, error))
            match event:
                case JobFailed():
                    self._on_failed(event)
                case MessageDeadLettered(topic=topic, partition=partition, offset=offset):
                    self.left_out.add(topic)
                    self.dead_letters.append(DeadLetter(topic, partition, offset, event.error))
                case MessageSkipped() | MessageRepeated() | MessagesExpired() | MessagesFiltered():
                    self.left_out.add(event.topic)
                case OffsetsCommitted(group=group):
                    self.commits += [Commit(group, *offset) for offset in event.offsets]
                    self.committed |= {(group, topic, partition): to for topic, partition, to in event.offsets}
                case PartitionsAssigned(group=group):
                    self.assigned.add(group)
        self._changes.note()

    def _on_failed(self, event: JobFailed) -> None:
        """Notes a failure: the message has to come again, and later ones of its partition may.

        If one job of the partition runs at a time, the later ones have to come again, too.
        """
        place = (event.topic, event.partition)
        routes = [route for route in self._routes(event.topic) if route.name == event.handler]
        numbers = {route.number for route in routes}
        has_lanes = any(route.lanes is not None for route in routes)
        again = [each for each in self.processed if each[1:3] == place and each.offset >= event.offset]
        for each in [each for each in again if each.route_number in numbers]:
            if has_lanes and each.offset > event.offset:
                self.processed[each] = 0
            else:
                del self.processed[each]
        if event.retry_in_s is not None:
            self.retries.append(RecordedRetry(*place, event.offset, event.attempt, event.retry_in_s))

    async def _around_message(self, message: Message[Any, Any], call_next: Callable[[Any], Any]) -> Any:
        with self._calling([message], message):
            return await call_next(message)

    async def _around_batch(self, batch: Batch[Any, Any], call_next: Callable[[Any], Any]) -> Any:
        with self._calling(batch, batch[0]):
            return await call_next(batch)

    @contextlib.contextmanager
    def _calling(self, messages: Iterable[Message[Any, Any]], first: Message[Any, Any]) -> Iterator[None]:
        """Records the call of a handler, from its begin to its end."""
        route = self._route(first.topic)
        handler, number = ("", 0) if route is None else (route.name, route.number)
        me = next(self._numbers)
        with self._lock:
            self._running[me] = running(handler, first)
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            calls = [call_of(handler, message, has_failed=has_failed) for message in messages]
            with self._lock:
                del self._running[me]
                self.calls += calls
                if not has_failed:
                    self.processed.update(Processed(number, each.topic, each.partition, each.offset) for each in calls)

    def _route(self, topic: str) -> Route | None:
        """Returns the route whose handler the calling thread or task is about to call."""
        number, routes = getattr(current_work(), "route_number", None), self._routes(topic)
        return next((route for route in routes if route.number == number or len(routes) == 1), None)

    def _routes(self, topic: str) -> list[Route]:
        """Returns the routes of a topic, in whichever groups."""
        return [group.routes[topic] for group in self._app.groups.values() if topic in group.routes]


def running(handler: str, message: Message[Any, Any]) -> WatchedJob:
    """Returns a call that begins now, on the calling thread or as the calling task."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # No event loop runs on this thread.
        task = None
    place = (message.topic, message.partition, message.offset)
    return WatchedJob(handler, *place, time.monotonic(), NO_LIMIT_S, threading.current_thread(), task)


def call_of(handler: str, message: Message[Any, Any], *, has_failed: bool) -> Call:
    """Returns the record of a call that has ended."""
    key, value = message.raw_key, message.raw_value
    if not has_failed:
        with contextlib.suppress(Exception):  # The handler did not read them, and they do not decode.
            key, value = message.key, message.value
    place = (message.topic, message.partition, message.offset)
    return Call(handler, *place, key, value, message.attempt, has_failed)


def failure_of(event: Event, error: BaseException) -> Failure:
    """Returns the failure that an event tells of."""
    fields = event.fields
    handler = next((str(fields[name]) for name in ("handler", "function", "method") if name in fields), "")
    return Failure(
        event.name,
        handler,
        fields.get("topic"),
        fields.get("partition"),
        fields.get("offset"),
        fields.get("attempt"),
        error,
    )
