"""An app with code that never returns, in the phase that `UNSTOPPABLE` names: run by a scenario in processes."""

from __future__ import annotations

import ctypes
import os

import awoke
from awoke.observe.events import AppStopping
from tests.support.waiting import ahang, work_for

PHASE = os.environ["UNSTOPPABLE"]

app = awoke.App("unstoppable", startup_timeout_s=600.0)


def never_return() -> None:
    """Swallow whatever asks this function to end."""
    print(f"{PHASE} has begun", flush=True)
    while True:
        try:
            work_for(600)
        except BaseException:
            print("swallowed", flush=True)


def never_return_from_c() -> None:
    """Wait in a library of C, where Python runs no handler of a signal."""
    mutex, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    library.pthread_mutex_lock(mutex)
    print(f"{PHASE} has begun", flush=True)
    library.pthread_mutex_lock(mutex)


async def never_return_async() -> None:
    """Wait on the event loop."""
    print(f"{PHASE} has begun", flush=True)
    while True:
        try:
            await ahang()
        except BaseException:
            print("swallowed", flush=True)


if PHASE == "import":
    never_return()
if PHASE == "start":
    app.on_startup(never_return)
if PHASE == "start in C":
    app.on_startup(never_return_from_c)
if PHASE == "async start":
    app.on_startup(never_return_async)
if PHASE == "shutdown":
    app.on_shutdown(never_return)
if PHASE == "async shutdown":
    app.on_shutdown(never_return_async)
if PHASE == "subscriber":
    app.events.subscribe(AppStopping, lambda event: never_return())


@app.on("orders")
async def handle(message: awoke.Message[bytes]) -> None:
    """Hang in the phase that says so."""
    print("got a message", flush=True)
    if PHASE == "async handler":
        await never_return_async()
    if PHASE == "callback":
        app.producer.produce("out", b"").add_done_callback(lambda _: never_return())
