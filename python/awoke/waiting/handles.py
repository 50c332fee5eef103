"""Python's ways to wait for the engine: on an event loop, or by a callback on a thread of awoke's.

A completion posts a token to a mailbox, whose descriptor the loop watches. Many completions between two looks cost one
wake-up of the loop, and no thread of librdkafka's ever enters Python.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import select
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

from awoke._native import Call, DeliveryHandle, Mailbox, flush_now
from awoke.waiting.lone_step import is_idle
from awoke.waiting.raised import report

logger = logging.getLogger(__name__)

IN_JOB: ContextVar[bool] = ContextVar("awoke_in_job", default=False)
"""True in the task of a job: a test that has the clock does not wait for a job that waits for the clock itself."""

Result = TypeVar("Result", covariant=True)
Later = TypeVar("Later", bound="Pending[Any]")


class Delivery(NamedTuple):
    """Where the broker put a message."""

    topic: str
    partition: int
    offset: int
    """-1 when the broker was asked not to answer (`acks=0`)."""
    timestamp_ms: int | None
    """Milliseconds since 1970, as the broker keeps it."""


class Pending(Protocol[Result]):
    """Something of the engine's that has a result later."""

    def done(self) -> bool: ...
    def result(self) -> Result: ...
    def notify(self, mailbox: Mailbox, token: int) -> bool: ...


def resolve_once(future: asyncio.Future[None]) -> None:
    """Resolves a future that may be resolved or cancelled already."""
    if not future.done():
        future.set_result(None)


class Wait(asyncio.Future[None]):
    """A wait of one task, which can be woken within the present turn of the loop.

    A future wakes its task with a callback of the loop's: one turn more, and one look at the system's events. The
    mailbox wakes the task itself if it has nothing else to tell: several tasks take their turns beside what else is
    ready.
    """

    _task: tuple[Callable[[Any], object], Context | None] | None = None
    """Wakes the waiting task, in its context."""

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        if self._task is None and not self.done():
            self._task = (fn, context)
        else:
            super().add_done_callback(fn, context=context)

    def remove_done_callback(self, fn: Callable[[Any], object], /) -> int:
        is_task = self._task is not None and self._task[0] == fn
        if is_task:
            self._task = None
        return int(is_task) + super().remove_done_callback(fn)

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancels the wait. Not within this turn: another task may call this."""
        is_cancelled = super().cancel(msg)
        if is_cancelled:
            self._wake_later()
        return is_cancelled

    def end(self) -> None:
        """Ends the wait, if it has not ended: its task runs in the next turn."""
        if not self.done():
            self.set_result(None)
            self._wake_later()

    def end_now(self) -> None:
        """As `end`, but runs the task now. No task may be running."""
        if not self.done():
            self.set_result(None)
            task, self._task = self._task, None
            if task is not None:
                wake, context = task
                if context is None:
                    wake(self)
                else:
                    context.run(wake, self)

    def _wake_later(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self.get_loop().call_soon(task[0], self, context=task[1])


class LoopMailbox:
    """One event loop's mailbox, and the futures that wait for its tokens. Used by the loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._mailbox = Mailbox(of_loop=True)
        self._calls: dict[int, Callable[[], object]] = {}
        """The function that is called for each token, once or again, until it is forgotten."""
        self._waits: dict[int, Wait] = {}
        """The wait that each token ends."""
        self._tokens = itertools.count()
        self._lingering: list[DeliveryHandle] = []
        """Messages that tasks have begun to wait for in this turn of the loop: they are sent together at its end."""
        loop.add_reader(self._mailbox.fileno(), self._deliver)

    async def wait(self, pending: Pending[Any]) -> None:
        """Return when `pending` has its result."""
        loop = asyncio.get_running_loop()  # Not kept: what is kept for a loop must not keep it.
        if isinstance(pending, DeliveryHandle):
            self._end_linger(loop, pending)  # First: the message is on its way while the rest is made ready.
        token = next(self._tokens)
        ended = Wait(loop=loop)
        self._waits[token] = ended
        call_of_job = pending if isinstance(pending, Call) and IN_JOB.get() else None
        try:
            if call_of_job is not None:
                call_of_job.note_waiting_job(1)
            if pending.notify(self._mailbox, token):
                await ended
        finally:
            self._waits.pop(token, None)
            if call_of_job is not None:
                call_of_job.note_waiting_job(-1)

    @property
    def native(self) -> Mailbox:
        """The engine's mailbox, to which tokens are posted."""
        return self._mailbox

    def expect(self, call: Callable[[], object]) -> int:
        """Returns a token for which `call` is called, each time that it is posted, until it is forgotten."""
        token = next(self._tokens)
        self._calls[token] = call
        return token

    def forget(self, token: int) -> None:
        """Calls nothing for a token any more."""
        self._calls.pop(token, None)

    def _end_linger(self, loop: asyncio.AbstractEventLoop, handle: DeliveryHandle) -> None:
        """Has a message sent without lingering, because the loop is about to wait for its answer.

        Where nothing else is to run, no other message can follow in this turn of the loop: it is sent now, which saves
        the loop a turn. Where a loop does not tell (it is not asyncio's own), it is sent at the end of the turn.
        """
        if not self._lingering:
            if is_idle(loop):
                flush_now([handle])
                return
            loop.call_soon(self._flush)
        self._lingering.append(handle)

    def _flush(self) -> None:
        handles, self._lingering = self._lingering, []
        flush_now(handles)

    def _deliver(self) -> None:
        tokens = self._mailbox.drain()
        is_alone = len(tokens) == 1
        for token in tokens:
            wait = self._waits.get(token)
            if wait is None:
                call = self._calls.get(token)
                if call is not None:
                    call()
            elif is_alone:
                wait.end_now()
            else:
                wait.end()


_mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopMailbox] = WeakKeyDictionary()


def mailbox_of(loop: asyncio.AbstractEventLoop) -> LoopMailbox:
    """Returns the mailbox of the running loop, made on first use."""
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _mailboxes[loop] = LoopMailbox(loop)
    return mailbox


async def resolve(pending: Pending[Result]) -> Result:
    """The result of `pending`, awaited on the running loop; what `await handle` does."""
    if not pending.done():
        await mailbox_of(asyncio.get_running_loop()).wait(pending)
    return pending.result()


class CallbackThread:
    """Runs callbacks of what has a result later; lives while any is outstanding.

    1. Wait until the mailbox has tokens.
    2. Run the callback of each; what it raises is logged.
    3. End when no callback is left.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mailbox = Mailbox()
        self._calls: dict[int, tuple[Pending[Any], Callable[[Any], object], Context]] = {}
        """Each callback with the context in which it was added: it runs in there, as asyncio's do."""
        self._tokens = itertools.count()
        self._is_running = False

    def add(self, handle: Pending[Any], callback: Callable[[Any], object]) -> None:
        """Run the callback when the result is there, which may be now."""
        with self._lock:
            token = next(self._tokens)
            self._calls[token] = (handle, callback, copy_context())
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="awoke-callbacks", daemon=True).start()
        if not handle.notify(self._mailbox, token):
            self._mailbox.post(token)

    def _run(self) -> None:
        while True:
            select.select([self._mailbox.fileno()], [], [])
            for token in self._mailbox.drain():
                self._call(token)
            with self._lock:
                if not self._calls:
                    self._is_running = False
                    return

    def _call(self, token: int) -> None:
        with self._lock:
            handle, callback, context = self._calls.pop(token)
        try:
            context.run(callback, handle)
        except BaseException as error:
            report(error, logger, "a callback of %r failed", handle)


_callbacks = CallbackThread()


def call_back(handle: Later, callback: Callable[[Later], object]) -> None:
    """Call `callback(handle)` on a thread of awoke's when the result is there."""
    _callbacks.add(handle, callback)


def _forget_threads() -> None:
    """In a forked child the parent's threads are gone."""
    global _callbacks
    _callbacks = CallbackThread()
    _mailboxes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
