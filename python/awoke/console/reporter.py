"""Sends the reports and the error records of one process to the topics of its console.

The thread:
1. create the topics that do not exist;
2. wait until something has changed, a sample is due, or the app stops;
3. send the error records that wait, and a report: at most one in 250 ms, at least one in 10 s;
4. at the end delete the process's report: an orderly stop leaves nothing behind.

No other thread waits for it. A topic that can't be written costs one warning.
"""

from __future__ import annotations

import collections
import hashlib
import itertools
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from awoke._native import DeliveryHandle, Signal
from awoke.admin import Admin
from awoke.console.reports import SAMPLE_S, Origin, Reports, Shown
from awoke.console.topics import ConsoleTopics, ensure
from awoke.console.views import INTERVAL_MS, ErrorRecord, SecretFields
from awoke.errors import AwokeError, ClosedError
from awoke.observe.events import (
    AppResized,
    AppStarted,
    AppStopping,
    BackgroundFailure,
    ClientError,
    ClientStatistics,
    Event,
    Events,
    GroupWaiting,
    HookFailed,
    JobFailed,
    JobSlow,
    LaneFailed,
    MessageDeadLettered,
    MessageSkipped,
    PartitionPaused,
    PartitionResumed,
    PartitionRewound,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    PartitionStuck,
    TransactionAbort,
)
from awoke.operate.commands.views import MAJOR, MINOR, Audit, SwarmNode
from awoke.produce.producer import Producer
from awoke.runtime.extension import Extension
from awoke.settings import Loaded, Settings
from awoke.text.printable import text_of
from awoke.text.records import encode
from awoke.waiting.clock import monotonic_s, wall_ms

logger = logging.getLogger(__name__)

CHANGES: tuple[type[Event], ...] = (
    *(AppResized, AppStarted, AppStopping, ClientError, GroupWaiting, JobSlow, MessageDeadLettered, MessageSkipped),
    *(PartitionPaused, PartitionResumed, PartitionRewound, PartitionsAssigned, PartitionsLost, PartitionsRevoked),
    PartitionStuck,
)
"""The events that change what a report shows, beside failures."""
COALESCING_S = 0.25
"""Changes within this time after a report are told by one further report."""
INTERVAL_S = INTERVAL_MS / 1_000
CLIENT = {
    "message.timeout.ms": "10000",
    "compression.type": "zstd",
    "queue.buffering.max.kbytes": "16384",
    "enable.idempotence": "false",
    "acks": "1",
}
"""A report that is not delivered after an interval is replaced by the next one."""
QUEUE_TIMEOUT_S = 0.0
"""A full queue drops the record at once."""
START_TIMEOUT_S = 5.0
FAILURES: tuple[type[Event], ...] = (JobFailed, HookFailed, LaneFailed, BackgroundFailure)
"""The events that are failures of user code."""
PENDING_MAX = 1_000
"""The most records that wait to be sent."""
FRAMES = 3
"""The innermost frames that a fingerprint is made of."""
FRAMES_MAX = 30
"""The innermost frames that a traceback shows."""
TEXT_MAX = 1_000
TRACEBACK_MAX = 8_000
PLACE = ("handler", "topic", "partition", "offset", "key_hash", "attempt", "retry_in_s")
"""The fields of events that a record has, too."""


class SilentEvents(Events):
    """Drops the events of the console's own client: the app's clients tell of the same brokers."""

    def emit(self, event: Event | str, /, **fields: Any) -> None:
        """Does nothing."""


class Reporter(Extension):
    """Reports one process. Any thread may call everything here; only `stop` and `send` block."""

    def __init__(
        self,
        shown: Shown,
        app: str,
        events: Events,
        loaded: Loaded,
        number: int | None = None,
        secrets: list[SecretFields] | None = None,
    ) -> None:
        self._events, self._settings = events, client_settings(loaded.values)
        self._origin = Origin(app, number, loaded, secrets)
        self.topics = ConsoleTopics.of(app)
        self._reports = Reports(self._origin, shown)
        self._errors = PendingErrors(app, self._origin.node)
        self._changed = Signal()
        self._is_dirty = self._is_stopping = self._is_closed = self._has_warned = False
        self._fault: str | None = None
        """Why the last step of the thread failed."""
        self._last: DeliveryHandle | None = None
        """The last report, which may be under way."""
        self._admin: Admin | None = None
        self._producer: Producer | None = None
        self._end_listening: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._run, name="awoke-console", daemon=True)

    @property
    def node(self) -> str:
        """The key of this process's reports."""
        return self._origin.node

    def start(self) -> None:
        """Listens to the app's events and starts the thread. Does not block."""
        listen = self._events.subscribe
        self._end_listening = [listen(each, self._on_change) for each in CHANGES]
        self._end_listening += [listen(each, self._on_failure) for each in FAILURES]
        self._end_listening.append(listen(ClientStatistics, self._on_statistics))
        self._end_listening.append(listen(TransactionAbort, self._on_aborted))
        self._admin = Admin(settings=self._settings)
        self._producer = Producer(settings=self._settings, events=SilentEvents())
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Deletes the report of this process, and ends and joins the thread. Blocks up to `timeout_s`.

        Stopping again, or without a start, does nothing.
        """
        for end in self._end_listening:
            end()
        self._end_listening = []
        self._is_closed = True
        self._changed.set()
        admin, producer = self._admin, self._producer
        if admin is None or producer is None:
            return
        self._admin = self._producer = None
        began_s = time.monotonic()
        admin.close()  # It ends a wait for brokers.
        self._thread.join(timeout_s)
        producer.close(max(0.0, began_s + timeout_s - time.monotonic()))
        self._thread.join()  # All of its records are answered.

    def _on_change(self, event: Event) -> None:
        self._is_stopping = self._is_stopping or isinstance(event, AppStopping)
        self.tell_soon()

    def _on_statistics(self, event: Event) -> None:
        if self._reports.on_statistics(event):
            self.tell_soon()

    def _on_aborted(self, event: Event) -> None:
        self._reports.aborted.on_event(event)
        self.tell_soon()

    def _on_failure(self, event: Event) -> None:
        self._errors.add(event)
        self._reports.failures_by_handler[str(event.fields.get("handler", ""))] += 1
        self.tell_soon()

    def tell_swarm(self, supervisor_pid: int, nodes: list[SwarmNode]) -> None:
        """Takes what the supervisor says of its nodes; the next report shows it. Does not block."""
        self._reports.swarm = (supervisor_pid, nodes)
        self.tell_soon()

    def tell_soon(self) -> None:
        """Lets the next report come at once: what the app shows has changed. Does not block."""
        if not self._is_dirty:  # One wake-up for all changes until the next report.
            self._is_dirty = True
            self._changed.set()

    def _run(self) -> None:
        admin, producer = self._admin, self._producer
        assert admin is not None
        assert producer is not None
        try:
            ensure(admin, self.topics.configs, START_TIMEOUT_S)
        except AwokeError as error:
            self._warn(error)  # They may be there all the same.
        sampled_s = reported_s = monotonic_s()
        self._guarded(self._report, producer)
        while not self._is_closed:
            after_s = COALESCING_S if self._is_dirty else INTERVAL_S
            due_s = min(sampled_s + SAMPLE_S, reported_s + after_s)
            self._changed.wait(max(0.0, due_s - monotonic_s()), recurs=True, is_tracked=True)
            if self._is_closed:
                break
            self._changed.clear()
            now_s = monotonic_s()
            if now_s >= sampled_s + SAMPLE_S:
                sampled_s = now_s
                self._guarded(self._reports.sample, self._errors.failures)
            if now_s >= reported_s + (COALESCING_S if self._is_dirty else INTERVAL_S):
                reported_s = now_s
                self._is_dirty = False
                self._guarded(self._report, producer)
        self._changed.leave()
        self._guarded(self._delete, producer)

    def _guarded(self, step: Callable[[Any], object], argument: Any) -> None:
        """Makes a step of the thread, which goes on after a fault of awoke's own. `reasons` tells it."""
        try:
            step(argument)
            self._fault = None
        except Exception as error:
            if self._fault is None:
                logger.exception("the console of app %s lacks a report of this process", self._origin.app)
            self._fault = f"this process can't report to its console: {type(error).__name__}; see the log"

    def reasons(self) -> Iterator[str]:
        """Gives why the console sees nothing, or not all, of this process."""
        if self._thread.ident is not None and not self._thread.is_alive() and not self._is_closed:
            yield "this process reports to its console no longer: the thread awoke-console has ended; see the log"
        elif (fault := self._fault) is not None:
            yield fault

    def record(self, audit: Audit) -> None:
        """Sends the record of a command, and soon a report. Does not block."""
        producer = self._producer
        if producer is not None:
            self._send(producer, self.topics.audit, encode(audit), audit.node)
            self.tell_soon()

    def send(
        self, topic: str, value: bytes | None, key: bytes, timeout_s: float, headers: Sequence[tuple[str, bytes]] = ()
    ) -> int:
        """Sends a record, waits until the brokers have it, and returns its offset. Blocks up to `timeout_s`.

        Raises:
            AwokeError: They do not have it.
        """
        producer = self._producer
        if producer is None:
            raise ClosedError("the console of this process is closed")
        return (
            producer.produce(topic, value, key=key, headers=headers, timeout_s=QUEUE_TIMEOUT_S).wait(timeout_s).offset
        )

    def _report(self, producer: Producer) -> None:
        """Sends the records that wait, and a report unless the last one is still under way. Does not block."""
        for record in self._errors.take():
            self._send(producer, self.topics.errors, encode(record), record.fingerprint)
        if self._last is not None and not self._last.done():
            self._is_dirty = True  # Brokers are slow, or away: the next report waits for this one's answer.
            return
        report = self._reports.make(self._errors.failures, self._errors.dropped, is_stopping=self._is_stopping)
        self._last = self._send(producer, self.topics.reports, self._reports.encoded(report), self.node)

    def _delete(self, producer: Producer) -> None:
        """Sends what waits and the tombstone of the reports. Blocks until it is delivered, or the client closes."""
        for record in self._errors.take():
            self._send(producer, self.topics.errors, encode(record), record.fingerprint)
        handle = self._send(producer, self.topics.reports, None, self.node)
        try:
            if handle is not None:
                handle.wait()
        except AwokeError as error:
            logger.debug("the report of %s was not deleted: %s", self.node, error)  # It expires after a day.

    def _send(self, producer: Producer, topic: str, value: bytes | None, key: str) -> DeliveryHandle | None:
        try:
            handle = producer.produce(topic, value, key=key, timeout_s=QUEUE_TIMEOUT_S)
        except AwokeError as error:
            self._warn(error)
            return None
        handle.add_done_callback(self._on_delivered)
        return handle

    def _on_delivered(self, handle: DeliveryHandle) -> None:
        try:
            handle.result()
        except AwokeError as error:
            self._warn(error)

    def _warn(self, error: AwokeError) -> None:
        """Logs the first failure as a warning, and later ones for debugging."""
        level = logging.DEBUG if self._has_warned or self._is_closed else logging.WARNING
        self._has_warned = self._has_warned or not self._is_closed
        logger.log(level, "the console of app %s lacks reports or errors of this process: %s", self._origin.app, error)


def client_settings(settings: Settings) -> Settings:
    """Returns the settings of the console's own client: the same brokers and login, and no transactions."""
    kafka = {name: value for name, value in settings.kafka.items() if not name.startswith("transactional.")}
    return msgspec.structs.replace(settings, kafka={**kafka, **CLIENT})


class PendingErrors:
    """The error records that were not sent yet. Nothing here blocks. Any thread."""

    def __init__(self, app: str, node: str) -> None:
        self._app, self._node = app, node
        self._pending: collections.deque[ErrorRecord] = collections.deque()
        self._failures, self._dropped = itertools.count(), itertools.count()
        self.failures = self.dropped = 0
        """The number of failures, and of those without a record."""

    def add(self, event: Event) -> None:
        """Makes a record of a failure; none while too many wait. Keeps neither the exception nor its frames."""
        self.failures = next(self._failures) + 1
        if len(self._pending) < PENDING_MAX:
            self._pending.append(record_of(event, self._app, self._node))
        else:
            self.dropped = next(self._dropped) + 1

    def take(self) -> list[ErrorRecord]:
        """Takes the records that wait, the oldest first."""
        return [self._pending.popleft() for _ in range(len(self._pending))]


def record_of(event: Event, app: str, node: str) -> ErrorRecord:
    """Returns the record of a failure."""
    fields = event.fields
    error: BaseException = fields["error"]
    text = "".join(traceback.format_exception(error, limit=-FRAMES_MAX))
    return ErrorRecord(
        major=MAJOR,
        minor=MINOR,
        at_ms=wall_ms(),
        node=node,
        app=app,
        event=event.name,
        fingerprint=fingerprint(error),
        error_type=name_of(error),
        error_text=sendable(text_of(error))[:TEXT_MAX],
        traceback=sendable(text)[-TRACEBACK_MAX:],
        **{name: fields.get(name) for name in PLACE},
    )


def fingerprint(error: BaseException) -> str:
    """Returns the same text for errors of one class that the same functions have raised."""
    frames = collections.deque(traceback.walk_tb(error.__traceback__), FRAMES)
    places = [f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}" for frame, _ in frames]
    return hashlib.blake2b("\n".join([name_of(error), *places]).encode(errors="replace"), digest_size=8).hexdigest()


def name_of(error: BaseException) -> str:
    """Returns the class of an error with its module."""
    return f"{type(error).__module__}.{type(error).__qualname__}"


def sendable(text: str) -> str:
    """Returns text that UTF-8 can hold: lone surrogates are replaced."""
    return text.encode(errors="replace").decode()
