"""Calls methods of a service over Kafka, and gets their results: blocking, awaited, streamed, or from several responders."""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio.events import _get_running_loop
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from awoke import _native
from awoke._native import DeliveryHandle
from awoke._waiting import resolve
from awoke.errors import ClosedError, ConfigError, QueueFull, RpcError
from awoke.events import Events, EventSource
from awoke.oauth import TokenFunction
from awoke.rpc import protocol
from awoke.rpc.blocking import warn_blocking
from awoke.rpc.client import Proxy, client_of
from awoke.rpc.errors import KINDS, NobodyThere, ResourceExhausted
from awoke.rpc.opening import CallerOptions, Opening, Unopened, Whom
from awoke.rpc.pending import Gathered, Gathering, PendingResult, Stream, cancelling
from awoke.rpc.plan import Headers, Plan, Planner
from awoke.rpc.protocol import Topics
from awoke.rpc.reading import Reading
from awoke.rpc.retries import Retries, RetryBudget, pause
from awoke.rpc.window import WINDOW_MAX
from awoke.settings import KafkaValue, Settings, load
from awoke.tracing import Tracer

TIMEOUT_S = 5.0
"""How long a call waits where its caller does not say."""

Methods = TypeVar("Methods")


class Caller:
    """Calls methods of a service. Any number of threads and event loops; a context manager: leaving it closes.

    It has a place of its own on the service's reply topic, found before this returns: no reply can be missed. Blocks up to
    `startup_timeout_s`. On the thread of a running event loop it does not block: there `async with`, `await Caller.open(…)`
    or else the first call opens it, and raises what is said below of connections and topics.

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
        oauth_token: TokenFunction | None = None,
        settings: Settings | None = None,
        events: Events | None = None,
    ) -> None:
        arguments = {"bootstrap_servers": bootstrap_servers, "kafka": kafka, "oauth_token": oauth_token}
        settings = settings or load(arguments).values
        if not service:
            raise ConfigError("a caller needs the name of a service, which is that of its app", "service")
        for word, value in (("timeout_s", timeout_s), ("calls_max", calls_max), ("window", window)):
            if value <= 0:
                raise ConfigError(f"caller: {word} must be more than 0, not {value}", word)
        if window > WINDOW_MAX:
            raise ConfigError(f"caller: window must be at most {WINDOW_MAX}, not {window}", "window")
        if len(name.encode()) > protocol.NAME_BYTES_MAX:
            raise ConfigError(f"caller: name has more than {protocol.NAME_BYTES_MAX} bytes", "name")
        self.service = service
        self.timeout_s = timeout_s
        self._budget = RetryBudget(retries or Retries())
        self.reading = Reading(service, {**KINDS, **{kind.code: kind for kind in errors}})
        self._window = window
        tracer = Tracer(name or service, group or service) if settings.tracing else None
        self._plan = Planner(timeout_s, frozenset(idempotent), self._budget.retries.attempts > 1, tracer).plan
        self._closed = threading.Event()
        if group is not None and not (group and checks_group):
            text = (
                "caller: group must not be empty" if checks_group else "caller: checks_group=False goes without a group"
            )
            raise ConfigError(text, "group")
        looked_at = (group or service) if checks_group else ""
        at = Topics.of(service)
        whom = Whom(at.calls, at.replies, looked_at, name, calls_max, bytes_max, reply_bytes_max, secret)
        self._opening = Opening(service, settings, whom, events, create_topics, partitions)
        self._opening_lock = threading.Lock()
        self._source: EventSource | None = None
        self._native: _native.Caller | Unopened = Unopened(self._open_now)
        if _get_running_loop() is None:
            self._open_now()

    @classmethod
    async def open(cls, service: str, bootstrap_servers: str | None = None, **options: Unpack[CallerOptions]) -> Self:
        """Makes a caller without blocking the running event loop; arguments and errors are those of `Caller`.

        ```python
        shop = await Caller.open("shop")
        async with Caller("billing") as billing:  # opens without blocking, too, and closes
            ...
        ```
        """
        return await cls(service, bootstrap_servers, **options).__aenter__()

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

        Arguments come by name, or all in order. Calls with one `key` are executed in order, by one responder. On the thread
        of a running event loop it warns (`BlockingCallWarning`): use `acall` there. A method that returns a stream of results
        is an error: use `stream`.

        Raises:
            RpcError: see `awoke.rpc.errors`; before all DeadlineExceeded: no reply within `timeout_s`; NobodyThere: there is
            no responder; InvalidArgument, Unimplemented, Internal. DecodeError: the result is not what `returns` says.
            EncodeError; ClosedError; ForkedClientError. TypeError: arguments by name and in order. ValueError: a header of
            the protocol's.
        """
        if _get_running_loop() is not None:
            warn_blocking("call", "await caller.acall(…)")
        plan = self._plan(method, args, kwargs, timeout_s, key, idempotent, idempotency_key, headers, returns)
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
                result = self.reading.read(plan, part, returns)
            except RpcError as error:
                delay_s = self._budget.delay_s(plan, error)
                if self._closed.wait(delay_s):
                    raise
            else:
                if self._budget.is_short:
                    self._budget.refill()
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
        plan = self._plan(method, args, kwargs, timeout_s, key, idempotent, idempotency_key, headers, returns)
        while True:
            try:
                plan.attempts += 1
                result = await PendingResult(self, plan, await self._enter_async(plan), returns)
            except RpcError as error:
                await pause(self._budget.delay_s(plan, error))
            else:
                if self._budget.is_short:
                    self._budget.refill()
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
        plan = self._plan(method, args, kwargs, timeout_s, key, None, idempotency_key, headers, returns)
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
        Leaving the iteration cancels the call. A rejected one is made again, as by `call`; one that has begun is not. Raises
        as `submit`, and, while iterating, as `call`.
        """
        plan = self._plan(method, args, kwargs, timeout_s, key, None, None, headers, returns)
        plan.attempts = 1
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
        and there is no error. Blocks with the GIL released, and warns as `call`. Raises as `submit`.
        """
        if _get_running_loop() is not None:
            warn_blocking("scatter", "await caller.ascatter(…)")
        plan = self._plan(method, args, kwargs, timeout_s, None, None, None, headers, returns)
        pending = self._enter(plan, replies=replies)
        gathering = Gathering(self, plan, replies, until, returns)
        with cancelling(pending):
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
        plan = self._plan(method, args, kwargs, timeout_s, None, None, None, headers, returns)
        pending = await self._enter_async(plan, replies=replies)
        gathering = Gathering(self, plan, replies, until, returns)
        with cancelling(pending):
            while not gathering.add(await resolve(pending)):
                pass
        return gathering.gathered()

    def proxy(self, *, timeout_s: float | None = None) -> Proxy:
        """The service's methods as attributes: `shop.quote(sku="A1")`. The responder knows which there are."""
        return Proxy(partial(self.call, timeout_s=timeout_s))

    def aproxy(self, *, timeout_s: float | None = None) -> Proxy:
        """As `proxy`, to be awaited: `await shop.quote(sku="A1")`."""
        return Proxy(partial(self.acall, timeout_s=timeout_s))

    def client(self, methods: Callable[..., Methods], *, timeout_s: float | None = None) -> Methods:
        """Returns an object with the methods of a `typing.Protocol` or class, each of which calls the method of its name.

        ```python
        class Shop(Protocol):
            def quote(self, sku: str, quantity: int = 1) -> float: ...
            def report(self, day: str) -> Iterator[Line]: ...

        shop = caller.client(Shop)
        price = shop.quote("A1", quantity=3)
        ```

        Results are read as the annotations say. `def` blocks as `call` does; `async def` is awaited, as `acall`; a `def` that
        returns an `Iterator` or `AsyncIterator` is a `stream`. Nothing of the class is executed.

        Raises:
            ConfigError: no class, or a method that can't be called by name.
        """
        client: Methods = client_of(self, methods, timeout_s)
        return client

    def aclient(self, methods: Callable[..., Methods], *, timeout_s: float | None = None) -> Methods:
        """As `client`, for an event loop: none of the methods may block.

        Raises:
            ConfigError: as `client`; a method that is neither `async def` nor returns an `AsyncIterator`.
        """
        client: Methods = client_of(self, methods, timeout_s, is_async=True)
        return client

    def methods(self, timeout_s: float | None = None) -> list[dict[str, Any]]:
        """What the service can do: name, signature, doc, is_idempotent, is_stream and result_type of each method.

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
        with self._opening_lock:
            if isinstance(self._native, Unopened):
                return
            try:
                self._native.close(timeout_s)
            finally:
                if self._source is not None:
                    self._source.close()

    async def aclose(self, timeout_s: float = 5.0) -> None:
        """As `close`, on another thread, so that the running loop goes on."""
        await asyncio.to_thread(self.close, timeout_s)

    def __enter__(self) -> Self:
        self._open_now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._open_now)
        except asyncio.CancelledError:
            self._closed.set()
            # The thread that opens goes on; it must leave nothing open behind.
            asyncio.get_running_loop().run_in_executor(None, self.close)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _open_now(self) -> _native.Caller:
        """Opens the caller, if it is not open; blocks then."""
        with self._opening_lock:
            if isinstance(self._native, Unopened):
                if self._closed.is_set():
                    raise ClosedError("this caller is closed")
                self._native, self._source = self._opening.open()
            return self._native

    def _begin(self, plan: Plan, returns: Any) -> PendingResult:
        plan.attempts += 1
        return PendingResult(self, plan, self._enter(plan), returns)

    def stream_again(self, plan: Plan, error: RpcError) -> _native.Call:
        """Makes a stream's call again after this error; raises the error if it may not. Blocks for the back-off."""
        if not error.is_rejected or self._closed.wait(self._budget.delay_s(plan, error)):
            raise error
        plan.attempts += 1
        return self._enter(plan, window=self._window)

    async def astream_again(self, plan: Plan, error: RpcError) -> _native.Call:
        """As `stream_again`, on the running loop."""
        if not error.is_rejected:
            raise error
        await pause(self._budget.delay_s(plan, error))
        plan.attempts += 1
        return await self._enter_async(plan, window=self._window)

    def _enter(self, plan: Plan, *, replies: int = 1, window: int | None = None) -> _native.Call:
        """Blocks while as many calls are under way as may be."""
        call = self._try_enter(plan, replies, window, may_wait=True)
        assert call is not None
        return call

    async def _enter_async(self, plan: Plan, *, replies: int = 1, window: int | None = None) -> _native.Call:
        """As `_enter`; it is another thread that blocks, if one has to."""
        if isinstance(self._native, Unopened):
            await asyncio.to_thread(self._open_now)
        call = self._try_enter(plan, replies, window, may_wait=False)
        if call is not None:
            return call
        return await asyncio.to_thread(self._enter, plan, replies=replies, window=window)

    def _try_enter(self, plan: Plan, replies: int, window: int | None, *, may_wait: bool) -> _native.Call | None:
        left_s = plan.left_s()
        if left_s <= 0:
            raise self.reading.failure(plan, "deadline_exceeded", "")
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
        full = ResourceExhausted(f"{self.service}.{plan.method}: {text}")
        full.is_rejected = True
        return full
