"""The protocol of callers and responders: topics, bodies, kinds of replies. For other languages:
`docs/rpc_protocol.md`."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from awoke.errors import RpcError
from awoke.payloads.formats import json

PREFIX = "rpc-"
"""Prefix of the protocol's headers."""

WINDOW_MAX = 65_536
"""Most results of a stream that may be under way; a caller that allows more gets as many."""

NAME_BYTES_MAX = 128
"""The longest name of a caller, and of a method."""

LINGER = {"linger.ms": "1"}
"""Requests and replies linger this long while many are on their way, and not at all while they are few."""

REPLY, ITEM, END, ERROR = "reply", "item", "end", "error"
"""The kinds of replies: the result, one of several, the end of them, or an error."""

METHODS = "rpc.methods"
"""The method that every service has: it describes the others."""


class ServiceTopics(NamedTuple):
    """The topics of a service."""

    calls: str
    replies: str

    @classmethod
    def of(cls, service: str) -> ServiceTopics:
        """Returns the topics of the service with this name."""
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
    return json.encode(problem)


def read_problem(body: bytes) -> Problem:
    """Returns a body as an error.

    Raises:
        msgspec.MsgspecError: it can't be read.
    """
    return _problems.decode(body)


def arguments_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Returns arguments as a body: an object of named ones, or an array.

    Raises:
        TypeError: both kinds; EncodeError: one that can't be written as JSON.
    """
    if args and kwargs:
        raise TypeError("arguments of a remote call are all named, or all in order: not both")
    return json.encode(list(args) if args else kwargs)
