"""An app whose topic is read by two consumer groups, for a swarm: each writes down what it has processed.

A group's messages are lines `pid partition offset value`, as those of `swarm_app`, in a file of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import awoke

app = awoke.App("groups")
topic, file = os.environ["SWARM_TOPIC"], os.environ["SWARM_LOG"]


def writing_to(name: str) -> Callable[[awoke.Message[bytes]], None]:
    """Returns a handler that writes to a file."""
    log = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(message: awoke.Message[bytes]) -> None:
        """Write down which message was processed."""
        os.write(log, b"%d %d %d %b\n" % (os.getpid(), message.partition, message.offset, message.value))

    return note


app.on(topic)(writing_to(file))
app.on(topic, group=f"{topic}-audit", concurrency=awoke.by_key(4))(writing_to(f"{file}.audit"))
