"""An app whose handler hangs at the message `hang`: run by a scenario in processes of its own."""

from __future__ import annotations

import os

import awoke
from tests.support.waiting import ahang, work_for

app = awoke.App("hanging")


def hang(message: awoke.Message[bytes]) -> None:
    """Say which message has come; of one that says so, do not return for a while."""
    print(f"got {message.partition} {message.offset}", flush=True)
    if message.value == b"hang":
        work_for(60)


async def hang_async(message: awoke.Message[bytes]) -> None:
    """As `hang`, on the event loop."""
    print(f"got {message.partition} {message.offset}", flush=True)
    if message.value == b"hang":
        await ahang()


app.on("orders", output=os.environ.get("HANGING_OUTPUT"))(hang_async if os.environ["HANGING_KIND"] == "async" else hang)
