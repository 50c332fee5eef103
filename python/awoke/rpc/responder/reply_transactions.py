"""The end of a call whose reply, messages and offset are one transaction: it is committed, replaced, or tried again."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from awoke import _native
from awoke._native import IncomingCall, Job, PendingStep
from awoke.errors import (
    AwokeError,
    ClosedError,
    FencedError,
    MessageTooLarge,
    ProducerFenced,
    RpcError,
    is_refused_for_good,
)
from awoke.produce.transaction import OpenEntry
from awoke.rpc import protocol
from awoke.rpc.errors import Internal, reply_too_large
from awoke.rpc.responder.host import ResponderHost
from awoke.waiting.handles import call_back

logger = logging.getLogger(__name__)

RETRY_S = 0.2
"""A call whose reply, or its transaction, failed is executed again after this time, if its caller still waits."""

OWN_REPLY, ERROR_INSTEAD, NO_REPLY = range(3)
"""The content of a call's transaction: its reply; an error, after that was refused; nothing, after the error was,
too."""

OnEnd = Callable[[bool], None]
"""Is told whether the reply of a call was committed."""

OnRefused = Callable[[IncomingCall, AwokeError], None]
"""Is told of a call that ends without a reply, because the brokers refuse it for good."""


class Submission(NamedTuple):
    """A call that ends with its transaction."""

    call: IncomingCall
    job: Job
    content: int
    on_end: OnEnd


class ReplyTransactions:
    """The transactions of one responder's calls. Any thread; nothing blocks."""

    def __init__(self, host: ResponderHost, replies: _native.CallReplies, on_refused: OnRefused) -> None:
        self._host, self._replies, self._on_refused = host, replies, on_refused

    def entry(self) -> OpenEntry:
        """Returns an empty transaction."""
        assert self._host.transactions is not None
        return self._host.transactions.entry()

    def add_reply(self, call: IncomingCall, kind: str, body: bytes, code: str | None) -> None:
        """Adds a reply to the transaction of a call."""
        if call.transaction_entry is None:
            call.transaction_entry = self.entry()
        self._add(call, call.transaction_entry, kind, body, code)

    def submit(self, call: IncomingCall, on_end: OnEnd) -> None:
        """Ends a call with its transaction. `on_end` is told once whether that was committed."""
        self._replies.close(call)
        job = self._replies.take_job(call)
        if job is None:
            on_end(False)
            return
        job.leave_slot(True)
        self._submit(call.transaction_entry, Submission(call, job, OWN_REPLY, on_end))

    def _add(self, call: IncomingCall, entry: OpenEntry, kind: str, body: bytes, code: str | None) -> None:
        headers = self._replies.headers(call, kind, body, code)
        if headers is not None and call.reply_to is not None:
            topic, partition = call.reply_to
            entry.produce(topic, body, partition=partition, headers=headers)

    def _submit(self, entry: OpenEntry, submission: Submission) -> None:
        try:
            committed = entry.submit(submission.job, None)
        except (ClosedError, FencedError):
            submission.on_end(False)
            self._retry(submission, 0.0)  # The next owner of the partition executes it.
        else:
            call_back(committed, partial(self._on_committed, submission))

    def _on_committed(self, submission: Submission, committed: PendingStep) -> None:
        """Ends a call whose transaction has ended. Runs on awoke's callback thread."""
        error = failure_of(committed)
        if error is None:
            with contextlib.suppress(FencedError):  # The new owner of the partition sees the call, too.
                submission.job.complete()
            self._replies.settle(submission.call, RETRY_S)
        elif isinstance(error, (ClosedError, FencedError, ProducerFenced)):
            self._retry(submission, 0.0)
        elif is_refused_for_good(error) and submission.content != NO_REPLY:
            self._replace(submission, error)
        else:
            logger.warning("a reply was not committed, its call is executed again: %s", error)
            self._retry(submission, RETRY_S)
        if isinstance(error, ProducerFenced):
            self._host.stop_app(error)
        submission.on_end(error is None)

    def _replace(self, submission: Submission, error: Exception) -> None:
        """Submits another transaction for a call whose own was refused for good, as it would be if executed again."""
        entry, call, content = self.entry(), submission.call, submission.content + 1
        if content == ERROR_INSTEAD:
            told = error_instead(error, call.reply_to)
            self._add(call, entry, protocol.ERROR, protocol.problem_of(told), told.code)
        elif isinstance(error, AwokeError):
            self._on_refused(call, error)
        self._submit(entry, Submission(call, submission.job, content, lambda is_committed: None))

    def _retry(self, submission: Submission, delay_s: float) -> None:
        """Gives a job back that was taken from its call."""
        submission.job.retry(delay_s)
        self._replies.give_back(submission.call, delay_s)


def failure_of(committed: PendingStep) -> Exception | None:
    """Returns why a transaction was not committed; None if it was."""
    try:
        committed.result()
    except Exception as error:
        return error
    return None


def error_instead(error: Exception, reply_to: tuple[str, int] | None) -> RpcError:
    """Returns the error for a caller whose reply was in a refused transaction: for the reply, or for another
    message."""
    if isinstance(error, MessageTooLarge) and reply_to is not None and error.topic == reply_to[0]:
        return reply_too_large(error)
    return Internal("a message that the call sent was refused; the service's log says more")
