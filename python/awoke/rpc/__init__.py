"""Calls over Kafka: `app.rpc` answers them, `Caller` makes them. See `docs/rpc.md`."""

from awoke.errors import RpcError
from awoke.rpc.blocking import BlockingCallWarning
from awoke.rpc.caller import Caller
from awoke.rpc.client import Proxy
from awoke.rpc.context import IncomingCall, current_call
from awoke.rpc.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NobodyThere,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    http_status,
)
from awoke.rpc.methods import Options, Rpc
from awoke.rpc.opening import CallerOptions
from awoke.rpc.pending import Gathered, PendingResult, Stream
from awoke.rpc.retries import Retries

__all__ = [
    "Aborted",
    "AlreadyExists",
    "BlockingCallWarning",
    "Caller",
    "CallerOptions",
    "Cancelled",
    "DataLoss",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Gathered",
    "IncomingCall",
    "Internal",
    "InvalidArgument",
    "NobodyThere",
    "NotFound",
    "Options",
    "PendingResult",
    "PermissionDenied",
    "Proxy",
    "ResourceExhausted",
    "Retries",
    "Rpc",
    "RpcError",
    "Stream",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "current_call",
    "http_status",
]
