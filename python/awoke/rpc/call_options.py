"""The options of a call, and the one object that carries them from `Caller.call` to the bridge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from awoke.waiting.clock import monotonic_s

Headers = Mapping[str, bytes | str | None]
Pairs = list[tuple[str, bytes | str | None]]

Request = tuple[str, bytes, float, bytes | None, bytes | None, Pairs | None]
"""Method, body, time-out in seconds, key, idempotency key and headers: a request as the bridge reads it."""


class CallOptions(msgspec.Struct, eq=False, gc=False):
    """The options of one call as its caller gives them; `Caller.call` describes them."""

    timeout_s: float | None = None
    key: bytes | str | None = None
    idempotent: bool | None = None
    idempotency_key: bytes | str | None = None
    argument: Any = None
    """The format of the only argument; None: JSON."""
    returns: Any = Any
    headers: Headers | None = None


CALLER_WORDS = frozenset(CallOptions.__struct_fields__)
"""The names of the options. They stand beside a call's arguments, so no parameter of a method may have such a name."""


class OutgoingCall(CallOptions, eq=False, gc=False):
    """A call that is made once or several times: its options, and what `Planner.plan` makes of them.

    It is in no cycle, so the garbage collector need not look at it.
    """

    method: str = ""
    body: bytes = b""
    granted_s: float = 0.0
    """The time that it may take: its own, but no more than the calls and blocks around it have left."""
    until_s: float = 0.0
    """When that time is over, on awoke's clock."""
    is_idempotent: bool = False
    pairs: Pairs | None = None
    """The headers of its requests."""
    attempts: int = 0

    def request(self, left_s: float) -> Request:
        """Returns the request of an attempt that may take this time, in seconds."""
        key, idempotency_key = self.key, self.idempotency_key
        return (
            self.method,
            self.body,
            left_s,
            key.encode() if isinstance(key, str) else key,
            idempotency_key.encode() if isinstance(idempotency_key, str) else idempotency_key,
            self.pairs,
        )

    def left_s(self) -> float:
        """Returns the rest of its time; negative when it is over."""
        return self.until_s - monotonic_s()
