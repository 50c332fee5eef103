"""Threads by owner: who started which thread, and which of them outlived its owner.

While an app runs, `threading.Thread.start` writes down on whose behalf a thread is started: the consumer whose hook or job
runs on the starting thread. A thread that user code started itself and that is alive after its consumer has gone is
reported once, with the place where it was started.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

LEAK_GRACE_S = 0.5
"""How long a thread may take to end after its owner has gone, before it counts as leaked."""

OWN_PREFIX = "awoke-"
APP = "awoke"
"""The owner of awoke's own threads."""

_current: ContextVar[tuple[Ledger, str, int, _Work] | None] = ContextVar("awoke_owner", default=None)
"""On whose behalf the running code starts threads: one for each thread, and for each task of an event loop."""


class _Work:
    """The job or hook that runs; None when it has ended: a task that outlives a job must not keep its messages."""

    __slots__ = ("running",)

    def __init__(self, running: Any) -> None:
        self.running = running


def current_work() -> Any:
    """Returns the `Job` or `HookJob` that the calling thread or task works for; None where there is none."""
    current = _current.get()
    return None if current is None else current[3].running


class ThreadEntry(NamedTuple):
    """A thread that is alive, and who owns it."""

    owner: str
    name: str
    started_at: str
    """File, line and function where it was started."""


class _Started(NamedTuple):
    owner: str
    generation: int
    """Which instance of the owner: a partition that comes back has another one."""
    thread: weakref.ref[threading.Thread]
    started_at: str


class Ledger:
    """The threads that were started on behalf of consumers. Any thread may call everything here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: list[_Started] = []

    @contextlib.contextmanager
    def acting_for(self, owner: str, generation: int, running: Any = None) -> Iterator[None]:
        """Write down threads that are started inside the block as this owner's, for the sake of a job or hook if given."""
        work = _Work(running)
        token = _current.set((self, owner, generation, work))
        try:
            yield
        finally:
            work.running = None
            _current.reset(token)

    def write_down(self, thread: threading.Thread, owner: str, generation: int, started_at: str) -> None:
        """Remember a thread and its owner."""
        entry = _Started(owner, generation, weakref.ref(thread), started_at)
        with self._lock:
            self._started = [each for each in self._started if _alive(each)] + [entry]

    def entries(self) -> list[ThreadEntry]:
        """Threads that are alive: owned ones, awoke's own, and those that nobody is known to own."""
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

    def census(self) -> dict[str, int]:
        """How many threads are alive, by owner; those of nobody under the empty name."""
        counts: dict[str, int] = {}
        for entry in self.entries():
            counts[entry.owner] = counts.get(entry.owner, 0) + 1
        return counts

    def leaked(self, owner: str, generation: int, grace_s: float = LEAK_GRACE_S) -> list[ThreadEntry]:
        """The threads of an owner that has gone which do not end within the grace. Blocks as long, if there are any.

        Each is returned once: afterwards the ledger keeps it under its owner's name, for the census.
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
    """Whether a thread runs, or is about to."""
    thread = started.thread()
    return thread is not None and (thread.is_alive() or thread.ident is None)


_install_lock = threading.Lock()
_installed = 0
_plain_start = threading.Thread.start


def _start(self: threading.Thread, *arguments: Any, **more: Any) -> None:
    current = _current.get()
    if current is not None:
        ledger, owner, generation, _ = current
        ledger.write_down(self, owner, generation, place_of_caller())
    _plain_start(self, *arguments, **more)


def place_of_caller() -> str:
    """File, line and function that started a thread: the nearest frame that is neither threading's nor this file's."""
    frames = [each for each in traceback.extract_stack() if each.filename not in {__file__, threading.__file__}]
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""


def install() -> None:
    """Watch the start of threads. Counted: each call wants its `uninstall`."""
    global _installed
    with _install_lock:
        _installed += 1
        if _installed == 1:
            threading.Thread.start = _start  # type: ignore[method-assign]


def uninstall() -> None:
    """Stop watching when nobody wants it any more."""
    global _installed
    with _install_lock:
        _installed -= 1
        if _installed == 0:
            threading.Thread.start = _plain_start  # type: ignore[method-assign]
