"""An app whose route pauses a partition at each message, until a file exists; it writes down what it has processed."""

from __future__ import annotations

import os

import awoke

app = awoke.App("resume")
log = os.open(os.environ.get("SWARM_LOG", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.on(
    os.environ.get("SWARM_TOPIC", "none"),
    retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.1), on_exhausted="pause"),
)
def handle(message: awoke.Message[bytes]) -> None:
    """Fail until the repair is there."""
    if not os.path.exists(os.environ["RESUME_REPAIR"]):
        raise ValueError("not repaired yet")
    os.write(log, b"%d %d %d %s\n" % (os.getpid(), message.partition, message.offset, message.value))
