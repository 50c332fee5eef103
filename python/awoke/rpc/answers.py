"""Sends the replies of calls, and ends the jobs that brought them: when the last reply is acknowledged, or committed."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from functools import partial
from typing import Any

from awoke import _native, serde
from awoke._native import DeliveryHandle, Job, PendingCommit
from awoke._waiting import call_back
from awoke.errors import AwokeError, ClosedError, EncodeError, FencedError, MessageTooLarge, ProducerFenced, RpcError
from awoke.events import Events
from awoke.rpc import protocol
from awoke.rpc.errors import Internal, ResourceExhausted
from awoke.rpc.host import Host
from awoke.rpc.methods import Rpc
from awoke.rpc.results import Result, Results
from awoke.rpc.work import Contribution, Work

logger = logging.getLogger(__name__)

RETRY_S = 0.2
"""A call whose reply was refused is carried out again after so long, if its caller still waits."""


class Answers:
    """Of a responder's calls. Any thread; nothing blocks but for room in the producer's queue."""

    def __init__(
        self,
        host: Host,
        rpc: Rpc,
        events: Events,
        producer: _native.Producer,
        under_way: dict[bytes, Work],
        results: Results[Work],
    ) -> None:
        self._host, self._rpc, self._events = host, rpc, events
        self._options = rpc.settings
        self._producer = producer
        self._under_way, self._results = under_way, results

    def give_result(self, work: Work, result: Any) -> None:
        """What a method returned, or that its stream is over.

        Raises:
            Internal: the result can't be written as JSON.
        """
        if work.is_stream:
            self.finish(work, protocol.END, b"", None)
        else:
            self.finish(work, protocol.REPLY, encoded(result), None)

    def give_error(self, work: Work, error: BaseException) -> None:
        """What a method raised. Raises nothing itself: whoever calls it has others to look after."""
        try:
            self._tell_error(work, error)
        except Exception:
            logger.exception("a call of %s could not be answered; it is carried out again", work.request.method)
            self.abandon(work)
        if not isinstance(error, Exception):
            self._host.give_up(error)

    def abandon(self, work: Work) -> None:
        """Neither carried out nor answered: whoever has the partition then does it, and what waits for the same, too."""
        self._forget(work)
        others = [] if work.result_key is None else self._results.finish(work.result_key, None)
        for each in (work, *others):
            each.end()
            if each.job is not None:
                each.job.retry(0.0)

    def _tell_error(self, work: Work, error: BaseException) -> None:
        told = self._rpc.error_of(error)
        if work.contribution is not None and self._host.transactions is not None:
            work.contribution = self._host.transactions.contribution()  # What it sent before it failed is not sent.
        trace = None
        if told is not error and isinstance(told, Internal):
            logger.error("rpc method %s failed", work.request.method, exc_info=error)
            trace = "".join(traceback.format_exception(error)) if self._options.tracebacks else None
        if not isinstance(error, RpcError):
            self._events.emit("rpc.failed", method=work.request.method, caller=work.request.caller, error=error)
        try:
            body = protocol.problem_of(told, trace)
        except EncodeError:
            told.details = None  # They can't be written as JSON; what happened can.
            body = protocol.problem_of(told, trace)
        self.finish(work, protocol.ERROR, body, told.code)

    def finish(self, work: Work, kind: str, body: bytes, code: str | None) -> None:
        """The last reply of a call, to it and to whoever waits for the same; then its job ends."""
        self._forget(work)
        self._answer_one(work, kind, body, code)
        if work.result_key is not None:
            result = None if kind == protocol.ERROR else Result(kind, body)
            for each in self._results.finish(work.result_key, result):
                self._answer_one(each, kind, body, code)

    def _answer_one(self, work: Work, kind: str, body: bytes, code: str | None) -> None:
        try:
            self.send(work, kind, body, code)
            self.end(work, code or "ok")
        except AwokeError as error:
            self._on_not_sent(work, error)

    def send(self, work: Work, kind: str, body: bytes, code: str | None = None) -> None:
        """One reply, or one of several.

        Raises:
            AwokeError: it can't be sent.
        """
        if work.contribution is None and self._host.transactions is not None and self._options.mode == "exactly_once":
            work.contribution = self._host.transactions.contribution()
        request = work.request
        topic = request.reply_topic
        if topic is None or work.caller_left_s <= 0 or work.was_given_up:
            return  # Nobody wants it, or nobody does any more.
        sequence = signature = None
        if work.is_stream:
            sequence = work.sequence
            work.sequence += 1
        if self._options.secret is not None:
            signature = protocol.sign_reply(self._options.secret, request.id, kind, sequence, code, body)
        if work.contribution is not None:
            headers = request.reply_headers(kind, work.ran_s, code, sequence, signature)
            work.contribution.produce(topic, body, partition=request.reply_partition, headers=headers)
            return
        try:
            work.last = request.reply(self._producer, kind, body, work.ran_s, code, sequence, signature)
        except MessageTooLarge as error:
            if kind == protocol.ERROR:
                raise
            told = ResourceExhausted(f"the reply is too large: {error}", is_retryable=False)
            self.send(work, protocol.ERROR, protocol.problem_of(told), told.code)

    def end(self, work: Work, outcome: str) -> None:
        """Nothing more is sent for a call."""
        work.end()
        metrics, job = self._host.metrics, work.job
        if metrics is not None:
            metrics.call_ended(work.request.method if work.is_known else "", outcome, work.request.queued_s, work.ran_s)
            if work.last is not None:
                call_back(work.last, partial(self._on_acknowledged, work.request.method, time.perf_counter()))
        if job is None:
            return
        if work.contribution is not None:
            self._contribute(work, work.contribution, job)
        elif work.last is not None:
            job.complete_when(work.last, RETRY_S)
        else:
            complete(job)

    def _on_acknowledged(self, method: str, sent_s: float, _: DeliveryHandle) -> None:
        if self._host.metrics is not None:
            self._host.metrics.reply_acknowledged(method, time.perf_counter() - sent_s)

    def _contribute(self, work: Work, contribution: Contribution, job: Job) -> None:
        job.step_aside(True)
        try:
            committed = contribution.submit(job, None)
        except (ClosedError, FencedError):
            job.retry(0.0)  # Whoever has the partition next does it again.
        else:
            call_back(committed, partial(self._on_committed, job))

    def _on_committed(self, job: Job, committed: PendingCommit) -> None:
        """On a thread of awoke's that runs no other user code."""
        try:
            committed.result()
        except (ClosedError, FencedError):
            job.retry(0.0)
        except ProducerFenced as error:
            job.retry(0.0)
            self._host.give_up(error)
        except Exception as error:
            logger.warning("a reply was not committed, its call is carried out again: %s", error)
            job.retry(RETRY_S)
        else:
            complete(job)

    def _on_not_sent(self, work: Work, error: AwokeError) -> None:
        logger.warning("the reply to a call of %s could not be sent: %s", work.request.method, error)
        work.end()
        if work.job is not None:
            work.job.retry(RETRY_S)

    def _forget(self, work: Work) -> None:
        if self._under_way.get(work.request.id) is work:
            del self._under_way[work.request.id]


def complete(job: Job) -> None:
    """A call is over."""
    with contextlib.suppress(FencedError):  # Whoever has the partition now sees it, too.
        job.complete()


def encoded(result: Any) -> bytes:
    """A result as a body.

    Raises:
        Internal: it can't be written as JSON.
    """
    try:
        return serde.encode(result)
    except EncodeError as error:
        raise Internal(f"the result can't be written as JSON: {error}") from error
