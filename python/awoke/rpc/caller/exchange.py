"""Both sides of a call: the request that is made of its options, and the result or error that its reply means."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from awoke.errors import ClosedError, DecodeError, RpcError
from awoke.observe.tracing import Tracer
from awoke.payloads.formats import json, protobuf_classes
from awoke.payloads.registry.errors import SchemaNotFound
from awoke.payloads.registry.schemas import LOADS_MAX, SchemaNeeded, Schemas, load_here
from awoke.rpc import forms, protocol
from awoke.rpc.call_options import Headers, OutgoingCall, Pairs
from awoke.rpc.context import limited
from awoke.rpc.errors import DeadlineExceeded, Internal, NobodyThere, error_of, streaming_error
from awoke.rpc.forms import Read, Write
from awoke.text.durations import duration
from awoke.waiting.clock import monotonic_s
from awoke.waiting.drive import elsewhere

KEPT_MAX = 256
"""Readers and writers that are kept, each for a method and a type or a format."""

Part = tuple[str, bytes | str | None, str | None]
"""The next part of a call, as the engine returns it: a kind, and a body, or a code and a text."""

_decode = msgspec.json.Decoder().decode

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""No JSON, not the JSON that was expected, no UTF-8, or nested too deeply."""


class CallerForms:
    """Writes arguments and makes readers of results: JSON, or the format that a call names. Any thread."""

    def __init__(self, service: str, schemas: Schemas, *, is_own: bool = False) -> None:
        self._service, self._schemas, self._is_own = service, schemas, is_own
        self._writer = lru_cache(KEPT_MAX)(self._make_writer)
        self.reader = lru_cache(KEPT_MAX)(self._make_reader)
        """Returns the function that reads the results of a method as this type or format. Raises ConfigError."""

    def body(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], argument: Any) -> bytes:
        """Returns arguments as a body: in the format that `argument` names, or else JSON.

        A schema that is missing is loaded on this thread.

        Raises:
            TypeError: Not one argument, or by name and in order; EncodeError; RegistryError: the registry does not give
            the schema; SchemaNeeded: an event loop runs on this thread, which must not wait.
        """
        if argument is None:
            is_message = protobuf_classes.is_message
            if kwargs or len(args) != 1 or not is_message(type(args[0])):  # type: ignore[arg-type]
                return protocol.arguments_of(args, kwargs)
            argument = type(args[0])
        values = [*args, *kwargs.values()]
        if len(values) != 1:
            raise TypeError(f"{method}: a call with argument= takes exactly one argument, {len(values)} were given")
        write = self._writer(method, argument)
        try:
            return write(values[0])
        except SchemaNeeded as needed:
            body: bytes = load_here(write, needed, values[0])
            return body

    def close(self) -> None:
        """Closes the registry's client, if it is the caller's own."""
        if self._is_own:
            self._schemas.close()

    def _make_writer(self, method: str, argument: Any) -> Write:
        form = forms.checked(argument, "argument")
        return forms.writer(form, forms.argument_topic(self._service, method), self._schemas)

    def _make_reader(self, method: str, returns: Any) -> Read:
        form = returns if forms.is_form(returns) else forms.form_in(returns)
        if form is None:
            return json.result_decoder(returns)
        return forms.reader(form, forms.result_topic(self._service, method), self._schemas)


class Planner:
    """Plans the calls of one caller. Any thread."""

    def __init__(
        self,
        timeout_s: float,
        idempotent: frozenset[str],
        is_retried: bool,
        tracer: Tracer | None,
        forms: CallerForms,
    ) -> None:
        self._timeout_s, self._idempotent, self._is_retried, self._tracer = timeout_s, idempotent, is_retried, tracer
        self._forms = forms

    def plan(self, call: OutgoingCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OutgoingCall:
        """Makes of a call's options and arguments what its attempts need, and returns the call. Its time begins now.

        Raises:
            ConfigError: nothing can be read as `returns`, or `argument` is no format. EncodeError, TypeError,
            ValueError, SchemaNeeded, RegistryError: see `Caller.call`. DeadlineExceeded: the call, or the block around
            it, has no time left.
        """
        method, returns, timeout_s, idempotent = call.method, call.returns, call.timeout_s, call.idempotent
        if returns is not Any and returns is not None:
            self._forms.reader(method, returns)  # Before the call: its answer could not be read.
        # It may load a schema: the time begins after that.
        call.body = self._forms.body(method, args, kwargs, call.argument)
        call.granted_s = timeout_s = limited(self._timeout_s if timeout_s is None else timeout_s)
        if timeout_s <= 0.0:
            late = duration(-timeout_s)
            raise DeadlineExceeded(f"{method}: its time was over {late} before the call: nothing was sent")
        if call.idempotency_key is not None:
            call.is_idempotent = True
        elif method in self._idempotent if idempotent is None else idempotent:
            call.is_idempotent = True
            if self._is_retried:
                call.idempotency_key = uuid.uuid4().bytes
        if call.headers is not None or self._tracer is not None:
            call.pairs = self._pairs(call.headers or {})
        call.until_s = monotonic_s() + timeout_s
        return call

    def _pairs(self, headers: Headers) -> Pairs:
        if any(name.startswith(protocol.PREFIX) for name in headers):
            raise ValueError(f"headers whose names begin with {protocol.PREFIX} belong to the protocol")
        pairs = list(headers.items())
        return pairs if self._tracer is None else self._tracer.headers(pairs)


class ReplyReader:
    """Reads the parts of one service's calls: a result, one result of a stream, or an error. Any thread."""

    def __init__(self, service: str, kinds: Mapping[str, type[RpcError]], forms: CallerForms) -> None:
        self._service, self._kinds, self._forms = service, kinds, forms

    def named(self, call: OutgoingCall, text: str) -> str:
        """Returns a message about a call, which names its method."""
        return f"{self._service}.{call.method}: {text}"

    def read(self, call: OutgoingCall, part: Part) -> Any:
        """Returns the only result of a call.

        Raises:
            RpcError: it is an error, or the method returns a stream; DecodeError: it is not what was expected.
            SchemaNeeded: the result needs a schema that is not loaded yet.
        """
        word, body, _ = part
        if word != protocol.REPLY:
            raise self._no_result(call, part)
        assert isinstance(body, bytes)
        returns = call.returns
        try:
            if returns is Any or returns is None:
                return _decode(body)
            return self._forms.reader(call.method, returns)(body)
        except UNREADABLE as error:
            raise self._unreadable(call, error) from error

    def read_item(self, call: OutgoingCall, part: Part) -> Any:
        """Returns one result of a stream; raises as `read`."""
        word, body, detail = part
        return self.read(call, (protocol.REPLY, body, detail) if word == protocol.ITEM else part)

    async def read_loading(self, read: Callable[[OutgoingCall, Part], Any], call: OutgoingCall, part: Part) -> Any:
        """Returns what `read` or `read_item` returns, and loads the schema that it needs. A flow."""
        try:
            return read(call, part)
        except SchemaNeeded as needed:
            return await self.loaded(needed, read, call, part)

    async def loaded(
        self, needed: SchemaNeeded, read: Callable[[OutgoingCall, Part], Any], call: OutgoingCall, part: Part
    ) -> Any:
        """Loads the schema that `read` or `read_item` needs, and calls it again. A flow.

        Raises:
            RegistryError: the registry does not give the schema. And as `read`.
        """
        for _ in range(LOADS_MAX):
            with contextlib.suppress(SchemaNotFound):  # The reader says so.
                await elsewhere(needed.load)
            try:
                return read(call, part)
            except SchemaNeeded as another:
                needed = another
        raise needed

    def failure(self, call: OutgoingCall, code: str, text: str) -> Exception:
        """Returns the error of a call that ended without a reply."""
        name = f"{self._service}.{call.method}"
        if code == "closed":
            return ClosedError(f"{name}: {text}")
        if code == "deadline_exceeded":
            return DeadlineExceeded(f"{name}: no reply within {call.granted_s:g} s; it may still be executed")
        if code == NobodyThere.code:
            text += "; if its responders are in another group, say so with group="
        is_retryable = False if code == "resource_exhausted" else None
        return error_of(code, f"{name}: {text}", is_retryable=is_retryable)

    def _no_result(self, call: OutgoingCall, part: Part) -> Exception:
        word, body, detail = part
        if word == "failed":
            return self.failure(call, str(body), str(detail))
        if word == protocol.ERROR and isinstance(body, bytes):
            return self._error(call, body)
        return streaming_error(f"{self._service}.{call.method}")

    def _error(self, call: OutgoingCall, body: bytes) -> RpcError:
        try:
            problem = protocol.read_problem(body)
        except UNREADABLE as error:
            return Internal(f"{self._service}.{call.method}: its error can't be read: {error}")
        found = error_of(
            problem.code,
            problem.message,
            self._kinds,
            details=problem.details,
            is_retryable=problem.is_retryable,
            retry_after_s=problem.retry_after_s,
        )
        found.is_rejected, found.remote_traceback = problem.is_rejected, problem.traceback
        return found

    def _unreadable(self, call: OutgoingCall, error: Exception) -> DecodeError:
        returns = call.returns
        kind = "JSON" if returns is Any or returns is None else returns
        as_kind = "" if forms.is_form(returns) else f" can't be read as {kind}"  # The text of a format says it.
        return DecodeError(f"the result of {self._service}.{call.method}{as_kind}: {error}")
