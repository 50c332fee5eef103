"""An app that dies at one message, in its handler or in its decoder: run by the crash scenarios as a process."""

from __future__ import annotations

import os
import signal

import msgspec

import awoke

LANES = bool(os.environ.get("DEADLY_LANES"))


def die_at(text: str) -> None:
    """Kill this process at the message that says so."""
    if text == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)


class Text(msgspec.Struct):
    """A value that kills its process when it is decoded."""

    text: str

    def __post_init__(self) -> None:
        die_at(self.text)


# A static member: a restart has its partitions at once, and no load has it fenced meanwhile.
app = awoke.App("deadly", kafka={"group.instance.id": "deadly"})
log = os.open(os.environ["DEADLY_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.on(
    os.environ["DEADLY_TOPIC"],
    dead_letter=os.environ["DEADLY_DEAD_LETTER"],
    retry=awoke.Retry(crashes=2),
    batch=awoke.Batching(max_messages=20),
    concurrency=awoke.by_key(4) if LANES else None,
    value=Text if LANES else None,
)
def handle(message: awoke.Message) -> None:  # type: ignore[type-arg]
    """Write down what is done; die at the message that says so."""
    text = message.value.text if LANES else message.value.decode()
    die_at(text)
    os.write(log, text.encode() + b"\n")
