"""What a remote call can end with, in the sense of gRPC's codes.

RpcError                  the base, in `awoke.errors`; what a caller gets for a code that it does not know
├── Cancelled             the caller gave it up
├── InvalidArgument       the arguments are not what the method takes
├── DeadlineExceeded      nobody has answered in time; the call may still be carried out
├── NotFound              what the call is about does not exist
├── AlreadyExists         it exists already
├── PermissionDenied      this caller may not
├── Unauthenticated       the request is not signed, or wrongly
├── ResourceExhausted     too much is under way; see `retry_after_s`
├── FailedPrecondition    not in this state
├── Aborted               something else was going on
├── Unimplemented         the service has no such method
├── Internal              the method failed
├── Unavailable           the request or the reply could not be carried
│   └── NobodyThere       no responder of the service is there
└── DataLoss              a part of a stream is missing
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from awoke.errors import BrokerUnreachable, ClosedError, OperationTimeout, QueueFull, RpcError, UnknownTopic


class Cancelled(RpcError):
    """The caller gave it up."""

    code = "cancelled"


class InvalidArgument(RpcError):
    """The arguments are not what the method takes."""

    code = "invalid_argument"


class DeadlineExceeded(RpcError):
    """Nobody has answered in time; the call may still be carried out."""

    code = "deadline_exceeded"


class NotFound(RpcError):
    """What the call is about does not exist."""

    code = "not_found"


class AlreadyExists(RpcError):
    """It exists already."""

    code = "already_exists"


class PermissionDenied(RpcError):
    """This caller may not."""

    code = "permission_denied"


class Unauthenticated(RpcError):
    """The request is not signed, or wrongly."""

    code = "unauthenticated"


class ResourceExhausted(RpcError):
    """Too much is under way. See `retry_after_s`; `is_rejected` says whether the responder refused to begin the call."""

    code = "resource_exhausted"
    is_retryable = True


class FailedPrecondition(RpcError):
    """Not in this state."""

    code = "failed_precondition"


class Aborted(RpcError):
    """Something else was going on."""

    code = "aborted"


class Unimplemented(RpcError):
    """The service has no such method."""

    code = "unimplemented"


class Internal(RpcError):
    """The method failed; the responder's log says how."""

    code = "internal"


class Unavailable(RpcError):
    """The request or the reply could not be carried; the call may have been carried out."""

    code = "unavailable"
    is_retryable = True


class NobodyThere(Unavailable):
    """No responder of the service is there. One that comes before the deadline may still carry the call out."""

    code = "nobody_there"


class DataLoss(RpcError):
    """A part of a stream is missing."""

    code = "data_loss"


KINDS: Mapping[str, type[RpcError]] = {
    kind.code: kind
    for kind in (
        Cancelled,
        InvalidArgument,
        DeadlineExceeded,
        NotFound,
        AlreadyExists,
        PermissionDenied,
        Unauthenticated,
        ResourceExhausted,
        FailedPrecondition,
        Aborted,
        Unimplemented,
        Internal,
        Unavailable,
        NobodyThere,
        DataLoss,
    )
}
"""The class of each code."""


def error_of(
    code: str,
    message: str,
    kinds: Mapping[str, type[RpcError]] = KINDS,
    *,
    details: Any = None,
    is_retryable: bool | None = None,
    is_rejected: bool = False,
    retry_after_s: float | None = None,
    remote_traceback: str | None = None,
) -> RpcError:
    """The error with this code: of the class that is registered for it, and of no other."""
    error = kinds.get(code, RpcError)(message, details=details, is_retryable=is_retryable, retry_after_s=retry_after_s)
    error.code = code
    error.is_rejected = is_rejected
    error.remote_traceback = remote_traceback
    return error


HTTP_STATUS: Mapping[str, int] = {
    "cancelled": 499,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "unauthenticated": 401,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "nobody_there": 503,
    "data_loss": 500,
}
"""The HTTP status of each code, as gRPC's gateways map theirs."""


def http_status(error: BaseException) -> int:
    """Returns the number of the HTTP status that tells of an error.

    A code of the service's own has the status of the class that its class derives from, or 500. A closed client, a full
    queue, a missing topic and unreachable brokers are 503, a time-out is 504, a cancelled task is 499, the rest is 500.
    """
    if isinstance(error, RpcError):
        codes = [error.code, *(getattr(kind, "code", "") for kind in type(error).__mro__)]
        return next((HTTP_STATUS[code] for code in codes if code in HTTP_STATUS), 500)
    return next((status for kind, status in STATUS_OF_OTHERS if isinstance(error, kind)), 500)


STATUS_OF_OTHERS: Sequence[tuple[type[BaseException], int]] = (
    (ClosedError, 503),
    (BrokerUnreachable, 503),
    (UnknownTopic, 503),
    (QueueFull, 503),
    (OperationTimeout, 504),
    (TimeoutError, 504),
    (asyncio.CancelledError, 499),
)


def streaming_error(name: str) -> RpcError:
    """Returns the error of a call that wants one result of a method that returns a stream."""
    return InvalidArgument(f"{name} returns a stream of results: use stream(…), not call(…)")
