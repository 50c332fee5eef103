"""The data of a probe: failures, retries, dead letters, commits, calls of handlers, sent messages."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Failure:
    """An exception of user code. Two failures are equal if all but their exceptions are."""

    event: str
    """The event that told of it: `job.failed`, `hook.failed`, `background.failed`, …"""
    handler: str
    """The function or class; empty if the event does not tell."""
    topic: str | None
    partition: int | None
    offset: int | None
    """None for a failure that is not of a message."""
    attempt: int | None
    error: BaseException = field(compare=False)

    def __str__(self) -> str:
        where = f" at {self.topic}[{self.partition}]" if self.topic is not None else ""
        where += f" offset {self.offset}" if self.offset is not None else ""
        which = f", attempt {self.attempt}" if self.attempt is not None else ""
        return f"{self.event}: {self.handler}{where}{which}: {self.error!r}"

    def traced(self) -> str:
        """Returns it with the traceback of its exception."""
        return f"{self}\n{''.join(traceback.format_exception(self.error))}"


@dataclass(frozen=True)
class RecordedRetry:
    """A message that failed and is tried again."""

    topic: str
    partition: int
    offset: int
    attempt: int
    """The attempt that failed, from 1."""
    after_s: float
    """The back-off before the next attempt, in seconds."""


@dataclass(frozen=True)
class DeadLetter:
    """A message that was sent to a dead letter topic."""

    topic: str
    """The topic from which it came."""
    partition: int
    offset: int
    error: BaseException = field(compare=False)


@dataclass(frozen=True)
class Commit:
    """An offset that the brokers hold for a group: the next one to process."""

    group: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Call:
    """A call of a handler that has returned or raised. Of a batch there is one for each message."""

    handler: str
    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    """Decoded if the call returned, else bytes."""
    attempt: int
    has_failed: bool


@dataclass(frozen=True)
class SentMessage:
    """A message of a topic."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
