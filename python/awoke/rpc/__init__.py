"""Calls over Kafka: `app.rpc` answers them, `Caller` makes them. See `docs/rpc.md`."""

from awoke._native import IncomingCall
from awoke.errors import RpcError
from awoke.rpc import errors
from awoke.rpc.caller.attempts import Retries
from awoke.rpc.caller.caller import BlockingCallWarning, Caller, CallerOptions
from awoke.rpc.caller.client import Proxy
from awoke.rpc.caller.pending import Gathered, PendingResult, Stream
from awoke.rpc.context import current_call, deadline
from awoke.rpc.errors import *  # noqa: F403  # A new code is a line in that file only.
from awoke.rpc.responder.methods import Options, Rpc

__all__ = [
    "BlockingCallWarning",
    "Caller",
    "CallerOptions",
    "Gathered",
    "IncomingCall",
    "Options",
    "PendingResult",
    "Proxy",
    "Retries",
    "Rpc",
    "RpcError",
    "Stream",
    "current_call",
    "deadline",
]
__all__ += errors.__all__
