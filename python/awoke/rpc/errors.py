"""The errors of remote calls, with gRPC's codes. A code is added here only: its class, and a line in `__all__`.

RpcError                  the base, in `awoke.errors`; a caller gets it for a code that it does not know
├── Cancelled             the call was cancelled
├── InvalidArgument       the arguments are not what the method takes
├── DeadlineExceeded      no reply came in time; the call may still be executed
├── NotFound              the subject of the call does not exist
├── AlreadyExists         it exists already
├── PermissionDenied      this caller may not call the method
├── Unauthenticated       the request is not signed, or has a wrong signature
├── ResourceExhausted     too much is under way; see `retry_after_s`
├── FailedPrecondition    the call is not possible in this state
├── Aborted               a concurrent operation was in the way
├── Unimplemented         the service has no such method
├── Internal              the method failed
├── Unavailable           the request or the reply could not be transported
│   ├── NobodyThere       no responder is a member of the group
│   └── Restoring         the partition of a table is being restored
└── DataLoss              a part of a stream is missing
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from awoke.errors import (
    BrokerUnreachable,
    ClosedError,
    MessageTooLarge,
    OperationTimeout,
    QueueFull,
    RpcError,
    UnknownTopic,
)
from awoke.payloads.registry.errors import RegistryError

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Cancelled",
    "DataLoss",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "NobodyThere",
    "NotFound",
    "PermissionDenied",
    "ResourceExhausted",
    "Restoring",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "http_status",
]


class Cancelled(RpcError):
    """The call was cancelled."""

    code = "cancelled"
    http_status = 499


class InvalidArgument(RpcError):
    """The arguments are not what the method takes."""

    code = "invalid_argument"
    http_status = 400


class DeadlineExceeded(RpcError):
    """No reply came in time; the call may still be executed."""

    code = "deadline_exceeded"
    http_status = 504


class NotFound(RpcError):
    """The subject of the call does not exist."""

    code = "not_found"
    http_status = 404


class AlreadyExists(RpcError):
    """The subject of the call exists already."""

    code = "already_exists"
    http_status = 409


class PermissionDenied(RpcError):
    """This caller may not call the method."""

    code = "permission_denied"
    http_status = 403


class Unauthenticated(RpcError):
    """The request is not signed, or has a wrong signature."""

    code = "unauthenticated"
    http_status = 401


class ResourceExhausted(RpcError):
    """Too much is under way. See `retry_after_s`; `is_rejected` says whether the responder refused to begin the
    call."""

    code = "resource_exhausted"
    http_status = 429
    is_retryable = True


class FailedPrecondition(RpcError):
    """The call is not possible in this state."""

    code = "failed_precondition"
    http_status = 400


class Aborted(RpcError):
    """A concurrent operation was in the way."""

    code = "aborted"
    http_status = 409


class Unimplemented(RpcError):
    """The service has no such method."""

    code = "unimplemented"
    http_status = 501


class Internal(RpcError):
    """The method failed; the responder's log says how."""

    code = "internal"
    http_status = 500


class Unavailable(RpcError):
    """The request or the reply could not be transported; the call may have been executed."""

    code = "unavailable"
    http_status = 503
    is_retryable = True


class NobodyThere(Unavailable):
    """No responder is a member of the group. One that starts before the deadline may still execute the call."""

    code = "nobody_there"
    http_status = 503


class Restoring(Unavailable):
    """The partition of a table is being restored: its rows are not all there yet. `stale=True` reads what is there."""

    code = "restoring"
    http_status = 503


class DataLoss(RpcError):
    """A part of a stream is missing."""

    code = "data_loss"
    http_status = 500


KINDS: Mapping[str, type[RpcError]] = {
    kind.code: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, RpcError) and kind is not RpcError
}
"""The class of each code."""


def error_of(
    code: str,
    message: str,
    kinds: Mapping[str, type[RpcError]] = KINDS,
    *,
    details: Any = None,
    is_retryable: bool | None = None,
    retry_after_s: float | None = None,
) -> RpcError:
    """Returns the error with this code, of the class in `kinds`; of `RpcError` if it has none."""
    error = kinds.get(code, RpcError)(message, details=details, is_retryable=is_retryable, retry_after_s=retry_after_s)
    error.code = code
    return error


def http_status(error: BaseException) -> int:
    """Returns the HTTP status of an error, as gRPC's gateways map theirs.

    A code of the service's own has the status of the class that its class derives from, or 500. A closed client, a full
    queue, a missing topic, unreachable brokers and a schema registry that does not give a schema are 503, a time-out is
    504, a cancelled task is 499, the rest is 500.
    """
    if isinstance(error, RpcError):
        return KINDS.get(error.code, type(error)).http_status
    return next((status for kind, status in STATUS_OF_OTHERS if isinstance(error, kind)), 500)


STATUS_OF_OTHERS: Sequence[tuple[type[BaseException], int]] = (
    (ClosedError, 503),
    (BrokerUnreachable, 503),
    (UnknownTopic, 503),
    (QueueFull, 503),
    (RegistryError, 503),
    (OperationTimeout, 504),
    (TimeoutError, 504),
    (asyncio.CancelledError, 499),
)


def streaming_error(name: str) -> RpcError:
    """Returns the error of a call that wants one result of a method that returns a stream."""
    return InvalidArgument(f"{name} returns a stream of results: use stream(…), not call(…)")


def reply_too_large(error: MessageTooLarge) -> RpcError:
    """Returns the error for a caller whose reply is larger than messages may be."""
    return ResourceExhausted(f"the reply is too large: {error}", is_retryable=False)
