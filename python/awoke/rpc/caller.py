"""Calls methods of a service over Kafka, and gets their results: blocking, awaited, streamed, or from several responders."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from awoke import _native
from awoke._native import DeliveryHandle
from awoke._waiting import resolve
from awoke.errors import ClosedError, ConfigError, DecodeError, QueueFull, RpcError
from awoke.events import Events, EventSource
from awoke.rpc import protocol, topics
from awoke.rpc.context import current
from awoke.rpc.errors import KINDS, DeadlineExceeded, Internal, NobodyThere, ResourceExhausted, error_of
from awoke.rpc.pending import Gathered, Gathering, Part, PendingResult, Plan, Stream
from awoke.rpc.protocol import Topics
from awoke.settings import KafkaValue, Settings, client_properties, load
from awoke.tracing import Tracer

TIMEOUT_S = 5.0
"""How long a call waits where its caller does not say."""

DELIVERY_TIMEOUT = {"message.timeout.ms": "30000"}
"""A request that was not sent by then is dropped, and its call, if it still waits, ends with Unavailable."""

Headers = Mapping[str, bytes | str | None]

_decode = msgspec.json.Decoder().decode


class Retries(msgspec.Struct, frozen=True):
    """When a call that failed is made again, within its deadline and under the same idempotency key.

    What a responder refused to carry out is; what may have been carried out, only where the call is idempotent.
    """

    attempts: int = 3
    """How many times it is made; 1 for no retries."""
    backoff_s: tuple[float, float] = (0.05, 1.0)
    """Delay after the first failure, doubled after each further one, and its limit."""
    tokens: float = 10.0
    """Each retry takes one of so many; when they are used up, nothing is retried."""
    refill: float = 0.1
    """Each call that succeeds gives so much of one back."""

    def __post_init__(self) -> None:
        first_s, limit_s = self.backoff_s
        if self.attempts < 1 or first_s < 0 or limit_s < first_s or self.tokens < 0 or self.refill < 0:
            raise ConfigError(
                "Retries: attempts at least 1, 0 <= first <= limit of backoff_s, nothing negative", "retries"
            )

    def delay_s(self, attempt: int) -> float:
        """The delay after this attempt (from 1) has failed."""
        first_s, limit_s = self.backoff_s
        return min(limit_s, first_s * 2.0 ** min(attempt - 1, 60)) * (1.0 - 0.5 * random.random())


class Whom(NamedTuple):
    """Whom a caller asks, as the engine is told."""

    calls_topic: str
    replies_topic: str
    group: str
    """Empty: it is not looked at."""
    name: str
    calls_max: int
    bytes_max: int
    reply_bytes_max: int
    secret: bytes | None


class Caller:
    """Calls methods of a service. Any number of threads and event loops; a context manager: leaving it closes.

    It has a place of its own on the service's reply topic, found before this returns: no reply can be missed. Blocks up to
    `startup_timeout_s`.

    `timeout_s` holds for calls that do not say; within a method that is itself carrying out a call, none waits longer
    than that call's own caller. `name` is who calls, as responders are told. `group` is the responders' consumer group,
    where it is not the service's name: a call without an answer ends with `NobodyThere` when that group has no member.
    With `checks_group=False` the group is not checked, and such a call ends at its deadline: for responders without a
    group.
    At most `calls_max` calls, and `bytes_max` bytes of requests, are under way; more wait for room in their time. A reply
    larger than `reply_bytes_max` is refused. With a `secret`, requests are signed and replies must be. `errors` are
    classes for codes of the service's own. `idempotent` names methods that may be executed twice. `window` is how many
    results of a stream may be under way. With `create_topics`, missing topics are created with `partitions` partitions
    each; else the service makes them when it starts.

    Raises:
        ConfigError, BrokerUnreachable; UnknownTopic: the service's topics are not there.
    """

    def __init__(
        self,
        service: str,
        bootstrap_servers: str | None = None,
        *,
        name: str = "",
        group: str | None = None,
        checks_group: bool = True,
        timeout_s: float = TIMEOUT_S,
        retries: Retries | None = None,
        idempotent: Iterable[str] = (),
        errors: Iterable[type[RpcError]] = (),
        secret: bytes | None = None,
        calls_max: int = 10_000,
        bytes_max: int = 64 * 1024 * 1024,
        reply_bytes_max: int = 16 * 1024 * 1024,
        window: int = 256,
        create_topics: bool = False,
        partitions: int = 1,
        kafka: Mapping[str, KafkaValue] | None = None,
        settings: Settings | None = None,
        events: Events | None = None,
    ) -> None:
        settings = settings or load({"bootstrap_servers": bootstrap_servers, "kafka": kafka}).values
        if not service:
            raise ConfigError("a caller needs the name of a service, which is that of its app", "service")
        for word, value in (("timeout_s", timeout_s), ("calls_max", calls_max), ("window", window)):
            if value <= 0:
                raise ConfigError(f"caller: {word} must be more than 0, not {value}", word)
        self.service = service
        self.timeout_s = timeout_s
        self._retries = retries or Retries()
        self._tokens = self._retries.tokens
        self._idempotent = frozenset(idempotent)
        self._kinds = {**KINDS, **{kind.code: kind for kind in errors}}
        self._window = window
        self._tracer = Tracer(name or service, group or service) if settings.tracing else None
        self._closed = threading.Event()
        if group is not None and not (group and checks_group):
            text = (
                "caller: group must not be empty" if checks_group else "caller: checks_group=False goes without a group"
            )
            raise ConfigError(text, "group")
        looked_at = (group or service) if checks_group else ""
        at = Topics.of(service)
        if create_topics:
            topics.ensure(settings, at, partitions)
        else:
            topics.check(settings, service, at)
        whom = Whom(at.calls, at.replies, looked_at, name, calls_max, bytes_max, reply_bytes_max, secret)
        # Two names of one property: whoever has set either has decided.
        is_decided = any(name in settings.kafka for name in ("message.timeout.ms", "delivery.timeout.ms"))
        timeout = {} if is_decided else DELIVERY_TIMEOUT
        producing = client_properties(settings, **{"linger.ms": "0", **timeout, **settings.kafka})
        self._source = EventSource(events)
        try:
            self._native = _native.Caller(
                producing, client_properties(settings), whom, settings.startup_timeout_s, self._source.box
            )
        except BaseException:
            self._source.close()
            raise

    def call(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        idempotent: bool | None = None,
        idempotency_key: str | bytes | None = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call a method, and wait for its result, which is read as `returns`. Blocks with the GIL released.

        Arguments come by name, or all in order. Calls with one `key` are carried out in order, by one responder.

        Raises:
            RpcError: see `awoke.rpc.errors`; before all DeadlineExceeded: no reply within `timeout_s`; NobodyThere: there is
            no responder; InvalidArgument, Unimplemented, Internal. DecodeError: the result is not what `returns` says.
            EncodeError; ClosedError; ForkedClientError. TypeError: arguments by name and in order. ValueError: a header of
            the protocol's.
        """
        plan = self._plan(method, args, kwargs, timeout_s, key, idempotent, idempotency_key, headers)
        while True:
            plan.attempts += 1
            try:
                # As `submit` and `wait`, in one step of the engine's, which also ends a call that has no time left.
                left_s = plan.until_s - time.monotonic()
                try:
                    part = self._native.ask(
                        plan.method, plan.body, left_s, plan.key, plan.idempotency_key, plan.headers
                    )
                except QueueFull as error:
                    raise self._no_room(plan, error) from None
                result = self.read(plan, part, returns)
            except RpcError as error:
                delay_s = self._delay_s(plan, error)
                if self._closed.wait(delay_s):
                    raise
            else:
                if self._tokens < self._retries.tokens:
                    self._refill()
                return result

    async def acall(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        idempotent: bool | None = None,
        idempotency_key: str | bytes | None = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `call`, awaited on the running loop. A task that is cancelled cancels its call."""
        plan = self._plan(method, args, kwargs, timeout_s, key, idempotent, idempotency_key, headers)
        while True:
            try:
                plan.attempts += 1
                result = await PendingResult(self, plan, await self._enter_async(plan), returns)
            except RpcError as error:
                await _pause(self._delay_s(plan, error))
            else:
                if self._tokens < self._retries.tokens:
                    self._refill()
                return result

    def submit(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        idempotency_key: str | bytes | None = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> PendingResult:
        """Call a method; what is returned has its result later. It is called once: nothing is retried.

        Blocks, up to `timeout_s`, only where as many calls are under way as may be.

        Raises:
            ResourceExhausted: there was no room in time; EncodeError; ClosedError; ForkedClientError; TypeError.
        """
        plan = self._plan(method, args, kwargs, timeout_s, key, None, idempotency_key, headers)
        return self._begin(plan, returns)

    def cast(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        idempotency_key: str | bytes | None = None,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> DeliveryHandle:
        """Call a method without wanting its result. What is returned says when the request is in the log.

        The method is not begun later than `timeout_s` from now. Raises as `submit`.
        """
        plan = self._plan(method, args, kwargs, timeout_s, key, None, idempotency_key, headers)
        return self._native.cast(
            method,
            plan.body,
            plan.left_s(),
            key=plan.key,
            idempotency_key=plan.idempotency_key,
            headers=plan.headers,
        )

    def stream(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Stream:
        """Call a method that gives its results one by one; iterate over them, with `for` or `async for`.

        All of them must come within `timeout_s`. At most `window` are under way: a slow reader slows the method down.
        Leaving the iteration cancels the call. Raises as `submit`, and, while iterating, as `call`.
        """
        plan = self._plan(method, args, kwargs, timeout_s, key, None, None, headers)
        return Stream(self, plan, self._enter(plan, window=self._window), returns)

    def scatter(
        self,
        method: str,
        /,
        *args: Any,
        replies: int,
        until: Callable[[list[Any]], bool] | None = None,
        timeout_s: float | None = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Gathered:
        """Ask all responders, of groups of their own, at once: each group answers.

        Returns when so many have answered, when `until(results)` is true, or when the time is up: then `is_partial` is true,
        and there is no error. Blocks with the GIL released. Raises as `submit`.
        """
        plan = self._plan(method, args, kwargs, timeout_s, None, None, None, headers)
        pending = self._enter(plan, replies=replies)
        gathering = Gathering(self, plan, replies, until, returns)
        with self._given_up(pending):
            while pending.wait() and not gathering.add(pending.result()):
                pass
        return gathering.gathered()

    async def ascatter(
        self,
        method: str,
        /,
        *args: Any,
        replies: int,
        until: Callable[[list[Any]], bool] | None = None,
        timeout_s: float | None = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Gathered:
        """As `scatter`, awaited on the running loop."""
        plan = self._plan(method, args, kwargs, timeout_s, None, None, None, headers)
        pending = await self._enter_async(plan, replies=replies)
        gathering = Gathering(self, plan, replies, until, returns)
        with self._given_up(pending):
            while not gathering.add(await resolve(pending)):
                pass
        return gathering.gathered()

    def proxy(self, *, timeout_s: float | None = None) -> Proxy:
        """The service's methods as attributes: `shop.quote(sku="A1")`. The responder knows which there are."""
        return Proxy(partial(self.call, timeout_s=timeout_s))

    def aproxy(self, *, timeout_s: float | None = None) -> Proxy:
        """As `proxy`, to be awaited: `await shop.quote(sku="A1")`."""
        return Proxy(partial(self.acall, timeout_s=timeout_s))

    def methods(self, timeout_s: float | None = None) -> list[dict[str, Any]]:
        """What the service can do: name, signature, doc, is_idempotent, is_stream of each method.

        Blocks; raises as `call`.
        """
        found: list[dict[str, Any]] = self.call(protocol.METHODS, timeout_s=timeout_s, idempotent=True)
        return found

    def wait_until_served(self, timeout_s: float = 30.0) -> None:
        """Wait until a responder answers. Blocks.

        Raises:
            RpcError: none did within `timeout_s`.
        """
        until_s = time.monotonic() + timeout_s
        while True:
            try:
                self.methods(timeout_s=max(0.0, until_s - time.monotonic()))
            except NobodyThere:
                continue  # It took the while in which somebody was looked for.
            return

    def open_calls(self) -> int:
        """How many calls have not ended. Does not block."""
        return self._native.open_calls()

    def counters(self) -> dict[str, int]:
        """What was counted: calls `begun`, `expired`; `replies`, and those that were `late`, `duplicate`, `unknown` (never
        asked for), `foreign` (other callers'), `forged`, `huge`, `undecodable`. Does not block."""
        return self._native.counters()

    @property
    def replies_at(self) -> tuple[str, int]:
        """Topic and partition where replies come in."""
        return self._native.replies_at()

    def close(self, timeout_s: float = 5.0) -> None:
        """End: calls that have no result fail, what was sent is delivered. Blocks. Closing again does nothing."""
        self._closed.set()
        try:
            self._native.close(timeout_s)
        finally:
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _plan(
        self,
        method: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout_s: float | None,
        key: bytes | str | None,
        idempotent: bool | None,
        idempotency_key: str | bytes | None,
        headers: Headers | None,
    ) -> Plan:
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        calling = current.get()
        if calling is not None:
            timeout_s = min(timeout_s, calling.remaining_s)
        is_idempotent = idempotency_key is not None or (
            method in self._idempotent if idempotent is None else idempotent
        )
        if is_idempotent and idempotency_key is None and self._retries.attempts > 1:
            idempotency_key = uuid.uuid4().bytes
        more = None if headers is None and self._tracer is None else self._headers(headers or {})
        return Plan(
            method,
            protocol.arguments_of(args, kwargs),
            timeout_s,
            time.monotonic() + timeout_s,
            key.encode() if isinstance(key, str) else key,
            is_idempotent,
            idempotency_key.encode() if isinstance(idempotency_key, str) else idempotency_key,
            more,
        )

    def _headers(self, headers: Headers) -> list[tuple[str, bytes | str | None]]:
        if any(name.startswith(protocol.PREFIX) for name in headers):
            raise ValueError(f"headers whose names begin with {protocol.PREFIX} belong to the protocol")
        pairs = list(headers.items())
        return pairs if self._tracer is None else self._tracer.headers(pairs)

    def _begin(self, plan: Plan, returns: Any) -> PendingResult:
        plan.attempts += 1
        return PendingResult(self, plan, self._enter(plan), returns)

    def _enter(self, plan: Plan, *, replies: int = 1, window: int | None = None) -> _native.Call:
        """Blocks while as many calls are under way as may be."""
        call = self._try_enter(plan, replies, window, may_wait=True)
        assert call is not None
        return call

    async def _enter_async(self, plan: Plan, *, replies: int = 1) -> _native.Call:
        """As `_enter`; it is another thread that blocks, if one has to."""
        call = self._try_enter(plan, replies, None, may_wait=False)
        return await asyncio.to_thread(self._enter, plan, replies=replies) if call is None else call

    def _try_enter(self, plan: Plan, replies: int, window: int | None, *, may_wait: bool) -> _native.Call | None:
        left_s = plan.left_s()
        if left_s <= 0:
            raise self.failure(plan, "deadline_exceeded", "")
        try:
            return self._native.call(
                plan.method,
                plan.body,
                left_s,
                key=plan.key,
                idempotency_key=plan.idempotency_key,
                headers=plan.headers,
                replies=replies,
                window=window,
                may_wait=may_wait,
            )
        except QueueFull as error:
            raise self._no_room(plan, error) from None

    def _no_room(self, plan: Plan, error: QueueFull) -> ResourceExhausted:
        text = f"too many calls are under way: no room within {error.waited_s:.3f} s; see calls_max and bytes_max"
        return ResourceExhausted(f"{self.service}.{plan.method}: {text}")

    def _delay_s(self, plan: Plan, error: RpcError) -> float:
        """How long to wait before the call is made again; raises the error where it is not."""
        was_refused = isinstance(error, ResourceExhausted)
        is_worth_it = error.is_retryable and (was_refused or plan.is_idempotent) and not isinstance(error, NobodyThere)
        if not is_worth_it or plan.attempts >= self._retries.attempts or self._tokens < 1:
            raise error
        delay_s = max(error.retry_after_s or 0.0, self._retries.delay_s(plan.attempts))
        if delay_s >= plan.left_s():
            raise error
        self._tokens -= 1
        return delay_s

    def _refill(self) -> None:
        self._tokens = min(self._retries.tokens, self._tokens + self._retries.refill)

    @contextlib.contextmanager
    def _given_up(self, pending: _native.Call) -> Iterator[None]:
        """Whatever ends the wait, the call does not outlive it."""
        try:
            yield
        finally:
            if not pending.has_ended():
                pending.cancel()

    def read(self, plan: Plan, part: Part, returns: Any) -> Any:
        """A part of a reply as its result.

        Raises:
            RpcError: it is an error; DecodeError: it is not what was expected.
        """
        word, body, detail = part
        if word == "failed":
            raise self.failure(plan, str(body), str(detail))
        assert isinstance(body, bytes)
        if word == protocol.ERROR:
            raise self._error(plan, body)
        is_any = returns is Any or returns is None
        try:
            return _decode(body) if is_any else msgspec.json.decode(body, type=returns)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            kind = "JSON" if is_any else returns
            text = f"the result of {self.service}.{plan.method} can't be read as {kind}: {error}"
            raise DecodeError(text) from error

    def _error(self, plan: Plan, body: bytes) -> RpcError:
        try:
            problem = protocol.read_problem(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return Internal(f"{self.service}.{plan.method}: its error can't be read: {error}")
        return error_of(
            problem.code,
            problem.message,
            self._kinds,
            details=problem.details,
            is_retryable=problem.is_retryable,
            retry_after_s=problem.retry_after_s,
            remote_traceback=problem.traceback,
        )

    def failure(self, plan: Plan, code: str, text: str) -> Exception:
        """The error of a call that ended without a reply."""
        name = f"{self.service}.{plan.method}"
        if code == "closed":
            return ClosedError(f"{name}: {text}")
        if code == "deadline_exceeded":
            return DeadlineExceeded(f"{name}: no reply within {plan.timeout_s:g} s; it may still be carried out")
        if code == NobodyThere.code:
            text += "; if its responders are in another group, say so with group="
        is_retryable = False if code == "resource_exhausted" else None
        return error_of(code, f"{name}: {text}", is_retryable=is_retryable)


class Proxy:
    """A service's methods as attributes."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(self._call, method)


async def _pause(delay_s: float) -> None:
    """Let a back-off pass."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(delay_s, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()
