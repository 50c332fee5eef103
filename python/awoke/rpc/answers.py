"""Sends the replies of calls, and ends the jobs that brought them: when the last reply is acknowledged, or committed."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from awoke import _native, serde
from awoke._native import DeliveryHandle, Job, PendingCommit, Work
from awoke._waiting import call_back
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
from awoke.events import Events, RpcFailed, RpcReplyRefused
from awoke.handlers import check_ran
from awoke.rpc import protocol
from awoke.rpc.errors import Cancelled, Internal, ResourceExhausted, error_of
from awoke.rpc.host import Contribution, Host
from awoke.rpc.methods import Rpc

logger = logging.getLogger(__name__)

Settle = Callable[[bool], None]
"""To be told whether what a call came to was committed."""

RETRY_S = 0.2
"""A call whose reply was refused is carried out again after so long, if its caller still waits."""


CANCELLED = "the call was cancelled"
"""Told to the client that waits: another than its caller may have cancelled it."""

OWN_REPLY, ERROR_INSTEAD, NO_REPLY = range(3)
"""What a transaction holds for a call: its reply; an error, where that was refused; nothing, where the error was, too."""


class Answers:
    """Of a responder's calls. Any thread; nothing blocks but for room in the producer's queue."""

    def __init__(
        self, host: Host, rpc: Rpc, events: Events, producer: _native.Producer, intake: _native.Intake
    ) -> None:
        self._host, self._rpc, self._events = host, rpc, events
        self._options = rpc.settings
        self._producer, self._intake = producer, intake
        self._is_exactly_once = rpc.settings.mode == "exactly_once"

    def give_result(self, work: Work, result: Any) -> None:
        """What a method returned, or that its stream is over.

        Raises:
            Internal: the result can't be written as JSON. HandlerDidNotRun: it still has to be awaited or iterated.
        """
        if work.method.is_stream:
            self.finish(work, protocol.END, b"", None)
        else:
            self.finish(work, protocol.REPLY, encoded(result, work.name), None)

    def give_error(self, work: Work, error: BaseException, is_shared: bool = True) -> None:
        """What a method raised. Raises nothing itself: whoever calls it has others to look after.

        Who waits for the same is told the same, unless it is this call's own concern, as when its time was over.
        """
        try:
            self._tell_error(work, error, is_shared and not work.is_cancelled)
        except Exception:
            logger.exception("a call of %s could not be answered; it is carried out again", work.name)
            self.abandon(work)
        if not isinstance(error, Exception):
            self._host.give_up(error)

    def abandon(self, work: Work, delay_s: float = 0.0) -> None:
        """Neither carried out nor answered: whoever has the partition then does it, and what waits for the same, too."""
        for each in (work, *self._intake.end(work, None, b"")):
            each.retry(delay_s)

    def _tell_error(self, work: Work, error: BaseException, is_shared: bool) -> None:
        told = self._rpc.error_of(error)
        self._forget_contribution(work)
        trace = None
        if told is not error and isinstance(told, Internal):
            self._events.emit(RpcFailed(method=work.name, caller=work.caller, error=error))
            trace = "".join(traceback.format_exception(error)) if self._options.tracebacks else None
        try:
            body = protocol.problem_of(told, trace)
        except EncodeError:
            told.details = None  # They can't be written as JSON; what happened can.
            body = protocol.problem_of(told, trace)
        self.finish(work, protocol.ERROR, body, told.code, is_shared)

    def _forget_contribution(self, work: Work) -> None:
        """What a call sent before it failed is not sent."""
        if work.contribution is not None and self._host.transactions is not None:
            work.contribution = self._host.transactions.contribution()

    def finish(self, work: Work, kind: str, body: bytes, code: str | None, is_shared: bool = True) -> None:
        """The last reply of a call; then its job ends. Who waits for the same gets it, too, or, where it is not shared, is
        executed itself. A call that was cancelled ends with that error: its method may have stopped halfway."""
        if work.is_given_up and code != Cancelled.code:
            self._forget_contribution(work)
            kind, body, code = protocol.ERROR, protocol.problem_of(Cancelled(CANCELLED)), Cancelled.code
            is_shared = False
        outcome = code or "ok"
        settle = partial(self._settle, work, kind, body, code, is_shared)
        if self._is_exactly_once:
            self.answer(work, kind, body, code, outcome, settle)
        else:
            self.answer(work, kind, body, code, outcome)
            settle(True)

    def answer(
        self, work: Work, kind: str, body: bytes, code: str | None, outcome: str, settle: Settle = lambda _: None
    ) -> None:
        """The last reply of a call; then its job ends. Exactly once, `settle` is told whether it was committed."""
        try:
            try:
                self.send(work, kind, body, code)
            except AwokeError as error:
                if not is_refused_for_good(error):
                    raise
                self._tell_refused(work, error)
            self._end(work, outcome, settle)
        except AwokeError as error:
            logger.warning("the reply to a call of %s could not be sent: %s", work.name, error)
            settle(False)
            work.retry(RETRY_S)

    def _settle(self, work: Work, kind: str, body: bytes, code: str | None, is_shared: bool, is_final: bool) -> None:
        """A call has its result, or, where that was not committed, none; who waits for the same learns it."""
        is_final = is_final and is_shared
        for each in self._intake.end(work, kind if is_final and code is None else None, body):
            if not is_final:
                each.retry(0.0)
                continue
            try:
                self.answer(each, kind, body, code, code or "ok")
            except Exception:  # Of somebody's middleware, say; the others are to be answered all the same.
                logger.exception("a call of %s could not be answered; it is carried out again", each.name)
                each.retry(RETRY_S)

    def send(self, work: Work, kind: str, body: bytes, code: str | None = None) -> None:
        """One reply, or one of several.

        Raises:
            AwokeError: it can't be sent.
        """
        transactions = self._host.transactions
        if self._is_exactly_once and transactions is not None:
            self._contribute_reply(work, work.contribution or transactions.contribution(), kind, body, code)
            return
        try:
            work.reply(self._producer, kind, body, code)
        except MessageTooLarge as error:
            told = too_large(error)
            if kind == protocol.ITEM:
                raise told from None  # The stream ends with it.
            if kind == protocol.ERROR and code is not None:
                told = error_of(code, f"the error is too large to be told: {error}")
            work.reply(self._producer, protocol.ERROR, protocol.problem_of(told), told.code)

    def _tell_refused(self, work: Work, error: AwokeError) -> None:
        """A reply is refused for good: its call is over, and not executed again."""
        topic, partition, offset = work.place
        code, name = (error.code, error.code_name) if isinstance(error, KafkaError) else (TOO_LARGE_CODE, "")
        self._events.emit(
            RpcReplyRefused(topic=topic, partition=partition, offset=offset, code=code, code_name=name, text=str(error))
        )

    def _contribute_reply(
        self, work: Work, contribution: Contribution, kind: str, body: bytes, code: str | None
    ) -> None:
        work.contribution = contribution
        headers = work.reply_headers(kind, body, code)
        if headers is not None and work.reply_to is not None:
            topic, partition = work.reply_to
            contribution.produce(topic, body, partition=partition, headers=headers)

    def _end(self, work: Work, outcome: str, settle: Settle) -> None:
        """Nothing more is sent for a call."""
        work.close()
        metrics = self._host.metrics
        if metrics is not None:
            method = "" if work.method is None else work.name
            metrics.call_ended(method, outcome, work.queued_s, work.ran_s)
            last = work.last
            if last is not None:
                call_back(last, partial(self._on_acknowledged, work.name, time.perf_counter()))
        if work.contribution is None:
            work.end_job(RETRY_S)
        else:
            self._contribute(work, work.contribution, settle)

    def _on_acknowledged(self, method: str, sent_s: float, _: DeliveryHandle) -> None:
        if self._host.metrics is not None:
            self._host.metrics.reply_acknowledged(method, time.perf_counter() - sent_s)

    def _contribute(self, work: Work, contribution: Contribution, settle: Settle) -> None:
        job = work.take_job()
        if job is None:
            settle(False)
            return
        job.step_aside(True)
        self._submit(work, job, contribution, settle, OWN_REPLY)

    def _submit(self, work: Work, job: Job, contribution: Contribution, settle: Settle, stage: int) -> None:
        try:
            committed = contribution.submit(job, None)
        except (ClosedError, FencedError):
            settle(False)
            job.retry(0.0)  # Whoever has the partition next does it again.
        else:
            call_back(committed, partial(self._on_committed, work, job, settle, stage))

    def _on_committed(self, work: Work, job: Job, settle: Settle, stage: int, committed: PendingCommit) -> None:
        """On the thread of awoke's that runs callbacks."""
        error = failure_of(committed)
        if error is None:
            with contextlib.suppress(FencedError):  # Whoever has the partition now sees it, too.
                job.complete()
        elif isinstance(error, (ClosedError, FencedError, ProducerFenced)):
            job.retry(0.0)
        elif is_refused_for_good(error) and stage != NO_REPLY:
            self._contribute_instead(work, job, error, stage + 1)
        else:
            logger.warning("a reply was not committed, its call is carried out again: %s", error)
            job.retry(RETRY_S)
        if isinstance(error, ProducerFenced):
            self._host.give_up(error)
        settle(error is None)

    def _contribute_instead(self, work: Work, job: Job, error: Exception, stage: int) -> None:
        """What the call came to can't be sent, and could not be if it were carried out again."""
        assert self._host.transactions is not None
        contribution = self._host.transactions.contribution()
        if stage == ERROR_INSTEAD:
            told = error_instead(error, work.reply_to)
            self._contribute_reply(work, contribution, protocol.ERROR, protocol.problem_of(told), told.code)
        elif isinstance(error, AwokeError):
            self._tell_refused(work, error)
        self._submit(work, job, contribution, lambda _: None, stage)


def failure_of(committed: PendingCommit) -> Exception | None:
    """Why a transaction was not committed; None where it was."""
    try:
        committed.result()
    except Exception as error:
        return error
    return None


def error_instead(error: Exception, reply_to: tuple[str, int] | None) -> RpcError:
    """What callers are told where a transaction with their reply was refused: for the reply, or for what the method sent."""
    if isinstance(error, MessageTooLarge) and reply_to is not None and error.topic == reply_to[0]:
        return too_large(error)
    return Internal("what the call sent was refused; the service's log says more")


def too_large(error: MessageTooLarge) -> RpcError:
    """What callers are told of a reply that is larger than messages may be."""
    return ResourceExhausted(f"the reply is too large: {error}", is_retryable=False)


def encoded(result: Any, name: str) -> bytes:
    """A result of the method of this name as a body.

    Raises:
        Internal: it can't be written as JSON. HandlerDidNotRun: it is a coroutine, another awaitable or a generator.
    """
    if result is not None:
        check_ran(result, name)
    try:
        return serde.encode(result)
    except EncodeError as error:
        raise Internal(f"the result can't be written as JSON: {error}") from error
