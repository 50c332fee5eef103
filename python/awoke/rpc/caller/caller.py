"""Calls methods of a service over Kafka: blocking, awaited, streamed, or of several responders."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import warnings
from asyncio.events import _get_running_loop
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

from awoke._native import DeliveryHandle
from awoke.errors import ConfigError, RpcError
from awoke.observe.events import Events
from awoke.observe.tracing import Tracer
from awoke.payloads.registry.schemas import LOADS_MAX, SchemaNeeded, Schemas, schemas_of
from awoke.rpc import protocol
from awoke.rpc.call_options import Headers, OutgoingCall
from awoke.rpc.caller.attempts import Attempts, Retries, RetryBudget
from awoke.rpc.caller.client import Proxy, client_of
from awoke.rpc.caller.connection import CallerConnection, Opening, ServiceAddress
from awoke.rpc.caller.exchange import CallerForms, Planner, ReplyReader
from awoke.rpc.caller.pending import Gathered, PendingResult, ScatteredCall, Stream
from awoke.rpc.errors import KINDS, NobodyThere
from awoke.rpc.protocol import WINDOW_MAX, ServiceTopics
from awoke.settings import KafkaValue, Settings, load
from awoke.settings.oauth import TokenFunction
from awoke.waiting.drive import drive, elsewhere

TIMEOUT_S = 5.0
"""Time that a call waits unless its caller says otherwise."""

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep

Methods = TypeVar("Methods")


class BlockingCallWarning(RuntimeWarning):
    """A blocking method was used on the thread of a running event loop, which does nothing else meanwhile."""


def warn_blocking(method: str, instead: str, owner: str = "Caller") -> None:
    """Warns at the line outside of this package that blocks. Python shows a warning once for each such line."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    text = f"{owner}.{method} blocks the event loop that runs on this thread: use {instead}"
    warnings.warn(text, BlockingCallWarning, stacklevel=level)


class CallerOptions(TypedDict, total=False):
    """The arguments of `Caller` that go by name."""

    name: str
    group: str | None
    checks_group: bool
    timeout_s: float
    retries: Retries | None
    idempotent: Iterable[str]
    errors: Iterable[type[RpcError]]
    secret: bytes | None
    calls_max: int
    bytes_max: int
    reply_bytes_max: int
    window: int
    create_topics: bool
    partitions: int
    kafka: Mapping[str, KafkaValue] | None
    oauth_token: TokenFunction | None
    settings: Settings | None
    events: Events | None
    schemas: Schemas | None


class Caller:
    """Calls methods of a service. Any number of threads and event loops; a context manager: leaving it closes.

    It reads a partition of the service's reply topic from an offset that is found before this returns: no reply can
    be missed. Blocks up to `startup_timeout_s`. On the thread of a running event loop it does not block: there
    `async with`, `await Caller.open(…)` or else the first call opens it, and raises the errors of connections and
    topics below.

    `timeout_s` is the time of calls without their own; within a method, no call waits longer than the method's own
    caller. `name` is the caller's name, as responders see it. `group` is the responders' consumer group, if it is not
    the service's name: a call without a reply ends with `NobodyThere` when that group has no member. With
    `checks_group=False` the group is not checked, and such a call ends at its deadline: for responders without a
    group. At most `calls_max` calls, and `bytes_max` bytes of requests, are under way; more wait for room in their
    time. A reply larger than `reply_bytes_max` is refused. With a `secret`, requests are signed and replies must be.
    `errors` are classes for codes of the service's own. `idempotent` names methods that may be executed twice.
    `window` is how many results of a stream may be under way. With `create_topics`, missing topics are created with
    `partitions` partitions each; else the service makes them when it starts. `schemas` are those of an app
    (`app.schemas`), for formats; left out, they come from the registry in the settings.

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
        schemas: Schemas | None = None,
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
        budget = RetryBudget(retries or Retries())
        self._forms = CallerForms(service, schemas or schemas_of(settings), is_own=schemas is None)
        reader = ReplyReader(service, {**KINDS, **{kind.code: kind for kind in errors}}, self._forms)
        conventions = settings.tracing_conventions
        tracer = Tracer(name or service, group or service, conventions) if settings.tracing else None
        is_retried = budget.retries.attempts > 1
        self._plan = Planner(timeout_s, frozenset(idempotent), is_retried, tracer, self._forms).plan
        if group is not None and not (group and checks_group):
            text = (
                "caller: group must not be empty" if checks_group else "caller: checks_group=False goes without a group"
            )
            raise ConfigError(text, "group")
        group = (group or service) if checks_group else ""
        at = ServiceTopics.of(service)
        address = ServiceAddress(at.calls, at.replies, group, name, calls_max, bytes_max, reply_bytes_max, secret)
        opening = Opening(service, settings, address, events, create_topics, partitions)
        self._connection = CallerConnection(opening)
        self._attempts = Attempts(self._connection, reader, budget, window)
        if _get_running_loop() is None:
            self._connection.open()

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
        argument: Any = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Any:
        """Calls a method and waits for its result, which is read as `returns`. Blocks with the GIL released.

        Arguments come by name, or all in order. `argument` is the format of the only one (`awoke.avro(Order)`), and
        `returns` the type or the format of the result: they are those of the method. Calls with one `key` are executed
        in order, by one responder. On the thread of a running event loop it warns (`BlockingCallWarning`): use `acall`
        there. A method that returns a stream of results is an error: use `stream`.

        Raises:
            RpcError: see `awoke.rpc.errors`; DeadlineExceeded: no reply within `timeout_s`; NobodyThere: there is no
                responder; InvalidArgument, Unimplemented, Internal.
            DecodeError: the result can't be read as `returns`. EncodeError; ClosedError; ForkedClientError.
            RegistryError: the schema registry does not give the schema of a format.
            TypeError: arguments by name and in order. ValueError: a header of the protocol's.
        """
        if _get_running_loop() is not None:
            warn_blocking("call", "await caller.acall(…)")
        call = OutgoingCall(
            method=method,
            timeout_s=timeout_s,
            key=key,
            idempotent=idempotent,
            idempotency_key=idempotency_key,
            argument=argument,
            returns=returns,
            headers=headers,
        )
        return self._attempts.result_blocking(self._plan(call, args, kwargs))

    async def acall(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        idempotent: bool | None = None,
        idempotency_key: str | bytes | None = None,
        argument: Any = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `call`, awaited on the running loop. A task that is cancelled cancels its call."""
        call = OutgoingCall(
            method=method,
            timeout_s=timeout_s,
            key=key,
            idempotent=idempotent,
            idempotency_key=idempotency_key,
            argument=argument,
            returns=returns,
            headers=headers,
        )
        return await self._attempts.result(await self._planned(call, args, kwargs))

    async def _planned(self, call: OutgoingCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OutgoingCall:
        """Plans a call. Loads the schemas that its argument needs. A flow."""
        for _ in range(LOADS_MAX):
            try:
                return self._plan(call, args, kwargs)
            except SchemaNeeded as needed:
                missing = needed
            await elsewhere(missing.load)
        return self._plan(call, args, kwargs)

    def submit(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        idempotency_key: str | bytes | None = None,
        argument: Any = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> PendingResult:
        """Calls a method, and returns the pending result. It is called once: nothing is retried.

        Blocks, up to `timeout_s`, only if as many calls are under way as may be.

        Raises:
            ResourceExhausted: there was no room in time; EncodeError; ClosedError; ForkedClientError; TypeError.
        """
        call = OutgoingCall(
            method=method,
            timeout_s=timeout_s,
            key=key,
            idempotency_key=idempotency_key,
            argument=argument,
            returns=returns,
            headers=headers,
        )
        begun = drive(self._attempts.begin(self._plan(call, args, kwargs)))
        return PendingResult(self._attempts.reader, call, begun)

    def cast(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        idempotency_key: str | bytes | None = None,
        argument: Any = None,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> DeliveryHandle:
        """Calls a method without a reply, and returns the delivery handle of the request.

        The method is not begun later than `timeout_s` from now. Blocks and raises as `submit`.
        """
        call = OutgoingCall(
            method=method,
            timeout_s=timeout_s,
            key=key,
            idempotency_key=idempotency_key,
            argument=argument,
            headers=headers,
        )
        self._plan(call, args, kwargs)
        return self._connection.open().cast(call.request(call.left_s()))

    def stream(
        self,
        method: str,
        /,
        *args: Any,
        timeout_s: float | None = None,
        key: bytes | str | None = None,
        argument: Any = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Stream:
        """Calls a method that gives its results one by one; iterate over them, with `for` or `async for`.

        All of them must come within `timeout_s`. At most `window` are under way: a slow reader slows the method down.
        Leaving the iteration cancels the call. A rejected one is made again, as by `call`; one that has begun is not.
        Raises as `submit`, and, while iterating, as `call`.
        """
        call = OutgoingCall(
            method=method,
            timeout_s=timeout_s,
            key=key,
            argument=argument,
            returns=returns,
            headers=headers,
        )
        begun = drive(self._attempts.begin_stream(self._plan(call, args, kwargs)))
        return Stream(self._attempts, call, begun)

    def scatter(
        self,
        method: str,
        /,
        *args: Any,
        replies: int,
        until: Callable[[list[Any]], bool] | None = None,
        timeout_s: float | None = None,
        argument: Any = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Gathered:
        """Calls all responders, of groups of their own, at once: each group answers.

        Returns when `replies` have answered, when `until(results)` is true, or when the time is up: then `is_partial`
        is true, and there is no error. Blocks with the GIL released, and warns as `call`. Raises as `submit`.
        """
        if _get_running_loop() is not None:
            warn_blocking("scatter", "await caller.ascatter(…)")
        call = OutgoingCall(
            method=method,
            timeout_s=timeout_s,
            argument=argument,
            returns=returns,
            headers=headers,
        )
        self._plan(call, args, kwargs)
        return drive(ScatteredCall(self._attempts, call, replies, until).gather())

    async def ascatter(
        self,
        method: str,
        /,
        *args: Any,
        replies: int,
        until: Callable[[list[Any]], bool] | None = None,
        timeout_s: float | None = None,
        argument: Any = None,
        returns: Any = Any,
        headers: Headers | None = None,
        **kwargs: Any,
    ) -> Gathered:
        """As `scatter`, awaited on the running loop."""
        call = OutgoingCall(
            method=method,
            timeout_s=timeout_s,
            argument=argument,
            returns=returns,
            headers=headers,
        )
        await self._planned(call, args, kwargs)
        return await ScatteredCall(self._attempts, call, replies, until).gather()

    def proxy(self, *, timeout_s: float | None = None) -> Proxy:
        """Returns the service's methods as attributes: `shop.quote(sku="A1")`. The responder checks that they exist."""
        return Proxy(partial(self.call, timeout_s=timeout_s))

    def aproxy(self, *, timeout_s: float | None = None) -> Proxy:
        """As `proxy`, to be awaited: `await shop.quote(sku="A1")`."""
        return Proxy(partial(self.acall, timeout_s=timeout_s))

    def client(self, methods: Callable[..., Methods], *, timeout_s: float | None = None) -> Methods:
        """Returns an object with the methods of a `typing.Protocol` or class, each of which calls the method of its
        name.

        ```python
        class Shop(Protocol):
            def quote(self, sku: str, quantity: int = 1) -> float: ...
            def report(self, day: str) -> Iterator[Line]: ...

        shop = caller.client(Shop)
        price = shop.quote("A1", quantity=3)
        ```

        Results are read as the annotations say. `def` blocks as `call` does; `async def` is awaited, as `acall`; a
        `def` that returns an `Iterator` or `AsyncIterator` is a `stream`. Nothing of the class is executed.

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
        """Returns name, signature, doc, is_idempotent, is_stream and result_type of each method of the service.

        Blocks; raises as `call`.
        """
        found: list[dict[str, Any]] = self.call(protocol.METHODS, timeout_s=timeout_s, idempotent=True)
        return found

    def wait_until_served(self, timeout_s: float = 30.0) -> None:
        """Waits until a responder answers. Blocks.

        Raises:
            RpcError: none did within `timeout_s`.
        """
        until_s = time.monotonic() + timeout_s
        while True:
            try:
                self.methods(timeout_s=max(0.0, until_s - time.monotonic()))
            except NobodyThere:
                continue  # The lookup of the group takes a while: this does not spin.
            return

    def open_calls(self) -> int:
        """Returns how many calls have not ended. Does not block."""
        native = self._connection.native
        return 0 if native is None else native.open_calls()

    def counters(self) -> dict[str, int]:
        """Returns the counters; empty before the caller is opened. Does not block.

        Calls `begun` and `expired`; `replies`, and those that were `late`, `duplicate`, `unknown` (to no call of this
        caller), `foreign` (to other callers), `forged`, `too_large` or `undecodable`.
        """
        native = self._connection.native
        return {} if native is None else native.counters()

    @property
    def replies_at(self) -> tuple[str, int]:
        """Topic and partition of this caller's replies."""
        return self._connection.open().replies_at()

    def close(self, timeout_s: float = 5.0) -> None:
        """Ends all calls, those in a back-off included, and delivers sent requests. Blocks.

        Closing again does nothing.
        """
        self._connection.close(timeout_s)
        self._forms.close()

    async def aclose(self, timeout_s: float = 5.0) -> None:
        """As `close`, on another thread, so that the running loop goes on."""
        await asyncio.to_thread(self.close, timeout_s)

    def __enter__(self) -> Self:
        self._connection.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._connection.open)
        except asyncio.CancelledError:
            self._connection.refuse_calls()
            # The thread that opens goes on; it must leave nothing open behind.
            asyncio.get_running_loop().run_in_executor(None, self.close)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
