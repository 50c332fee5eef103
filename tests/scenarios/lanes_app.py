"""An app with many lanes that writes down its processed messages: run by scenarios and benchmarks as a process.

For each processed message it appends one line `offset key` to the file of `LANES_LOG`. A handler takes a random time.
It fails the first time for one message in a hundred, and takes a second for one in five thousand. `LANES_HANGS_AT`
is the offset of a message that it never ends.
"""

from __future__ import annotations

import os
import random

import awoke
from tests.support.waiting import ahang, awork_for

app = awoke.App("lanes")
log = os.open(os.environ["LANES_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
MEAN_S = float(os.environ.get("LANES_MEAN_MS", "1")) / 1_000
JOBS = int(os.environ.get("LANES_JOBS", "64"))
HANGS_AT = int(os.environ.get("LANES_HANGS_AT", "-1"))


@app.on(
    os.environ["LANES_TOPIC"],
    concurrency=awoke.by_key(JOBS),
    retry=awoke.Retry(attempts=3, backoff_s=(0.01, 0.1)),
)
async def handle(message: awoke.Message[bytes]) -> None:
    """Wait for something, fail now and then, write down that it is done."""
    if message.offset == HANGS_AT:
        await ahang()
    await awork_for(1.0 if message.offset % 5_000 == 17 else random.expovariate(1 / MEAN_S))
    if message.offset % 100 == 3 and message.attempt == 1:
        raise RuntimeError("the first time")
    assert message.key is not None
    os.write(log, b"%d %s\n" % (message.offset, message.key))
