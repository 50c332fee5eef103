"""Tells the callers of calls that are not carried out why, and the app of records that are not answered at all.

The engine decides (`crates/engine/src/rpc/intake.rs`); the words are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from awoke._native import Work
from awoke.errors import RpcError
from awoke.events import Events, RpcRefused
from awoke.rpc import protocol
from awoke.rpc.answers import CANCELLED, Answers
from awoke.rpc.errors import (
    Cancelled,
    DeadlineExceeded,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unimplemented,
)
from awoke.rpc.host import Host
from awoke.rpc.methods import Rpc


class Refusals:
    """Of a responder. Any thread."""

    def __init__(self, host: Host, rpc: Rpc, events: Events, answers: Answers) -> None:
        self._host, self._rpc, self._events, self._answers = host, rpc, events, answers
        self._errors: Mapping[str, Callable[[Work], RpcError]] = {
            "expired": lambda _: DeadlineExceeded("its caller waits no more"),
            "cancelled": lambda _: Cancelled(CANCELLED),
            "unknown": self._unknown,
            "not_allowed": lambda work: PermissionDenied(f"{work.caller[:128]!r} may not call {work.name}"),
            "too_long": self._too_long,
            "impatient": self._impatient,
            "full": self._full,
        }

    def tell(self, work: Work, verdict: str) -> None:
        """Answer a call that is not carried out here, if it is one."""
        known = work.known
        if known is not None:
            self._answers.answer(work, *known, None, "known")
        elif verdict in self._errors:
            error = self._errors[verdict](work)
            # Its own concern: who waits for the same is carried out instead.
            body = protocol.problem_of(error, is_rejected=True)
            self._answers.finish(work, protocol.ERROR, body, error.code, is_shared=False)
        else:
            self._refuse(work, verdict)

    def _refuse(self, work: Work, reason: str) -> None:
        """Its sender may not be who it says: no answer."""
        job = work.job
        if job is not None:
            self._events.emit(RpcRefused(reason=reason, partition=job.partition, offset=job.first_offset))
        work.close()
        work.end_job(0.0)

    def _unknown(self, work: Work) -> RpcError:
        return Unimplemented(f"service {self._rpc.service!r} has no method {work.name[:128]!r}")

    def _too_long(self, work: Work) -> RpcError:
        limit_s = self._rpc.settings.timeout_max_s
        return InvalidArgument(f"its deadline is {work.left_s:.0f} s away, allowed are {limit_s:g} s")

    def _impatient(self, work: Work) -> RpcError:
        options = self._rpc.settings
        text = f"the call spent more than {options.patience:.0%} of its {work.budget_s:g} s in queues"
        return ResourceExhausted(text, retry_after_s=options.retry_after_s)

    def _full(self, _: Work) -> RpcError:
        return ResourceExhausted(
            "as many calls are waiting already as may", retry_after_s=self._rpc.settings.retry_after_s
        )
