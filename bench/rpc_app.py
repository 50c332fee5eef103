"""The service of `bench.rpc` and `bench.rpc_load`: its methods do nothing, or work for a given time."""

from __future__ import annotations

import os

import awoke
from awoke import rpc
from tests.support.waiting import awork_for, work_for

app = awoke.App(os.environ.get("BENCH_SERVICE", "bench-rpc"))
app.rpc.options(threads=int(os.environ.get("BENCH_THREADS", "8")), tasks=int(os.environ.get("BENCH_TASKS", "1000")))


@app.rpc.method
def echo(text: str) -> str:
    """Returns its argument."""
    return text


@app.rpc.method
async def aecho(text: str) -> str:
    """Returns its argument, on the event loop."""
    return text


async_app = awoke.App(os.environ.get("BENCH_SERVICE", "bench-rpc"))
async_app.rpc.method(aecho)
"""A service whose methods are all `async def`: its event loop receives the calls."""


@app.rpc.method
def work(seconds: float) -> str:
    """Waits for some time, as for a database."""
    work_for(seconds)
    return "done"


@app.rpc.method
async def awork(seconds: float) -> str:
    """Waits for some time without a thread."""
    await awork_for(seconds)
    return "done"


@app.rpc.method
def hold() -> bool:
    """Never answers."""
    return rpc.current_call().wait_cancelled()
