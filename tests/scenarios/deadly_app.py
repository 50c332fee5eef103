"""An app with a handler that kills its process at one message: run by the crash scenarios in processes of its own."""

from __future__ import annotations

import os
import signal

import awoke

app = awoke.App("deadly", kafka={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
log = os.open(os.environ["DEADLY_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.on(
    os.environ["DEADLY_TOPIC"],
    dead_letter=os.environ["DEADLY_DEAD_LETTER"],
    retry=awoke.Retry(crashes=2),
    batch=awoke.Batching(max_messages=20),
    concurrency=awoke.by_key(4) if os.environ.get("DEADLY_LANES") else None,
)
def handle(message: awoke.Message[bytes]) -> None:
    """Write down what is done; die at the message that says so."""
    if message.value == b"deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    os.write(log, message.value + b"\n")
