"""Follows the topics of an app, and asks the brokers for the offsets of its groups after requests.

Threads: `awoke-console-reports`, `awoke-console-errors` and `awoke-console-audit` each read one topic;
`awoke-console-offsets` asks the brokers, at most every 2 s, and only after a request. They start with the first one.
"""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from awoke._native import Message
from awoke.admin import Admin
from awoke.console.lag_trends import LagTrends, Place
from awoke.console.observable import Observable
from awoke.console.open_transactions import SeenTransactions
from awoke.console.state import Extent, State, group_of, reading, transaction_limit_of
from awoke.console.topics import ConsoleTopics
from awoke.console.views import ErrorRecord, GroupView
from awoke.console.web.snapshot import Snapshot
from awoke.console.web.steps import Steps, StepState
from awoke.declare.reader import Reader
from awoke.errors import AwokeError, BrokerUnreachable, OperationTimeout, UnknownTopic
from awoke.operate.commands.views import Audit
from awoke.settings import Settings
from awoke.text.records import decode
from awoke.waiting.clock import monotonic_s, wall_ms

logger = logging.getLogger(__name__)

AUDIT_MAX = 1_000
"""The last commands that are kept."""
ERRORS_MAX = 2_000
"""The last error records that are kept, without their tracebacks."""
COUNTED_MAX = 1_000_000
"""The last error records that are counted by fingerprint."""
FRESH_S = 2.0
"""Offsets that are older are asked for again."""
FIRST_S = 5.0
"""The longest wait of the first request for the end of the topics."""
OFFSETS_FIRST_S = 0.05
"""The longest wait of a first request for the offsets of groups after that: they are shown as soon as they come."""
TIMEOUT_S = 10.0
LIMIT_AFTER_MS = 30_000
"""With a transaction that is open for longer, the brokers are asked for the longest time of one, once."""
LATE_S = 1.0
"""Brokers that have not answered for longer are a problem that pages show."""
BROKERS, REPORTS, FIRST = "Brokers", "Reports", "First report"
"""The steps that the console knows itself."""


class Live(Observable):
    """The state of an app, which its topics and brokers keep up to date. Any thread."""

    def __init__(self, app: str, settings: Settings) -> None:
        super().__init__()
        self.app, self._settings, self._topics = app, settings, ConsoleTopics.of(app)
        self._lock = threading.Lock()
        self._state = State(app)  # Guarded by the lock, as all below.
        self._errors: collections.deque[ErrorRecord] = collections.deque(maxlen=ERRORS_MAX)
        self._audit: collections.deque[Audit] = collections.deque(maxlen=AUDIT_MAX)
        self._groups: list[GroupView] = []
        self._lag_per_s: dict[Place, float] = {}
        self._problems: dict[str, str] = {}
        self._steps = Steps()
        self._has_nodes = self._is_followed = False
        """A process has reported and not stopped; the reports were read to their end."""
        self._version = 0
        self._built: tuple[tuple[int, bool, int], float, Snapshot] | None = None
        self._readers: list[Reader] = []
        self._admin: Admin | None = None
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._asked_s = float("-inf")
        self._open_transactions, self._has_limit = SeenTransactions(), False  # Of the thread that asks alone.
        self._lag_trends = LagTrends()  # As these.
        self._open_s: float | None = None
        """Since when the offsets are asked for; None: the brokers have answered."""
        self._can_ask = False
        """The thread that asks waits for a request."""
        self._wanted = threading.Condition(self._lock)
        self._read = {"reports": threading.Event(), "offsets": threading.Event()}
        self._shown = threading.Event()
        """The state was asked for once the reports were read."""

    def start(self) -> None:
        """Starts the threads. Starting again does nothing."""
        with self._lock:
            if self._threads or self._is_closed:
                return
            try:
                admin = self._admin = Admin(settings=self._settings)
            except AwokeError as error:  # A setting is wrong.
                self._problems["offsets"] = str(error)
                self._steps.note(BROKERS, StepState.FAILED, str(error), wall_ms())
                for event in self._read.values():
                    event.set()
                return
            text = f"{self._settings.bootstrap_servers} has not answered yet"
            self._steps.note(BROKERS, StepState.WAITING, text, wall_ms())
            follow = (
                ("reports", self._topics.reports, None, self._on_report, admin),
                ("errors", self._topics.errors, COUNTED_MAX, self._on_error, admin),
                ("audit", self._topics.audit, AUDIT_MAX, self._on_audit, admin),
            )
            self._threads = [
                threading.Thread(target=self._follow, args=each, name=f"awoke-console-{each[0]}", daemon=True)
                for each in follow
            ]
            ask = threading.Thread(target=self._ask, args=(admin,), name="awoke-console-offsets", daemon=True)
            self._threads.append(ask)
            for each in self._threads:
                each.start()

    def close(self) -> None:
        """Ends the threads. Blocks until requests to brokers that are under way have ended."""
        with self._lock:
            self._is_closed = True
            for event in (*self._read.values(), self._shown):
                event.set()
            readers, admin = list(self._readers), self._admin
            self._wanted.notify_all()
        if admin is not None:
            admin.close()
        for reader in readers:
            reader.close()
        self._tell()
        for each in self._threads:
            each.join(TIMEOUT_S)

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._is_closed

    def refresh(self) -> None:
        """Asks for new offsets, unless they are fresh. Does not block."""
        with self._lock:
            now_s = monotonic_s()
            if now_s - self._asked_s > FRESH_S:
                if self._can_ask and self._open_s is None:
                    self._open_s = now_s
                self._wanted.notify_all()

    def late_in_s(self) -> float | None:
        """Returns the time after which pages must say that brokers do not answer, or that a report is overdue; None:
        there is no such moment."""
        with self._lock:
            now_s, now_ms = monotonic_s(), wall_ms()
            brokers_s = None if self._open_s is None or self._is_late(now_s) else self._open_s + LATE_S - now_s
            _, due_ms = self._state.next_overdue(now_ms)
            report_s = None if due_ms is None else (due_ms + 1 - now_ms) / 1_000
        return min((each for each in (brokers_s, report_s) if each is not None), default=None)

    def _is_late(self, now_s: float) -> bool:
        return self._open_s is not None and now_s - self._open_s >= LATE_S

    def note(self, name: str, state: StepState, text: str) -> None:
        """Keeps the state of a step of the start, which pages show until a process reports. Does not block."""
        with self._lock:
            if not self._steps.note(name, state, text, wall_ms()):
                return
            self._version += 1
        self._tell()

    def snapshot(self, within_s: float = FIRST_S) -> Snapshot:
        """Returns the state. The first call blocks until the topics are read, or for this time."""
        self.start()
        self.refresh()
        self._read["reports"].wait(within_s)
        self._read["offsets"].wait(OFFSETS_FIRST_S)
        with self._lock:
            now_s = monotonic_s()
            state = (self._version, self._is_late(now_s), self._state.next_overdue(wall_ms())[0])
            if self._built is not None and self._built[0] == state and now_s - self._built[1] < 1.0:
                return self._built[2]
            found = self._build()
            self._built = (state, now_s, found)
        self._shown.set()
        return found

    def _build(self) -> Snapshot:
        problems, now_s = set(self._problems.values()), monotonic_s()
        if self._open_s is not None and self._is_late(now_s) and "offsets" not in self._problems:
            problems.add(f"the brokers have not answered for {now_s - self._open_s:.0f} s")
        return Snapshot(
            self._version,
            self._state.view(self._groups, is_current=self._is_followed and not problems),
            self._state.reports(),
            list(self._errors),
            problem="; ".join(sorted(problems)) or None,
            is_read=self._is_followed,
            audit=list(self._audit),
            trends=self._state.kinds.trends(),
            steps=self._steps.all(),
            gone_secrets=self._state.gone,
            lag_per_s=self._lag_per_s,
        )

    def _follow(
        self, name: str, topic: str, count: int | None, take: Callable[[Message[Any, Any]], None], admin: Admin
    ) -> None:
        if name != "reports":
            self._read["reports"].wait(FIRST_S)
            self._shown.wait(FIRST_S)  # The first page waits for the reports alone, and has the processor for itself.
        try:
            while not self._is_closed:
                try:
                    self._read_on(name, topic, admin, count, take)
                except AwokeError as error:
                    self._fail(name, topic, error)
                except Exception as error:  # A fault of the console's own: it goes on with the next request.
                    logger.exception("the console can't follow %s", topic)
                    self._fail(name, topic, AwokeError(f"{topic} can't be read: {type(error).__name__}"))
                with self._lock:
                    if not self._is_closed:
                        self._wanted.wait()  # For the next request: then the topic may be there.
        finally:
            self._ended(name)

    def _read_on(
        self, name: str, topic: str, admin: Admin, count: int | None, take: Callable[[Message[Any, Any]], None]
    ) -> None:
        extent = Extent.of(admin, topic, FIRST_S)
        if name == "reports":
            self._on_answer()
            self.note(REPORTS, StepState.WAITING, f"{topic} is being read")
        if extent.is_empty:
            self._on_end(name, topic)
        reader = Reader(topic, start=extent.last(count), admin=admin, **reading(self._settings))
        with self._lock:
            self._forget(name)
            self._readers.append(reader)
            if self._is_closed:
                reader.close()
            self._problems.pop(name, None)
        try:
            for message in reader.read_until_end():
                self._take(take, message)
            self._on_end(name, topic)
            for message in reader:
                self._take(take, message)
        finally:
            with self._lock:
                self._readers.remove(reader)
            reader.close()

    def _forget(self, name: str) -> None:
        """Forgets the records of a topic that is read from its first offset again, so that none counts twice.

        A report takes the place of the one before by itself.
        """
        if name == "errors":
            self._errors.clear()
            self._state.forget_errors()
        elif name == "audit":
            self._audit.clear()

    def _take(self, take: Callable[[Message[Any, Any]], None], message: Message[Any, Any]) -> None:
        with self._lock:
            try:
                take(message)
            except Exception:  # Of one record: the others are read all the same.
                self._state.unreadable += 1
                logger.exception("the console can't take a record of %s", message.topic)
            self._version += 1
        self._tell()

    def _on_answer(self) -> None:
        self.note(BROKERS, StepState.DONE, f"{self._settings.bootstrap_servers} has answered")

    def _on_end(self, name: str, topic: str) -> None:
        """Notes that a topic was read to its end."""
        if name == "reports":
            self.note(REPORTS, StepState.DONE, f"{topic} was read to its end")
            with self._lock:
                self._is_followed = True
                self._version += 1
                if not self._has_nodes:
                    self._steps.note(FIRST, StepState.WAITING, "no process has reported yet", wall_ms())
        self._set(name)

    def _on_report(self, message: Message[Any, Any]) -> None:
        self._state.on_report(message, wall_ms() if self._is_followed else None)
        if self._state.has_nodes == self._has_nodes:
            return
        self._has_nodes = not self._has_nodes
        if self._is_followed:
            state = StepState.DONE if self._has_nodes else StepState.WAITING
            text = "a process has reported" if self._has_nodes else "each process that had reported has stopped"
            self._steps.note(FIRST, state, text, wall_ms())

    def _on_error(self, message: Message[Any, Any]) -> None:
        record = self._state.on_error(message)
        if record is not None:
            self._errors.append(msgspec.structs.replace(record, traceback=""))

    def _on_audit(self, message: Message[Any, Any]) -> None:
        if (audit := decode(message.value, Audit)) is None:
            self._state.unreadable += 1
        else:
            self._audit.append(audit)

    def _fail(self, name: str, topic: str, error: AwokeError) -> None:
        text = str(error)
        if isinstance(error, UnknownTopic):
            text = f"there is no topic {topic}: run the app with console=True"
        with self._lock:
            if name == "reports" or not isinstance(error, UnknownTopic):  # Without commands there is no audit.
                self._problems[name] = text
            if name == "reports":
                self._is_followed = False  # What is told from here on is not known.
                self._version += 1
        if name == "reports":
            self._note_failure(text, error)
        self._set(name)

    def _note_failure(self, text: str, error: AwokeError) -> None:
        """Notes why the reports can't be read. The next request tries again."""
        if isinstance(error, (BrokerUnreachable, OperationTimeout)):
            self.note(BROKERS, StepState.WAITING, text)
            return
        self._on_answer()
        self.note(REPORTS, StepState.WAITING if isinstance(error, UnknownTopic) else StepState.FAILED, text)

    def _set(self, name: str) -> None:
        if name == "reports":
            with self._lock:
                self._state.decode()  # So that no page has to.
        if name in self._read:
            self._read[name].set()

    def _ask(self, admin: Admin) -> None:
        self._read["reports"].wait(FIRST_S)  # They name the groups.
        try:
            while self._next_request():
                try:
                    self._ask_once(admin)
                except Exception as error:  # A fault of the console's own: it goes on with the next request.
                    logger.exception("the console can't ask for offsets")
                    self._fail("offsets", "", AwokeError(f"offsets can't be asked for: {type(error).__name__}"))
        finally:
            self._ended("offsets")

    def _ended(self, name: str) -> None:
        """Notes that a thread has ended: without `close` that is a problem that pages show."""
        with self._lock:
            if self._is_closed:
                return
            self._problems[name] = f"the console follows {name} no longer: start it again"
            self._version += 1
        self._set(name)
        self._tell()

    def _next_request(self) -> bool:
        with self._lock:
            if self._asked_s != float("-inf") and not self._is_closed:
                self._can_ask = True
                self._wanted.wait()
                self._can_ask = False
            self._asked_s = monotonic_s()
            self._open_s = self._asked_s if self._open_s is None else self._open_s
            return not self._is_closed

    def _ask_once(self, admin: Admin) -> None:
        with self._lock:
            names = self._state.groups()
        try:
            groups = [self._group_of(admin, name) for name in names]
        except AwokeError as error:
            self._fail("offsets", "", error)
            with self._lock:
                self._open_s = None
            self._tell()
            return
        per_s = self._lag_trends.note(monotonic_s(), groups)
        with self._lock:
            self._groups, self._open_s, self._lag_per_s = groups, None, per_s
            self._problems.pop("offsets", None)
            self._version += 1
        self._set("offsets")
        self._tell()
        self._ask_limit(admin)

    def _ask_limit(self, admin: Admin) -> None:
        since_ms = self._open_transactions.oldest_ms()
        if self._has_limit or since_ms is None or wall_ms() - since_ms < LIMIT_AFTER_MS:
            return
        self._has_limit = True
        try:
            limit_ms = transaction_limit_of(admin, TIMEOUT_S)
        except AwokeError:
            return  # An ACL forbids it: the default is shown.
        with self._lock:
            self._state.transaction_limit_ms = limit_ms
            self._version += 1

    def _group_of(self, admin: Admin, name: str) -> GroupView:
        found = group_of(admin, name, TIMEOUT_S, self._open_transactions)
        with self._lock:
            self._open_s = monotonic_s()  # The brokers have answered: the next group is another question.
        return found
