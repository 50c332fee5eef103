"""Stands for the engine's side of a responder, and for the process that it runs in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any

from awoke.declare.lifecycle import BetweenJobs
from awoke.observe.contexts import JobContexts
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc.protocol import Problem, read_problem
from awoke.settings import Settings
from tests.unit.runtime.fakes import FakeHandle, FakeJob


class FakeCredit:
    """The credit of a stream: results may be sent while it lasts."""

    is_named = True
    is_withdrawn = False

    def __init__(self, left: int = 1_000) -> None:
        self.left, self.waits = left, 0

    def try_take(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def done(self) -> bool:
        return True

    def wait(self, timeout_s: float | None = None) -> None:
        self.waits += 1
        self.left = 1

    def result(self) -> None:
        self.waits += not self.waits
        self.left = max(1, self.left)


class FakeCall:
    """A call, as the engine gives it to a responder."""

    caller, id, message = "web", b"an id", None
    place = ("shop.rpc.calls", 2, 7)
    times_s = (10.0, 9.0, 0.25, 0.5)

    def __init__(self, target: Any = None, body: bytes = b"{}", *, name: str = "quote") -> None:
        self.target = target or SimpleNamespace(is_stream=False, is_async=False, result_form=None)
        self.method, self.body = getattr(target, "name", name), body
        self.reply_to: tuple[str, int] | None = ("shop.rpc.replies", 1)
        self.remaining_s, self.credit = 60.0, FakeCredit()
        self.is_cancelled = self.was_cancelled = False
        self.transaction_entry: Any = None
        self.not_executed: tuple[str, str] | None = None
        self.cached_body: bytes | None = None
        self.last: FakeHandle | None = None
        self.on_cancelled: list[Callable[[], object]] = []
        self.steps: list[str] = []

    def mark_seen(self) -> None: ...

    def start(self) -> None:
        self.steps.append("start")

    def stop(self) -> None:
        self.steps.append("stop")

    def when_cancelled(self, function: Callable[[], object]) -> None:
        self.on_cancelled.append(function)

    def cancel(self) -> None:
        """Cancels it, as its caller does."""
        self.is_cancelled = self.was_cancelled = True
        for function in self.on_cancelled:
            function()


class FakeReplies:
    """Notes the replies and the end of each call; refuses to send with the errors that it is given."""

    def __init__(self, *errors: BaseException | None) -> None:
        self._errors = list(errors)
        self.sent: list[tuple[Any, str, bytes, str | None]] = []
        self.ended: list[tuple[Any, str, float]] = []
        self.jobs: dict[int, FakeJob] = {}
        self.reason: str | None = None
        """The reason why calls whose turn has come are not begun."""
        self.is_fenced = False
        self.on_end: Callable[[], object] = lambda: None

    def begin(self, call: Any) -> str | None:
        return self.reason

    def send(self, call: Any, kind: str, body: bytes, code: str | None = None) -> None:
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        self.sent.append((call, kind, body, code))

    def headers(self, call: Any, kind: str, body: bytes, code: str | None) -> dict[str, Any] | None:
        return None if call.reply_to is None else {"rpc-kind": kind, "rpc-code": code}

    def leave_slot(self, call: Any) -> None: ...

    def take_job(self, call: Any) -> FakeJob | None:
        if self.is_fenced:
            return None
        return self.jobs.setdefault(id(call), FakeJob(1))

    def close(self, call: Any) -> None: ...

    def settle(self, call: Any, delay_s: float) -> None:
        self.ended.append((call, "settled", delay_s))
        self.on_end()

    def give_back(self, call: Any, delay_s: float) -> None:
        self.ended.append((call, "given back", delay_s))
        self.on_end()

    def endings(self, call: Any) -> list[tuple[str, float]]:
        """Returns what became of a call."""
        return [(how, delay_s) for each, how, delay_s in self.ended if each is call]

    def kinds(self, call: Any) -> list[str]:
        """Returns the kinds of the replies to a call."""
        return [kind for each, kind, _, _ in self.sent if each is call]

    def problem(self, call: Any) -> Problem:
        """Returns the only reply to a call, which is an error."""
        ((_, kind, body, code),) = [reply for reply in self.sent if reply[0] is call]
        problem = read_problem(body)
        assert (kind, problem.code) == ("error", code)
        return problem


class GivenCalls:
    """The calls that a test gives: each is a call, an error to be raised, or None at the end."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self.notifier: Any = None
        self.is_silent = False
        """True where the notifier is not notified."""
        self.is_ended = False

    def put(self, call: Any) -> None:
        self._calls.put(call)
        if self.notifier is not None and not self.is_silent:
            self.notifier.notify()

    def get(self, *, may_wait: bool) -> Any:
        call = self._calls.get(may_wait)
        self.is_ended = call is None
        if isinstance(call, Exception):
            raise call
        return call


class FakeAdmission:
    """Gives calls to a responder's threads; knows the waiting duplicates of one."""

    def __init__(self) -> None:
        self.calls = GivenCalls()
        self.duplicates: list[Any] = []
        self.following: list[Any] = []
        """The calls that wait for the place of another."""
        self.final: list[tuple[str | None, bytes]] = []
        self.topics: list[Any] = []
        self.released = 0
        self.again_s: float | None = None
        """When the receiving event loop has to ask again."""

    def next(self) -> Any:
        return self.calls.get(may_wait=True)

    def next_or_notify(self, notifier: Any) -> tuple[Any, float | None, bool]:
        self.calls.notifier = notifier
        try:
            call = self.calls.get(may_wait=False)
        except Empty:
            return None, self.again_s, False
        return call, None, call is None

    def end(self, call: Any, kind: str | None, body: bytes) -> list[Any]:
        self.final.append((kind, body))
        duplicates, self.duplicates = self.duplicates, []
        return duplicates

    def release(self, call: Any) -> Any:
        self.released += 1
        return self.following.pop(0) if self.following else None

    def counts(self) -> tuple[int, int]:
        return 1, 2

    def set_reply_topics(self, partitions: Any) -> None:
        self.topics.append(partitions)


class FakeEntry:
    """The messages of one job, committed with its offset; `submit` gives this handle, or raises this error."""

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome
        self.sent: list[tuple[str, Any, dict[str, Any]]] = []
        self.submitted: list[Any] = []

    def produce(self, topic: str, value: Any, **options: Any) -> None:
        self.sent.append((topic, value, options))

    def submit(self, job: Any, offset: int | None) -> Any:
        self.submitted.append((job, offset))
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


class FakeTransactions:
    """Makes entries with these outcomes, then with good ones."""

    def __init__(self, *outcomes: Any) -> None:
        self._outcomes = list(outcomes)
        self.made: list[FakeEntry] = []

    def entry(self) -> FakeEntry:
        self.made.append(FakeEntry(self._outcomes.pop(0) if self._outcomes else FakeHandle()))
        return self.made[-1]


class FakeMetrics:
    """Keeps what it is told of calls."""

    def __init__(self) -> None:
        self.ended: list[tuple[Any, ...]] = []
        self.acknowledged: list[tuple[str, float]] = []

    def call_ended(self, *call: Any) -> None:
        self.ended.append(call)

    def reply_acknowledged(self, method: str, reply_s: float) -> None:
        self.acknowledged.append((method, reply_s))


class FakeHost:
    """The process of a responder. `ended` are the fatal errors that it was stopped for."""

    def __init__(self, **parts: Any) -> None:
        self.settings = Settings(bootstrap_servers="127.0.0.1:1")
        self.app = SimpleNamespace(schemas=Schemas.none(), cleanups=BetweenJobs())
        self.member = self.transactions = self.tracer = self.metrics = self.call_log = None
        self.contexts = JobContexts()
        self.ended: list[BaseException] = []
        vars(self).update(parts)

    def stop_app(self, error: BaseException) -> None:
        self.ended.append(error)


class FakeMember:
    """A group member whose commits have this outcome."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error
        self.commits = 0

    def commit(self) -> Any:
        self.commits += 1
        return SimpleNamespace(wait=self._wait)

    def _wait(self, timeout_s: float) -> None:
        if self._error is not None:
            raise self._error


class Scheduled:
    """A scheduler that only closes."""

    def __init__(self, on_close: Callable[[], object]) -> None:
        self._on_close = on_close
        self.is_closed = threading.Event()

    def close(self) -> None:
        self.is_closed.set()
        self._on_close()
