"""Records threads by owner, and finds those that outlive their owner.

While an app runs, a wrapper around `threading.Thread.start` records the owner of each thread: the consumer whose hook
or job runs on the starting thread. A thread that user code started itself and that is alive after its consumer has gone
is reported once, with the place where it was started. Other tools wrap `Thread.start`, too (OpenTelemetry, Sentry),
before or after awoke: each wrapper calls the one that it found, and none takes another away.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Container, Iterator, Mapping
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    import asyncio  # A supervisor has a ledger, too, and loads neither an event loop nor a Kafka client.

    from awoke._native import JobRows, Message

LEAK_GRACE_S = 0.5
"""A thread that ends this much later than its owner does not count as leaked."""

OWN_PREFIX = "awoke-"
OF_EVENT_LOOPS = "asyncio_"
"""The names of the threads of an event loop's executor: they end with the loop, whichever task they began for."""
APP = "awoke"
"""The owner of awoke's own threads."""

acting: ContextVar[Acting | None] = ContextVar("awoke_owner", default=None)
"""The owner of the threads that the running code starts: one for each thread, and for each task of an event loop."""


def current_work() -> Any:
    """Returns the `Job` or `HookJob` that the calling thread or task works for; None where there is none."""
    current = acting.get()
    return None if current is None else current.running


def current_app() -> str | None:
    """Returns the app that the calling thread or task works for, or else the one that runs in this process; None if
    none runs, or several."""
    current = acting.get()
    if current is not None and current.ledger.app:
        return current.ledger.app
    return (_running[0] or None) if len(_running) == 1 else None


class Acting(msgspec.Struct, eq=False):
    """An owner, and what runs for it now. A `Struct`, because one is made for each job: it costs no call of Python."""

    ledger: Ledger
    owner: str
    generation: int
    running: Any
    """The job or hook; None when it has ended: a task that outlives a job must not keep its messages."""
    thread: int
    """The identifier of the thread on which it runs."""
    task: asyncio.Task[Any] | None = None
    """The task as which a job of an `async def` handler runs, until it has ended."""
    message: Message[Any] | None = None
    """The message that the job's handler is called with now. Only what runs itself may ask: see `is_here`."""
    failed_in: Context | None = None
    """The context of the message that has failed: what is told about it is told in there."""
    rows: Mapping[str, JobRows] | None = None
    """The rows of the tables that the job's route names, by the name of the table."""
    keys: Container[bytes | None] = ()
    """The keys of the job's messages, of a class with lanes that writes rows."""

    def is_here(self) -> bool:
        """Tells whether the caller is what runs, and not a task or another thread that it has started.

        Those share this object, and some outlive the message for which they were started. By then, `message` is a
        later one, which is not theirs.
        """
        if self.task is not None:
            from asyncio import current_task  # Loaded already, where there is a task.

            return self.thread == threading.get_ident() and self.task is current_task()
        return self.thread == threading.get_ident()


class ThreadEntry(NamedTuple):
    """A thread that is alive, and its owner."""

    owner: str
    name: str
    started_at: str
    """The file, line and function that started it."""


class _Started(NamedTuple):
    owner: str
    generation: int
    """The generation of the owner: a partition that is assigned again has another one."""
    thread: weakref.ref[threading.Thread]
    started_at: str


class Ledger:
    """The threads that were started on behalf of consumers. Any thread may call everything here."""

    def __init__(self, app: str = "") -> None:
        self.app = app
        """The name of the app, if the ledger is one's."""
        self._lock = threading.Lock()
        self._started: list[_Started] = []

    @contextlib.contextmanager
    def acting_for(self, owner: str, generation: int, running: Any = None) -> Iterator[None]:
        """Records threads that are started inside the block as this owner's, for the sake of a job or hook if given."""
        current = Acting(self, owner, generation, running, threading.get_ident())
        token = acting.set(current)
        try:
            yield
        finally:
            current.running = None
            acting.reset(token)

    def write_down(self, thread: threading.Thread, owner: str, generation: int, started_at: str) -> None:
        """Records a thread and its owner. Does not block."""
        entry = _Started(owner, generation, weakref.ref(thread), started_at)
        with self._lock:
            self._started = [each for each in self._started if _alive(each)] + [entry]

    def entries(self) -> list[ThreadEntry]:
        """Returns the threads that are alive: of consumers, awoke's own, and those without a known owner. Does not
        block."""
        with self._lock:
            started = {each.thread(): each for each in self._started}
        found = []
        for thread in threading.enumerate():
            known = started.get(thread)
            if known is not None:
                found.append(ThreadEntry(known.owner, thread.name, known.started_at))
            else:
                found.append(ThreadEntry(APP if thread.name.startswith(OWN_PREFIX) else "", thread.name, ""))
        return sorted(found)

    def counts(self) -> dict[str, int]:
        """Returns the number of live threads by owner; threads without a known owner are under the empty name."""
        counts: dict[str, int] = {}
        for entry in self.entries():
            counts[entry.owner] = counts.get(entry.owner, 0) + 1
        return counts

    def leaked(self, owner: str, generation: int, grace_s: float = LEAK_GRACE_S) -> list[ThreadEntry]:
        """Returns the threads of an ended owner that do not end within the grace. Blocks up to that long, if there
        are any.

        Each is returned once: afterwards the ledger still counts it under its owner's name.
        """
        deadline_s = time.monotonic() + grace_s
        with self._lock:
            mine = [each for each in self._started if (each.owner, each.generation) == (owner, generation)]
        leaked = []
        for each in mine:
            thread = each.thread()
            if thread is None or thread is threading.current_thread():
                continue
            thread.join(max(0.0, deadline_s - time.monotonic()))
            if thread.is_alive():
                leaked.append(ThreadEntry(owner, thread.name, each.started_at))
        return leaked


def _alive(started: _Started) -> bool:
    """Tells whether a thread runs, or is about to."""
    thread = started.thread()
    return thread is not None and (thread.is_alive() or thread.ident is None)


_install_lock = threading.Lock()
_running: list[str] = []
"""The apps that run in this process."""
_wrapper: Callable[..., None] | None = None
"""What records the starts of threads at the moment; None while no app runs."""
_found: Any = None
"""What `_wrapper` has replaced: Python's own function, or the wrapper of another tool."""


def _wrapped(found: Any) -> Callable[..., None]:
    """Returns `Thread.start` as it was found, with a record of each start while this is the module's wrapper.

    It is called as the attribute of the thread that it is: some tools' wrappers are no functions, and know by that for
    which thread they are called.

    Threads of awoke's that happen to start while a job runs, as the one for callbacks, are not the consumer's; nor are
    those of the executor of an event loop, which awoke's own calls use, too.
    """

    @functools.wraps(found)
    def start(self: threading.Thread, *arguments: Any, **more: Any) -> None:
        current = acting.get()
        if current is not None and _wrapper is start and not self.name.startswith((OWN_PREFIX, OF_EVENT_LOOPS)):
            current.ledger.write_down(self, current.owner, current.generation, place_of_caller())
        found.__get__(self, type(self))(*arguments, **more)

    return start


STARTERS = frozenset({__name__, "threading", "wrapt", "opentelemetry", "sentry_sdk", "ddtrace"})
"""The modules, or the packages, whose functions start threads for others, or are around `Thread.start`."""


def place_of_caller() -> str:
    """Returns file, line and function of the nearest caller that starts a thread for itself."""
    frame = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not STARTERS & {name, name.partition(".")[0]}:
            return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def install(app: str = "") -> None:
    """Records each start of a thread from now on, while an app runs or is imported. Each call needs an `uninstall`."""
    global _wrapper, _found
    with _install_lock:
        _running.append(app)
        if len(_running) == 1:
            _found = vars(threading.Thread)["start"]
            _wrapper = threading.Thread.start = _wrapped(_found)  # type: ignore[method-assign]


def uninstall(app: str = "") -> None:
    """Ends the recording with the last app. Where another tool has wrapped the wrapper, it stays, and does nothing."""
    global _wrapper, _found
    with _install_lock:
        _running.remove(app)
        if not _running and _wrapper is not None:
            if vars(threading.Thread)["start"] is _wrapper:
                threading.Thread.start = _found  # type: ignore[method-assign]
            _wrapper = _found = None
