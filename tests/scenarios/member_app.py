"""An app that writes its hooks and batches down: run by scenarios that kill, or stop, one of several members.

A line is `name hook partition` for a hook, or `name batch partition first last` for a processed batch. One system
call writes it.
"""

from __future__ import annotations

import os
import re

import awoke
from tests.support.waiting import work_for

app = awoke.App("member", kafka={"session.timeout.ms": 3000, "heartbeat.interval.ms": 300}, commit_interval_s=0.1)
log = os.open(os.environ["MEMBER_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
name = os.environ["MEMBER_NAME"]


def write(*words: object) -> None:
    """One line."""
    os.write(log, (" ".join(map(str, (name, *words))) + "\n").encode())


def source() -> str | awoke.Pattern:
    """The topic; or all topics that begin with its name, which are looked for several times a second."""
    topic = os.environ["MEMBER_TOPIC"]
    if "MEMBER_LOOKS" not in os.environ:
        return topic
    app.use(kafka={"topic.metadata.refresh.interval.ms": 200, "group.instance.id": name})
    return awoke.pattern(rf"{re.escape(topic)}.*")


@app.consumer(source(), batch=awoke.Batching(max_messages=10))
class Member(awoke.Consumer):
    """Takes a while for each batch, or as long as the environment says."""

    def assigned(self) -> None:
        """Write it down."""
        write("assigned", self.partition)

    def consume(self, batch: awoke.Batch[bytes]) -> None:
        """Write down what is done."""
        work_for(float(os.environ.get("MEMBER_WORK_S", "0.02")))
        write("batch", self.partition, batch.first_offset, batch.last_offset)

    def revoked(self) -> None:
        """Write it down."""
        write("revoked", self.partition)

    def lost(self) -> None:
        """Write it down."""
        write("lost", self.partition)

    def shutdown(self) -> None:
        """Write it down."""
        write("shutdown", self.partition)
