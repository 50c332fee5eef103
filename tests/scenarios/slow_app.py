"""An app at default settings whose handler takes 50 ms for a message: run by a scenario in processes of its own.

For each message that is done it appends one line `process partition offset` to the file of `SLOW_LOG`.
"""

from __future__ import annotations

import os

import awoke
from tests.support.waiting import awork_for, work_for

app = awoke.App("slow")
log = os.open(os.environ["SLOW_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
TOPIC, OUTPUT, KIND = os.environ["SLOW_TOPIC"], os.environ["SLOW_OUTPUT"], os.environ["SLOW_KIND"]
EACH_S = 0.05


def note(message: awoke.Message[bytes]) -> None:
    """Write down that a message is done."""
    os.write(log, b"%d %d %d\n" % (os.getpid(), message.partition, message.offset))


def work(message: awoke.Message[bytes]) -> None:
    """Take a while."""
    work_for(EACH_S)
    note(message)


async def work_async(message: awoke.Message[bytes]) -> None:
    """Take a while on the event loop."""
    await awork_for(EACH_S)
    note(message)


def copy(message: awoke.Message[bytes]) -> bytes:
    """Take a while and send the value on."""
    work(message)
    return message.value


class Slow(awoke.Consumer):
    """Takes a while for each message of a batch."""

    def consume(self, batch: awoke.Batch[bytes]) -> None:
        """Work on one after the other."""
        for message in batch:
            work(message)


if KIND == "def":
    app.on(TOPIC)(work)
elif KIND == "async":
    app.on(TOPIC)(work_async)
elif KIND == "lanes":
    app.on(TOPIC, concurrency=awoke.by_key(4))(work)
elif KIND == "output":
    app.on(TOPIC, output=OUTPUT)(copy)
else:
    app.consumer(TOPIC)(Slow)
