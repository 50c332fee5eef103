"""What callers and responders agree on: topics, bodies, kinds of replies. For other languages: `docs/rpc_protocol.md`."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from awoke import serde
from awoke.errors import RpcError

PREFIX = "rpc-"
"""The names of headers that belong to the protocol begin so."""

DEADLINE = "rpc-deadline-ms"
"""When nobody waits for a call any more. The other headers are the engine's concern: `crates/engine/src/rpc/protocol.rs`."""

NAME_BYTES_MAX = 128
"""The longest name of a caller, and of a method."""

REPLY, ITEM, END, ERROR = "reply", "item", "end", "error"
"""What a reply is: the result, one of several, that there are no more, or that the call failed."""

METHODS = "rpc.methods"
"""The method that every service has: it tells of the others."""


class Topics(NamedTuple):
    """The topics of a service."""

    calls: str
    replies: str

    @classmethod
    def of(cls, service: str) -> Topics:
        """By its name."""
        return cls(f"{service}.rpc.calls", f"{service}.rpc.replies")


class Problem(msgspec.Struct, omit_defaults=True):
    """The body of an error."""

    code: str
    message: str
    is_retryable: bool = False
    is_rejected: bool = False
    retry_after_s: float | None = None
    details: Any = None
    traceback: str | None = None


_problems = msgspec.json.Decoder(Problem)


def problem_of(error: RpcError, traceback: str | None = None, *, is_rejected: bool = False) -> bytes:
    """Returns an error as a body. `is_rejected` says that the method was not executed.

    The error's own `is_rejected` is not passed on: it may be about a call that the method itself made.
    """
    problem = Problem(
        error.code, error.message, error.is_retryable, is_rejected, error.retry_after_s, error.details, traceback
    )
    return serde.encode(problem)


def read_problem(body: bytes) -> Problem:
    """A body as an error.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return _problems.decode(body)


def arguments_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Arguments as a body: an object of named ones, or an array.

    Raises:
        TypeError: both kinds; EncodeError: one that can't be written as JSON.
    """
    if args and kwargs:
        raise TypeError("arguments of a remote call are all named, or all in order: not both")
    return serde.encode(list(args) if args else kwargs)
