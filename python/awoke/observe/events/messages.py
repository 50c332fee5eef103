"""Events of messages and jobs: failures, retries, dead letters, skipped messages."""

from __future__ import annotations

import logging
from typing import ClassVar

from awoke.observe.events.event import Counter, Event
from awoke.observe.events.group import OVERDUE

__all__ = [
    "CrashRecordFailed",
    "DeadLetterFailed",
    "DeadLetterShortened",
    "HookFailed",
    "JobFailed",
    "JobSlow",
    "LaneFailed",
    "MessageDeadLettered",
    "MessageRepeated",
    "MessageSkipped",
    "MessagesExpired",
    "MessagesFiltered",
    "RegistryWaited",
]

OF_ROUTE = {"topic": "topic", "handler": "handler"}
"""The labels of a counter that tells routes apart."""


class OfRoute(Event, frozen=True, kw_only=True):
    """The base of events about a partition of a route."""

    handler: str
    topic: str
    partition: int


class OfMessage(OfRoute, frozen=True, kw_only=True):
    """The base of events about one message of a route."""

    offset: int


class JobFailed(OfMessage, frozen=True, kw_only=True):
    """A handler has raised, or a value does not decode; `retry_in_s` is None after the last attempt."""

    name: ClassVar[str] = "job.failed"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "correct the handler"
    is_of_user_code: ClassVar[bool] = True
    counter: ClassVar[Counter | None] = Counter("awoke_retries_total", "Failed jobs that are tried again.", OF_ROUTE)
    attempt: int
    retry_in_s: float | None
    error: BaseException
    key_hash: str | None = None
    """The same for all messages of a key, which it does not show."""

    @property
    def is_traced(self) -> bool:
        """True for the first attempt: the log has the traceback of a message that is tried again already."""
        return self.attempt == 1

    @property
    def increment(self) -> int:
        """One where the job is tried again."""
        return 0 if self.retry_in_s is None else 1


class RegistryWaited(OfMessage, frozen=True, kw_only=True):
    """The schema registry, or the key store of encrypted values, can't be asked for what a message needs: the message
    waits, and is tried again. A remote call is rejected instead."""

    name: ClassVar[str] = "registry.waited"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "check the schema registry"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_registry_waits_total", "Tries that ended because the schema registry could not be asked.", OF_ROUTE
    )
    retry_in_s: float
    error: BaseException


class JobSlow(OfMessage, frozen=True, kw_only=True):
    """A job runs longer than its route's `max_processing_s`; its stack is in the log."""

    name: ClassVar[str] = "job.slow"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "see the stack"
    counter: ClassVar[Counter | None] = OVERDUE
    reason: ClassVar[str] = "slow"
    ran_s: float
    limit_s: float


class MessageDeadLettered(OfMessage, frozen=True, kw_only=True):
    """A message was sent to the dead letter topic."""

    name: ClassVar[str] = "message.dead_lettered"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "`awoke dead-letter list`"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_dead_letters_total", "Messages sent to a dead letter topic.", OF_ROUTE
    )
    error: BaseException


class MessageSkipped(OfMessage, frozen=True, kw_only=True):
    """A message was skipped without a dead letter, by its route or by `awoke skip`."""

    name: ClassVar[str] = "message.skipped"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "process it otherwise, if it matters"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_skipped_messages_total", "Messages skipped without a dead letter.", OF_ROUTE
    )
    error: BaseException


class DeadLetterFailed(OfMessage, frozen=True, kw_only=True):
    """A dead letter could not be sent.

    `retry_in_s` is None if it would be refused again, and the partition is paused then. One that was refused as too
    large is followed by `message.skipped`.
    """

    name: ClassVar[str] = "dead_letter.failed"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "see [failures](handlers.md#failures)"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_dead_letter_failures_total", "Dead letters that could not be sent.", OF_ROUTE
    )
    dead_letter: str | None
    retry_in_s: float | None
    error: BaseException


class DeadLetterShortened(OfMessage, frozen=True, kw_only=True):
    """A dead letter was refused as too large, and is sent without its value."""

    name: ClassVar[str] = "dead_letter.shortened"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = (
        "raise `max.message.bytes` of the dead letter topic; its headers tell size, digest and place"
    )
    dead_letter: str | None
    error: BaseException


class CrashRecordFailed(OfRoute, frozen=True, kw_only=True):
    """An attempt could not be noted with the brokers; the message is processed all the same."""

    name: ClassVar[str] = "crash_record.failed"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "nothing, unless it stays"
    error: BaseException


class MessagesExpired(Event, frozen=True, kw_only=True):
    """Messages were too old for their route."""

    name: ClassVar[str] = "messages.expired"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_expired_messages_total", "Messages skipped because they were too old.", {"topic": "topic"}
    )
    topic: str
    count: int

    @property
    def increment(self) -> int:
        """The number of messages."""
        return self.count


class MessageRepeated(OfMessage, frozen=True, kw_only=True):
    """A message was skipped, because its id came before."""

    name: ClassVar[str] = "message.repeated"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_repeated_messages_total", "Messages skipped because their id came before.", OF_ROUTE
    )


class MessagesFiltered(Event, frozen=True, kw_only=True):
    """Messages were left out by their route's filter."""

    name: ClassVar[str] = "messages.filtered"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_filtered_messages_total", "Messages skipped by a route's filter.", {"topic": "topic"}
    )
    topic: str
    count: int

    @property
    def increment(self) -> int:
        """The number of messages."""
        return self.count


class LaneFailed(OfMessage, frozen=True, kw_only=True):
    """The function that names a message's lane has raised; the order of the message's key holds instead."""

    name: ClassVar[str] = "lane.failed"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "correct the function"
    is_of_user_code: ClassVar[bool] = True
    counter: ClassVar[Counter | None] = Counter(
        "awoke_lane_failures_total",
        "Exceptions of the function that names a message's lane; the message keeps the order of its key instead.",
        OF_ROUTE,
    )
    error: BaseException


class HookFailed(OfRoute, frozen=True, kw_only=True):
    """A hook of a consumer has raised."""

    name: ClassVar[str] = "hook.failed"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "correct the hook; `assigned` is tried again"
    is_of_user_code: ClassVar[bool] = True
    counter: ClassVar[Counter | None] = Counter(
        "awoke_hook_failures_total", "Exceptions of consumers' hooks.", {**OF_ROUTE, "hook": "hook"}
    )
    hook: str
    error: BaseException
