"""The end of a call: one place for all of its ways, each once, and with it that of the duplicates that wait for it.

reply, fail, reject, end_unexecuted ─▶ end ─▶ last reply ─▶ acknowledged, or committed ─▶ job completed
leave_to_another, drop ─────────────────────────────────────────────────────────────────▶ job completed
give_back ──────────────────────────────────────────────────────────────────────────────▶ executed again
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from functools import partial

import msgspec

from awoke import _native
from awoke._native import DeliveryHandle, IncomingCall
from awoke.errors import (
    TOO_LARGE_CODE,
    AwokeError,
    KafkaError,
    MessageTooLarge,
    RpcError,
    end_in,
    is_refused_for_good,
)
from awoke.observe.events import Events, RpcFailed, RpcRefused, RpcReplyRefused
from awoke.rpc import protocol
from awoke.rpc.context import ForAnother
from awoke.rpc.errors import (
    Cancelled,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
    error_of,
    reply_too_large,
)
from awoke.rpc.responder.host import ResponderHost
from awoke.rpc.responder.methods import Rpc
from awoke.rpc.responder.reply_transactions import RETRY_S, OnEnd, ReplyTransactions
from awoke.rpc.responder.schema_loads import NotExecuted
from awoke.waiting.handles import call_back

logger = logging.getLogger(__name__)

CANCELLED = "the call was cancelled"
"""The message to the caller of a cancelled call: another client may have cancelled it."""


class PartitionWithdrawn(Exception):
    """The partition of a call is given back: its next owner executes the call, or this process after `delay_s`."""

    def __init__(self, delay_s: float = 0.0) -> None:
        super().__init__()
        self.delay_s = delay_s


class LastReply(msgspec.Struct, frozen=True, gc=False):
    """What the caller of a call is told in the end."""

    kind: str
    body: bytes
    code: str | None = None
    """That of an error."""
    is_shared: bool = True
    """True if waiting duplicates get it, too. Else they are executed, because it is this call's own: it was cancelled,
    say."""


WAS_CANCELLED = LastReply(protocol.ERROR, protocol.problem_of(Cancelled(CANCELLED)), Cancelled.code, is_shared=False)


class Endings:
    """Ends the calls of one responder. Any thread; blocks only for room in the producer's queue."""

    def __init__(
        self,
        host: ResponderHost,
        rpc: Rpc,
        events: Events,
        replies: _native.CallReplies,
        admission: _native.Admission,
    ) -> None:
        self._host, self._rpc, self._events = host, rpc, events
        self._replies, self._admission = replies, admission
        self.is_closing = False
        """True when the responder cancels the calls that still run on its event loop."""
        self._transactions: ReplyTransactions | None = None
        if rpc.settings.mode == "exactly_once":
            self._transactions = ReplyTransactions(host, replies, self._report_refused)

    # With a reply.

    def reply(self, call: IncomingCall, kind: str, body: bytes) -> None:
        """Ends a call with the result of its method, or with the end of its stream."""
        self.end(call, LastReply(kind, body))

    def fail(self, call: IncomingCall, error: BaseException) -> None:
        """Ends a call with what it raised. Raises nothing: the calling thread has other calls to serve."""
        end = end_in(error)
        is_ended = self.is_closing or call.is_cancelled  # Else user code has cancelled a task of its own.
        is_stopped = is_ended and call.target.is_async and isinstance(error, asyncio.CancelledError)
        if is_stopped:
            error = Unavailable("the responder has stopped")
        elif call.target.is_async and isinstance(error, TimeoutError) and call.remaining_s <= 0:
            error = out_of_time(call)
        try:
            if isinstance(error, ForAnother):
                self.leave_to_another(call)
            elif isinstance(error, PartitionWithdrawn):
                self.give_back(call, error.delay_s)
            elif isinstance(error, NotExecuted):
                self._refuse(call, error.error)
            else:
                self.end(call, self._explained(call, error, not (is_stopped or call.is_cancelled)))
        except BaseException:
            logger.exception("a call of %s could not be answered; it is executed again", call.method)
            self.give_back(call, RETRY_S)
        if end is not None:
            self._host.stop_app(end)

    def reject(self, call: IncomingCall, reason: str) -> None:
        """Ends a call that is not executed for a reason of the engine's, which its caller is told."""
        self._note(reason)
        self._refuse(call, rejection(call, reason, self._rpc))

    def end_unexecuted(self, call: IncomingCall, kind: str, reason: str) -> None:
        """Ends an unexecuted call: "rejected" or "invalid" with a reason, or "cached" with the kind of the reply."""
        if kind == "cached":
            self._answer(call, LastReply(reason, call.cached_body or b""), "cached")
        elif kind == "rejected":
            self.reject(call, reason)
        else:
            self.drop(call, reason)

    # Without one.

    def drop(self, call: IncomingCall, reason: str) -> None:
        """Ends a call, and reports it, without a reply: its sender may not be the caller that it names."""
        self._note(reason)
        _, partition, offset = call.place
        self._events.emit(RpcRefused(reason=reason, partition=partition, offset=offset))
        self._replies.settle(call, 0.0)

    def leave_to_another(self, call: IncomingCall) -> None:
        """Ends a call, and its waiting duplicates, without a reply: another responder answers them."""
        for ended in (call, *self._admission.end(call, None, b"")):
            self._replies.settle(ended, 0.0)

    def give_back(self, call: IncomingCall, delay_s: float = 0.0) -> None:
        """Gives a call and its waiting duplicates back: the partition's owner executes them after the delay."""
        for ended in (call, *self._admission.end(call, None, b"")):
            self._replies.give_back(ended, delay_s)

    # What all of them share.

    def send(self, call: IncomingCall, kind: str, body: bytes, code: str | None = None) -> None:
        """Sends one reply.

        Raises:
            AwokeError: it can't be sent.
        """
        if self._transactions is not None:
            self._transactions.add_reply(call, kind, body, code)
            return
        try:
            self._replies.send(call, kind, body, code)
        except MessageTooLarge as error:
            told = reply_too_large(error)
            if kind == protocol.ITEM:
                raise told from None  # The stream ends with it.
            if kind == protocol.ERROR and code is not None:
                told = error_of(code, f"the error is too large to be sent: {error}")
            self._replies.send(call, protocol.ERROR, protocol.problem_of(told), told.code)

    def end(self, call: IncomingCall, last: LastReply) -> None:
        """Sends the last reply of a call, then ends its job, and its waiting duplicates.

        A call that was cancelled gets that error: its method may have stopped halfway.
        """
        if call.was_cancelled and last.code != Cancelled.code:
            self._drop_records(call)
            last = WAS_CANCELLED
        outcome = last.code or "ok"
        if self._transactions is None:
            self._answer(call, last, outcome)
            self._end_duplicates(call, last, True)
        else:
            self._answer(call, last, outcome, partial(self._end_duplicates, call, last))

    def _answer(
        self, call: IncomingCall, last: LastReply, outcome: str, on_end: OnEnd = lambda is_committed: None
    ) -> None:
        """Sends the last reply of a call, then ends its job. Without transactions, `on_end` need not be told."""
        try:
            try:
                self.send(call, last.kind, last.body, last.code)
            except AwokeError as error:
                if not is_refused_for_good(error):
                    raise
                self._report_refused(call, error)
            self._count(call, outcome)
            if self._transactions is None:
                self._replies.settle(call, RETRY_S)
            else:
                self._transactions.submit(call, on_end)
        except AwokeError as error:
            logger.warning("the reply to a call of %s could not be sent: %s", call.method, error)
            on_end(False)
            self._replies.give_back(call, RETRY_S)

    def _end_duplicates(self, call: IncomingCall, last: LastReply, is_committed: bool) -> None:
        """Records the answer of a call. Its waiting duplicates get it, or are executed if it is not final for them."""
        is_final = is_committed and last.is_shared
        kept_kind = last.kind if is_final and last.code is None else None
        for duplicate in self._admission.end(call, kept_kind, last.body):
            if not is_final:
                self._replies.give_back(duplicate, 0.0)
                continue
            try:
                self._answer(duplicate, last, last.code or "ok")
            except BaseException:  # Whatever it is: the other duplicates are to be answered all the same.
                logger.exception("a call of %s could not be answered; it is executed again", duplicate.method)
                self._replies.give_back(duplicate, RETRY_S)

    def _refuse(self, call: IncomingCall, error: RpcError) -> None:
        """Ends a call that was not executed. Its waiting duplicates are: the reason is its own."""
        body = protocol.problem_of(error, is_rejected=True)
        self.end(call, LastReply(protocol.ERROR, body, error.code, is_shared=False))

    def _explained(self, call: IncomingCall, error: BaseException, is_shared: bool) -> LastReply:
        """Returns the reply to a call whose method has failed. Its messages are dropped."""
        told = self._rpc.error_of(error)
        self._drop_records(call)
        trace = None
        if told is not error and isinstance(told, Internal):
            self._events.emit(RpcFailed(method=call.method, caller=call.caller, error=error))
            trace = "".join(traceback.format_exception(error)) if self._rpc.settings.tracebacks else None
        try:
            body = protocol.problem_of(told, trace)
        except Exception:
            told.details = None  # They can't be written as JSON; the rest can.
            body = protocol.problem_of(told, trace)
        return LastReply(protocol.ERROR, body, told.code, is_shared)

    def _drop_records(self, call: IncomingCall) -> None:
        """Drops the messages that a call sent before it failed."""
        if self._transactions is not None and call.transaction_entry is not None:
            call.transaction_entry = self._transactions.entry()

    def _report_refused(self, call: IncomingCall, error: AwokeError) -> None:
        """Reports a reply that is refused for good: its call is over, and is not executed again."""
        topic, partition, offset = call.place
        code, name = (error.code, error.code_name) if isinstance(error, KafkaError) else (TOO_LARGE_CODE, "")
        self._events.emit(
            RpcReplyRefused(topic=topic, partition=partition, offset=offset, code=code, code_name=name, text=str(error))
        )

    def _note(self, reason: str) -> None:
        if self._host.call_log is not None:
            self._host.call_log.rejected(reason)

    def _count(self, call: IncomingCall, outcome: str) -> None:
        metrics, log = self._host.metrics, self._host.call_log
        if metrics is None and log is None:
            return
        method = "" if call.target is None else call.method
        _, _, queued_s, ran_s = call.times_s
        if metrics is not None:
            metrics.call_ended(method, outcome, queued_s, ran_s)
        if log is not None:
            log.ended(method, outcome, queued_s, ran_s)
        last = call.last
        if last is not None:
            call_back(last, partial(self._on_acknowledged, call.method, time.perf_counter()))

    def _on_acknowledged(self, method: str, sent_s: float, _: DeliveryHandle) -> None:
        metrics, log, reply_s = self._host.metrics, self._host.call_log, time.perf_counter() - sent_s
        if metrics is not None:
            metrics.reply_acknowledged(method, reply_s)
        if log is not None:
            log.acknowledged(method, reply_s)


def rejection(call: IncomingCall, reason: str, rpc: Rpc) -> RpcError:
    """Returns the error for the caller of a call that the engine rejects, by the name of its `RejectReason`."""
    options, (budget_s, left_s, _, _) = rpc.settings, call.times_s
    match reason:
        case "expired":
            return DeadlineExceeded("the deadline of the call has passed")
        case "cancelled":
            return Cancelled(CANCELLED)
        case "unknown_method":
            return Unimplemented(f"service {rpc.service!r} has no method {call.method[:128]!r}")
        case "not_allowed":
            return PermissionDenied(f"{call.caller[:128]!r} may not call {call.method}")
        case "deadline_too_far":
            text = f"the deadline of the call is {left_s:.0f} s away, allowed are {options.timeout_max_s:g} s"
            return InvalidArgument(text)
        case "overloaded":
            text = f"the call spent more than {options.queue_time_share_max:.0%} of its {budget_s:g} s in queues"
            return ResourceExhausted(text, retry_after_s=options.retry_after_s)
        case "queue_full":
            return ResourceExhausted("the queue of calls is full", retry_after_s=options.retry_after_s)
    raise ValueError(f"a call was rejected for a reason without an error: {reason}")


def out_of_time(call: IncomingCall) -> DeadlineExceeded:
    """Returns the error of a call whose time is over."""
    return DeadlineExceeded(f"{call.method} took too long")
