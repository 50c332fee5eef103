"""What callers and responders agree on: topics, headers, encodings. `docs/rpc_protocol.md` says it for other languages."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from awoke import serde
from awoke.errors import RpcError

PREFIX = "rpc-"
"""The names of headers that belong to the protocol begin so."""

KIND = "rpc-kind"
ID = "rpc-id"
METHOD = "rpc-method"
REPLY_TOPIC = "rpc-reply-topic"
REPLY_PARTITION = "rpc-reply-partition"
DEADLINE = "rpc-deadline-ms"
BUDGET = "rpc-budget-ms"
IDEMPOTENCY = "rpc-idempotency-key"
CALLER = "rpc-caller"
CREDIT = "rpc-credit"
SEQUENCE = "rpc-sequence"
CODE = "rpc-code"
SIGNATURE = "rpc-signature"

CALL, CAST, CANCEL, MORE = "call", "cast", "cancel", "more"
REPLY, ITEM, END, ERROR = "reply", "item", "end", "error"

SIGNED = (KIND, ID, METHOD, DEADLINE, BUDGET, CALLER, REPLY_TOPIC, REPLY_PARTITION, IDEMPOTENCY, CREDIT)
"""The headers of a request that its signature covers, in this order; its body comes behind them."""

METHODS = "rpc.methods"
"""The method that every service has: it tells of the others."""

Headers = Mapping[str, bytes | None]


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
    retry_after_s: float | None = None
    details: Any = None
    traceback: str | None = None


_problems = msgspec.json.Decoder(Problem)


def problem_of(error: RpcError, traceback: str | None = None) -> bytes:
    """An error as a body."""
    problem = Problem(error.code, error.message, error.is_retryable, error.retry_after_s, error.details, traceback)
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


def digest(secret: bytes, fields: Iterable[bytes]) -> bytes:
    """HMAC-SHA256 of fields, each with its length before it."""
    text = b"".join(len(field).to_bytes(8, "big") + field for field in fields)
    return hmac.digest(secret, text, hashlib.sha256)


def is_signed(secret: bytes, headers: Headers, body: bytes) -> bool:
    """Whether the signature of a request is right."""
    expected = digest(secret, [*(headers.get(name) or b"" for name in SIGNED), body])
    return hmac.compare_digest(expected, headers.get(SIGNATURE) or b"")


def sign_reply(secret: bytes, call_id: bytes, kind: str, sequence: int | None, code: str | None, body: bytes) -> bytes:
    """The signature of a reply: it covers these of its headers, in this order, and its body."""
    place = b"" if sequence is None else b"%d" % sequence
    return digest(secret, [call_id, kind.encode(), place, (code or "").encode(), body])
