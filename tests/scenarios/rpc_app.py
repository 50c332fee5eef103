"""A service for a swarm: answers calls, and records the executed ones."""

from __future__ import annotations

import os

import awoke
from awoke import rpc

app = awoke.App(os.environ.get("RPC_SERVICE", "rpc"))
app.rpc.options(partitions=4, mode=os.environ.get("RPC_MODE", "at_least_once"))
log = os.open(os.environ.get("SWARM_LOG", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.rpc.method(idempotent=True)
def double(number: int) -> int:
    """Twice as much."""
    os.write(log, b"%d\n" % number)
    return 2 * number


@app.rpc.method
def pid() -> int:
    """Returns the process."""
    return os.getpid()


@app.rpc.method
def hold(seconds: float) -> str:
    """Take some time."""
    return "cancelled" if rpc.current_call().wait_cancelled(seconds) else "done"
