"""The parts of a call, for all its attempts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from awoke.observe.tracing import Tracer
from awoke.rpc import protocol
from awoke.rpc.caller.forms import CallerForms
from awoke.rpc.context import limited
from awoke.waiting.clock import monotonic_s

Headers = Mapping[str, bytes | str | None]
Pairs = list[tuple[str, bytes | str | None]]
Request = tuple[str, bytes, float, bytes | None, bytes | None, Pairs | None]


class CallOptions(NamedTuple):
    """The options of one call; `Caller.call` describes them."""

    timeout_s: float | None = None
    key: bytes | str | None = None
    idempotent: bool | None = None
    idempotency_key: str | bytes | None = None
    returns: Any = Any
    headers: Headers | None = None
    argument: Any = None
    """The format of the only argument; None: JSON."""


class Plan(msgspec.Struct, eq=False, gc=False):
    """A call that is made once or several times. It is in no cycle, so the garbage collector need not look at it."""

    method: str
    body: bytes
    timeout_s: float
    until_s: float
    """When its time is over, on awoke's clock."""
    key: bytes | None
    is_idempotent: bool
    idempotency_key: bytes | None
    headers: Pairs | None
    attempts: int = 0

    def request(self, left_s: float) -> Request:
        """Returns the request of an attempt that may take this time, in seconds, as the engine takes it."""
        return (self.method, self.body, left_s, self.key, self.idempotency_key, self.headers)

    def left_s(self) -> float:
        """Returns the rest of its time; negative when it is over."""
        return self.until_s - monotonic_s()


class Planner:
    """Makes the plans of one caller's calls. Any thread."""

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

    def plan(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], options: CallOptions) -> Plan:
        """Returns the plan of a call, whose time begins now.

        Raises:
            ConfigError: nothing can be read as `returns`, or `argument` is no format. EncodeError, TypeError,
            ValueError, SchemaNeeded, RegistryError: see `Caller.call`.
        """
        timeout_s, key, idempotent, idempotency_key, returns, headers, argument = options
        if returns is not Any and returns is not None:
            self._forms.reader(method, returns)  # Before the call: its answer could not be read.
        body = self._forms.body(method, args, kwargs, argument)  # It may load a schema: the time begins after that.
        timeout_s = limited(self._timeout_s if timeout_s is None else timeout_s)
        is_idempotent = idempotency_key is not None or (
            method in self._idempotent if idempotent is None else idempotent
        )
        if is_idempotent and idempotency_key is None and self._is_retried:
            idempotency_key = uuid.uuid4().bytes
        more = None if headers is None and self._tracer is None else self._headers(headers or {})
        return Plan(
            method,
            body,
            timeout_s,
            monotonic_s() + timeout_s,
            key.encode() if isinstance(key, str) else key,
            is_idempotent,
            idempotency_key.encode() if isinstance(idempotency_key, str) else idempotency_key,
            more,
        )

    def _headers(self, headers: Headers) -> Pairs:
        if any(name.startswith(protocol.PREFIX) for name in headers):
            raise ValueError(f"headers whose names begin with {protocol.PREFIX} belong to the protocol")
        pairs = list(headers.items())
        return pairs if self._tracer is None else self._tracer.headers(pairs)
