"""Sends the replies of calls, and ends their jobs: when the last reply is acknowledged, or committed."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from awoke import _native
from awoke._native import DeliveryHandle, IncomingCall, Job, PendingStep
from awoke.declare.handlers import check_ran
from awoke.errors import (
    TOO_LARGE_CODE,
    AwokeError,
    ClosedError,
    EncodeError,
    FencedError,
    KafkaError,
    MessageTooLarge,
    ProducerFenced,
    RpcError,
    is_refused_for_good,
)
from awoke.observe.events import Events, RpcFailed, RpcReplyRefused
from awoke.payloads.formats import json
from awoke.produce.transaction import TransactionEntry
from awoke.rpc import protocol
from awoke.rpc.errors import Cancelled, Internal, ResourceExhausted, error_of
from awoke.rpc.responder.host import Host
from awoke.rpc.responder.methods import Rpc
from awoke.waiting.handles import call_back

logger = logging.getLogger(__name__)

OnEnd = Callable[[bool], None]
"""Is told whether the reply of a call was committed."""

RETRY_S = 0.2
"""A call whose reply failed is executed again after this time, if its caller still waits."""

CANCELLED = "the call was cancelled"
"""The message to the caller of a cancelled call: another client may have cancelled it."""

OWN_REPLY, ERROR_INSTEAD, NO_REPLY = range(3)
"""The content of a call's transaction: its reply; an error, after that was refused; nothing, after the error was,
too."""


class Answers:
    """The answers of one responder. Any thread; blocks only for room in the producer's queue."""

    def __init__(
        self, host: Host, rpc: Rpc, events: Events, replies: _native.CallReplies, admission: _native.Admission
    ) -> None:
        self._host, self._rpc, self._events = host, rpc, events
        self._options = rpc.settings
        self._replies, self._admission = replies, admission
        self._is_exactly_once = rpc.settings.mode == "exactly_once"

    def send_result(self, call: IncomingCall, result: Any) -> None:
        """Answers a call with the result of its method, or with the end of its stream.

        Raises:
            Internal: the result can't be written as JSON. HandlerDidNotRun: it still has to be awaited or iterated.
        """
        if call.target.is_stream:
            self.finish(call, protocol.END, b"", None)
        else:
            self.finish(call, protocol.REPLY, encoded(result, call.method), None)

    def send_error(self, call: IncomingCall, error: BaseException, is_shared: bool = True) -> None:
        """Answers a call with the error of its method. Raises nothing: the calling thread has other calls to serve.

        Waiting duplicates get the same error, unless it is this call's own: its time was over, or it was cancelled.
        """
        try:
            self._send_error(call, error, is_shared and not call.is_cancelled)
        except Exception:
            logger.exception("a call of %s could not be answered; it is executed again", call.method)
            self.give_back(call)
        if not isinstance(error, Exception):
            self._host.stop_app(error)

    def leave_to_another(self, call: IncomingCall) -> None:
        """Ends a call, and its waiting duplicates, without a reply: another responder answers them."""
        for each in (call, *self._admission.end(call, None, b"")):
            self._replies.settle(each, 0.0)

    def give_back(self, call: IncomingCall, delay_s: float = 0.0) -> None:
        """Gives a call and its waiting duplicates back: the partition's owner executes them after the delay."""
        for each in (call, *self._admission.end(call, None, b"")):
            self._replies.give_back(each, delay_s)

    def _send_error(self, call: IncomingCall, error: BaseException, is_shared: bool) -> None:
        told = self._rpc.error_of(error)
        self._drop_records(call)
        trace = None
        if told is not error and isinstance(told, Internal):
            self._events.emit(RpcFailed(method=call.method, caller=call.caller, error=error))
            trace = "".join(traceback.format_exception(error)) if self._options.tracebacks else None
        try:
            body = protocol.problem_of(told, trace)
        except EncodeError:
            told.details = None  # They can't be written as JSON; the rest can.
            body = protocol.problem_of(told, trace)
        self.finish(call, protocol.ERROR, body, told.code, is_shared)

    def _drop_records(self, call: IncomingCall) -> None:
        """Drops the messages that a call sent before it failed."""
        if call.transaction_entry is not None and self._host.transactions is not None:
            call.transaction_entry = self._host.transactions.entry()

    def finish(self, call: IncomingCall, kind: str, body: bytes, code: str | None, is_shared: bool = True) -> None:
        """Sends the last reply of a call, then ends its job.

        Waiting duplicates get the reply, too; where it is not shared, they are executed. A call that was cancelled gets
        that error: its method may have stopped halfway.
        """
        if call.was_cancelled and code != Cancelled.code:
            self._drop_records(call)
            kind, body, code = protocol.ERROR, protocol.problem_of(Cancelled(CANCELLED)), Cancelled.code
            is_shared = False
        outcome = code or "ok"
        if self._is_exactly_once:
            on_end = partial(self._end_duplicates, call, kind, body, code, is_shared)
            self.answer(call, kind, body, code, outcome, on_end)
        else:
            self.answer(call, kind, body, code, outcome)
            self._end_duplicates(call, kind, body, code, is_shared, True)

    def answer(
        self,
        call: IncomingCall,
        kind: str,
        body: bytes,
        code: str | None,
        outcome: str,
        on_end: OnEnd = lambda _: None,
    ) -> None:
        """Sends the last reply of a call, then ends its job. `on_end` is told once whether the reply was committed."""
        try:
            try:
                self.send(call, kind, body, code)
            except AwokeError as error:
                if not is_refused_for_good(error):
                    raise
                self._report_refused(call, error)
            self._end(call, outcome, on_end)
        except AwokeError as error:
            logger.warning("the reply to a call of %s could not be sent: %s", call.method, error)
            on_end(False)
            self._replies.give_back(call, RETRY_S)

    def _end_duplicates(
        self, call: IncomingCall, kind: str, body: bytes, code: str | None, is_shared: bool, is_committed: bool
    ) -> None:
        """Records the answer of a call. Its waiting duplicates get it, or are executed if it is not final for them."""
        is_final = is_committed and is_shared
        for each in self._admission.end(call, kind if is_final and code is None else None, body):
            if not is_final:
                self._replies.give_back(each, 0.0)
                continue
            try:
                self.answer(each, kind, body, code, code or "ok")
            except Exception:  # Of a middleware, say; the other duplicates are to be answered all the same.
                logger.exception("a call of %s could not be answered; it is executed again", each.method)
                self._replies.give_back(each, RETRY_S)

    def send(self, call: IncomingCall, kind: str, body: bytes, code: str | None = None) -> None:
        """Sends one reply.

        Raises:
            AwokeError: it can't be sent.
        """
        transactions = self._host.transactions
        if self._is_exactly_once and transactions is not None:
            self._add_reply(call, call.transaction_entry or transactions.entry(), kind, body, code)
            return
        try:
            self._replies.send(call, kind, body, code)
        except MessageTooLarge as error:
            told = too_large(error)
            if kind == protocol.ITEM:
                raise told from None  # The stream ends with it.
            if kind == protocol.ERROR and code is not None:
                told = error_of(code, f"the error is too large to be sent: {error}")
            self._replies.send(call, protocol.ERROR, protocol.problem_of(told), told.code)

    def _report_refused(self, call: IncomingCall, error: AwokeError) -> None:
        """Reports a reply that is refused for good: its call is over, and is not executed again."""
        topic, partition, offset = call.place
        code, name = (error.code, error.code_name) if isinstance(error, KafkaError) else (TOO_LARGE_CODE, "")
        self._events.emit(
            RpcReplyRefused(topic=topic, partition=partition, offset=offset, code=code, code_name=name, text=str(error))
        )

    def _add_reply(self, call: IncomingCall, entry: TransactionEntry, kind: str, body: bytes, code: str | None) -> None:
        call.transaction_entry = entry
        headers = self._replies.headers(call, kind, body, code)
        if headers is not None and call.reply_to is not None:
            topic, partition = call.reply_to
            entry.produce(topic, body, partition=partition, headers=headers)

    def _end(self, call: IncomingCall, outcome: str, on_end: OnEnd) -> None:
        """Ends a call after its last reply."""
        metrics, log = self._host.metrics, self._host.call_log
        if metrics is not None or log is not None:
            method = "" if call.target is None else call.method
            _, _, queued_s, ran_s = call.times_s
            if metrics is not None:
                metrics.call_ended(method, outcome, queued_s, ran_s)
            if log is not None:
                log.ended(method, outcome, queued_s, ran_s)
            last = call.last
            if last is not None:
                call_back(last, partial(self._on_acknowledged, call.method, time.perf_counter()))
        if call.transaction_entry is None:
            self._replies.settle(call, RETRY_S)
        else:
            self._replies.close(call)
            self._submit_own(call, call.transaction_entry, on_end)

    def _on_acknowledged(self, method: str, sent_s: float, _: DeliveryHandle) -> None:
        metrics, log, reply_s = self._host.metrics, self._host.call_log, time.perf_counter() - sent_s
        if metrics is not None:
            metrics.reply_acknowledged(method, reply_s)
        if log is not None:
            log.acknowledged(method, reply_s)

    def _submit_own(self, call: IncomingCall, entry: TransactionEntry, on_end: OnEnd) -> None:
        job = self._replies.take_job(call)
        if job is None:
            on_end(False)
            return
        job.leave_slot(True)
        self._submit(call, job, entry, on_end, OWN_REPLY)

    def _submit(self, call: IncomingCall, job: Job, entry: TransactionEntry, on_end: OnEnd, content: int) -> None:
        try:
            committed = entry.submit(job, None)
        except (ClosedError, FencedError):
            on_end(False)
            self._retry(call, job, 0.0)  # The next owner of the partition executes it.
        else:
            call_back(committed, partial(self._on_committed, call, job, on_end, content))

    def _retry(self, call: IncomingCall, job: Job, delay_s: float) -> None:
        """Gives a job back that was taken from its call."""
        job.retry(delay_s)
        self._replies.give_back(call, delay_s)

    def _on_committed(self, call: IncomingCall, job: Job, on_end: OnEnd, content: int, committed: PendingStep) -> None:
        """Ends a call whose transaction has ended. Runs on awoke's callback thread."""
        error = failure_of(committed)
        if error is None:
            with contextlib.suppress(FencedError):  # The new owner of the partition sees the call, too.
                job.complete()
            self._replies.settle(call, RETRY_S)
        elif isinstance(error, (ClosedError, FencedError, ProducerFenced)):
            self._retry(call, job, 0.0)
        elif is_refused_for_good(error) and content != NO_REPLY:
            self._submit_instead(call, job, error, content + 1)
        else:
            logger.warning("a reply was not committed, its call is executed again: %s", error)
            self._retry(call, job, RETRY_S)
        if isinstance(error, ProducerFenced):
            self._host.stop_app(error)
        on_end(error is None)

    def _submit_instead(self, call: IncomingCall, job: Job, error: Exception, content: int) -> None:
        """Submits another transaction for a call whose own was refused for good, as it would be if executed again."""
        assert self._host.transactions is not None
        entry = self._host.transactions.entry()
        if content == ERROR_INSTEAD:
            told = error_instead(error, call.reply_to)
            self._add_reply(call, entry, protocol.ERROR, protocol.problem_of(told), told.code)
        elif isinstance(error, AwokeError):
            self._report_refused(call, error)
        self._submit(call, job, entry, lambda _: None, content)


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
        return too_large(error)
    return Internal("a message that the call sent was refused; the service's log says more")


def too_large(error: MessageTooLarge) -> RpcError:
    """Returns the error for a caller whose reply is larger than messages may be."""
    return ResourceExhausted(f"the reply is too large: {error}", is_retryable=False)


def encoded(result: Any, name: str) -> bytes:
    """Returns a result of the method of this name as a body.

    Raises:
        Internal: it can't be written as JSON. HandlerDidNotRun: it is a coroutine, another awaitable or a generator.
    """
    if result is not None:
        check_ran(result, name)
    try:
        return json.encode(result)
    except EncodeError as error:
        raise Internal(f"the result can't be written as JSON: {error}") from error
