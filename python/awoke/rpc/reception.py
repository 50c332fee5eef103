"""Looks at what comes to a service: which of it are calls, who makes them, and which may be carried out now."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from awoke._native import Job, Request
from awoke.errors import RpcError
from awoke.events import Events
from awoke.rpc import protocol
from awoke.rpc.answers import Answers, complete
from awoke.rpc.errors import (
    DeadlineExceeded,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unimplemented,
)
from awoke.rpc.host import Host
from awoke.rpc.methods import Options, Rpc
from awoke.rpc.protocol import Topics
from awoke.rpc.results import Result, Results
from awoke.rpc.turnstile import Turnstile
from awoke.rpc.work import Work

REMEMBERED = 100_000
"""Names of calls that are remembered: of signed ones, and of cancelled ones that have not come yet."""


class Refused(Exception):
    """A record that is not answered: its sender may not be who it says."""


class Reception:
    """Of a responder. Any thread."""

    def __init__(
        self,
        host: Host,
        rpc: Rpc,
        events: Events,
        answers: Answers,
        under_way: dict[bytes, Work],
        results: Results[Work],
        for_threads: Turnstile,
        for_tasks: Turnstile,
    ) -> None:
        self._host, self._rpc, self._events = host, rpc, events
        self._options = rpc.settings
        self._reply_topics = {Topics.of(rpc.service).replies, *rpc.settings.reply_topics}
        self._answers, self._under_way, self._results = answers, under_way, results
        self._for_threads, self._for_tasks = for_threads, for_tasks
        self._places = Remembered()
        """Where signed requests stand in the log."""
        self._cancelled = Remembered()
        """Calls that were cancelled before they came."""

    def receive(self, job: Job) -> Work | None:
        """Look at what has come; the call, if it is to be carried out here and now."""
        options = self._options
        try:
            request = self._request_of(job)
            if options.secret is not None:
                self._check_genuine(options.secret, request)
            work = self._read(request, job)
        except Refused as refused:
            self._refuse(str(refused), job)
            return None
        if work is None:
            complete(job)
            return None
        try:
            if self._admit(work):
                return work
        except RpcError as error:
            self._turn_away(work, error)
        return None

    def _request_of(self, job: Job) -> Request:
        try:
            return job.request(self._options.request_bytes_max, self._options.clock_skew_s)
        except ValueError as error:
            raise Refused(str(error)) from None

    def _check_genuine(self, secret: bytes, request: Request) -> None:
        message = request.message
        if not protocol.is_signed(secret, dict(message.headers), message.raw_value or b""):
            raise Refused("forged")
        # What comes again from its own place was not answered; in another place, somebody has copied it.
        place = (message.partition, message.offset)
        name = b"%b %b" % (request.id, request.kind.encode())
        if request.kind != protocol.MORE and self._places.first(name, place) != place:
            raise Refused("replayed")

    def _read(self, request: Request, job: Job) -> Work | None:
        """A record as a call; None for what is about another one."""
        match request.kind:
            case protocol.CALL | protocol.CAST:
                reply_topic = request.reply_topic
                if reply_topic is not None and reply_topic not in self._reply_topics:
                    raise Refused("reply_topic")
                return Work(request, job)
            case protocol.CANCEL:
                found = self._under_way.get(request.id)
                if found is None:
                    self._cancelled.first(request.id, True)
                else:
                    found.cancel()
                return None
            case protocol.MORE:
                found = self._under_way.get(request.id)
                if found is not None and found.window is not None:
                    found.window.add(request.credit or 0)
                return None
            case _:
                raise Refused("undecodable")

    def _refuse(self, reason: str, job: Job) -> None:
        self._events.emit("rpc.refused", reason=reason, partition=job.partition, offset=job.first_offset)
        if self._host.metrics is not None:
            self._host.metrics.call_refused(reason)
        complete(job)

    def _admit(self, work: Work) -> bool:
        """Whether a call is to be carried out now; else somebody does later, or it is answered.

        Raises:
            RpcError: it is not to be carried out.
        """
        request, options, left_s = work.request, self._options, work.request.left_s
        if left_s <= 0 or self._cancelled.forget(request.id):
            raise DeadlineExceeded("its caller waits no more")
        method = self._rpc.methods.get(request.method)
        if method is None:
            raise Unimplemented(f"service {self._rpc.service!r} has no method {request.method[:128]!r}")
        work.has_method(method)
        if method.callers is not None and request.caller not in method.callers:
            raise PermissionDenied(f"{request.caller[:128]!r} may not call {method.name}")
        if left_s > options.timeout_max_s:
            text = f"its deadline is {left_s:.0f} s away, allowed are {options.timeout_max_s:g} s"
            raise InvalidArgument(text)
        check_patience(options, request, left_s)
        idempotency_key = request.idempotency_key
        if idempotency_key is not None and not self._is_new(work, idempotency_key):
            return False
        self._under_way[request.id] = work
        try:
            is_its_turn = (self._for_tasks if work.is_async else self._for_threads).enter(work)
        except ResourceExhausted as error:
            error.retry_after_s = options.retry_after_s
            raise
        if not is_its_turn:
            work.has_waited = True
            work.step_aside(False)
        return is_its_turn

    def _is_new(self, work: Work, idempotency_key: bytes) -> bool:
        """Whether nobody has carried out, or is carrying out, the same call; else it is answered with that one."""
        if work.is_stream or self._options.results_max == 0:
            return True
        key = b"\0".join([work.request.caller.encode(), work.request.method.encode(), idempotency_key])
        known = self._results.begin(key, work)
        if known is True:
            work.result_key = key
            return True
        if isinstance(known, Result):
            self._answers.send(work, known.kind, known.body, known.code)
            self._answers.end(work, "known")
        else:
            work.step_aside(False)
        return False

    def _turn_away(self, work: Work, error: RpcError) -> None:
        self._answers.finish(work, protocol.ERROR, protocol.problem_of(error), error.code)


def check_patience(options: Options, request: Request, left_s: float) -> None:
    """Whether enough of a call's time is left.

    Raises:
        ResourceExhausted: it has spent too much of it in queues.
    """
    if left_s < request.budget_s * (1 - options.patience):
        text = f"the call spent more than {options.patience:.0%} of its {request.budget_s:g} s in queues"
        raise ResourceExhausted(text, retry_after_s=options.retry_after_s)


class Remembered:
    """What was said of the last so many names. Any thread."""

    def __init__(self) -> None:
        self._said: OrderedDict[bytes, Any] = OrderedDict()
        self._lock = threading.Lock()

    def first(self, name: bytes, value: Any) -> Any:
        """What was said first of a name: this, if nothing was."""
        with self._lock:
            if len(self._said) >= REMEMBERED:
                self._said.popitem(last=False)
            return self._said.setdefault(name, value)

    def forget(self, name: bytes) -> bool:
        """Whether anything was said of it; no more."""
        if name not in self._said:
            return False
        with self._lock:
            return self._said.pop(name, None) is not None
