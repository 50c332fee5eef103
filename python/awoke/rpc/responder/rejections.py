"""Answers calls that are not executed, and reports records that get no reply.

The engine decides (`crates/engine/src/rpc/responder/admission.rs`); the errors are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from awoke._native import CallReplies, IncomingCall
from awoke.errors import RpcError
from awoke.observe.events import Events, RpcRefused
from awoke.rpc import protocol
from awoke.rpc.errors import (
    Cancelled,
    DeadlineExceeded,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unimplemented,
)
from awoke.rpc.responder.answers import CANCELLED, Answers
from awoke.rpc.responder.call_log import CallLog
from awoke.rpc.responder.methods import Rpc


class Rejections:
    """The rejections of one responder. Any thread."""

    def __init__(
        self, rpc: Rpc, events: Events, answers: Answers, replies: CallReplies, log: CallLog | None = None
    ) -> None:
        self._rpc, self._events, self._log = rpc, events, log
        self._answers, self._replies = answers, replies
        self._errors: Mapping[str, Callable[[IncomingCall], RpcError]] = {
            "expired": lambda _: DeadlineExceeded("the deadline of the call has passed"),
            "cancelled": lambda _: Cancelled(CANCELLED),
            "unknown_method": self._unknown_method,
            "not_allowed": lambda call: PermissionDenied(f"{call.caller[:128]!r} may not call {call.method}"),
            "deadline_too_far": self._deadline_too_far,
            "overloaded": self._overloaded,
            "queue_full": self._queue_full,
        }

    def end(self, call: IncomingCall, kind: str, reason: str) -> None:
        """Ends an unexecuted call: "rejected" or "invalid" with a reason, or "cached" with the kind of the reply."""
        if kind == "cached":
            self._answers.answer(call, reason, call.cached_body or b"", None, "cached")
        elif kind == "rejected":
            self.reject(call, reason)
        else:
            self._drop(call, reason)

    def reject(self, call: IncomingCall, reason: str) -> None:
        """Tells the caller of a call why it is not executed. Its waiting duplicates are executed: the reason is its
        own."""
        self._note(reason)
        self.reject_with(call, self._errors[reason](call))

    def reject_with(self, call: IncomingCall, error: RpcError) -> None:
        """Answers a call that is not executed with this error. Its waiting duplicates are executed."""
        body = protocol.problem_of(error, is_rejected=True)
        self._answers.finish(call, protocol.ERROR, body, error.code, is_shared=False)

    def _drop(self, call: IncomingCall, reason: str) -> None:
        """Reports a record without a reply: its sender may not be the caller that it names."""
        self._note(reason)
        _, partition, offset = call.place
        self._events.emit(RpcRefused(reason=reason, partition=partition, offset=offset))
        self._replies.settle(call, 0.0)

    def _note(self, reason: str) -> None:
        if self._log is not None:
            self._log.rejected(reason)

    def _unknown_method(self, call: IncomingCall) -> RpcError:
        return Unimplemented(f"service {self._rpc.service!r} has no method {call.method[:128]!r}")

    def _deadline_too_far(self, call: IncomingCall) -> RpcError:
        _, left_s, _, _ = call.times_s
        limit_s = self._rpc.settings.timeout_max_s
        return InvalidArgument(f"the deadline of the call is {left_s:.0f} s away, allowed are {limit_s:g} s")

    def _overloaded(self, call: IncomingCall) -> RpcError:
        options, (budget_s, _, _, _) = self._rpc.settings, call.times_s
        text = f"the call spent more than {options.queue_time_share_max:.0%} of its {budget_s:g} s in queues"
        return ResourceExhausted(text, retry_after_s=options.retry_after_s)

    def _queue_full(self, _: IncomingCall) -> RpcError:
        options = self._rpc.settings
        return ResourceExhausted("the queue of calls is full", retry_after_s=options.retry_after_s)
