"""An app whose handler hangs at the message `hang`: run by a scenario in processes of its own."""

from __future__ import annotations

import asyncio
import os
import threading

import awoke

app = awoke.App("hanging")


def hang(message: awoke.Message[bytes]) -> None:
    """Say which message has come; of one that says so, do not return for a while."""
    print(f"got {message.partition} {message.offset}", flush=True)
    if message.value == b"hang":
        threading.Event().wait(60)


async def hang_async(message: awoke.Message[bytes]) -> None:
    """As `hang`, on the event loop."""
    print(f"got {message.partition} {message.offset}", flush=True)
    if message.value == b"hang":
        await asyncio.Event().wait()


app.on("orders")(hang_async if os.environ["HANGING_KIND"] == "async" else hang)
