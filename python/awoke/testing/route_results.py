"""The results of a run of a route without brokers, as data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from awoke._native import make_batch
from awoke.declare.routing import Route
from awoke.observe.events import Event, HookFailed, JobFailed, MessageDeadLettered, MessageSkipped
from awoke.payloads.dead_letter import HEADERS, origin
from awoke.testing.memory.partition import Entry
from awoke.testing.memory.process import MemoryProcess
from awoke.testing.memory.producing import Sent
from awoke.testing.memory.running import MemoryRun
from awoke.testing.messages import MessageParts, Pairs

State = Literal["handled", "dead-lettered", "skipped", "waiting"]
"""The end of a message. `waiting`: the run ended before it was done."""


Place = tuple[int, int]
"""Partition and offset."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A record that the route has sent: a result, or a message that its handler has produced."""

    topic: str
    value: Any
    """As the handler gave it, not encoded; `data` has the bytes."""
    key: bytes | None = None
    headers: Pairs = []
    data: bytes | None = None


class SentLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An exhausted message, as it was sent to the dead letter topic."""

    topic: str
    partition: int
    offset: int
    """Partition and offset of the original message."""
    value: bytes | None
    key: bytes | None
    headers: Pairs
    """The message's own headers, without those that awoke adds."""
    attempts: int
    error_type: str
    reason: str
    """The text of the last error."""


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that has failed."""

    partition: int
    offset: int
    attempt: int
    retry_in_s: float | None
    """The delay before the next attempt; None if the message is exhausted."""
    error: BaseException


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one message."""

    partition: int
    offset: int
    state: State
    attempts: int
    """The number of times that its handler was called, or that its value did not decode."""


class RouteRun(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run of a route."""

    messages: Sequence[Outcome]
    """The messages, by partition and offset."""
    outputs: Sequence[Output]
    """The records that were sent, in order, without dead letters."""
    dead_letters: Sequence[SentLetter]
    failures: Sequence[Failed]
    """All attempts that have failed, in order."""
    state: Literal["completed", "waiting", "paused", "stopped"]
    """`completed`: all messages are done. `waiting`: the time was up. `paused`, `stopped`: see `awoke.Retry`."""
    took_s: float
    """The time that messages have waited for their next attempt, in seconds."""
    committed: dict[int, int | None]
    """The offset that is committed in the end, by partition."""
    error: BaseException | None = None
    """The error that has stopped the app."""
    events: Sequence[Event] = ()
    """awoke's events, as `app.events` gets them."""

    @property
    def delays_s(self) -> list[float]:
        """The delays before the attempts after the first, in order."""
        return [each.retry_in_s for each in self.failures if each.retry_in_s is not None]

    def offsets(self, state: State) -> list[int]:
        """Returns the offsets of the messages in this state, by partition and offset."""
        return [each.offset for each in self.messages if each.state == state]

    def values(self, topic: str) -> list[Any]:
        """Returns the values that were sent to a topic, in order."""
        return [each.value for each in self.outputs if each.topic == topic]

    def check(self) -> RouteRun:
        """Raises the error of the first attempt that has failed, with its traceback; returns the run if none has."""
        for each in self.failures:
            raise each.error
        for event in self.events:
            if isinstance(event, HookFailed):
                raise event.error
        return self


def result_of(process: MemoryProcess, run: MemoryRun, sent: Sequence[Sent]) -> RouteRun:
    """Returns what a run that has ended has done."""
    seen = process.events.seen
    outputs = [each for each in sent if not is_letter(process.route, each)]
    about: dict[Place, list[Event]] = defaultdict(list)
    for event in seen:
        about[(getattr(event, "partition", -1), getattr(event, "offset", -1))].append(event)
    outcomes = [
        _outcome(each.number, entry, about.get((each.number, entry.offset), ()))
        for each in run.partitions
        for entry in each.entries
    ]
    return RouteRun(
        messages=outcomes,
        outputs=[Output(**{name: getattr(each, name) for name in Output.__struct_fields__}) for each in outputs],
        dead_letters=[_dead_letter(each) for each in sent if is_letter(process.route, each)],
        failures=[_failed(each) for each in seen if isinstance(each, JobFailed)],
        state=_state(process, run, outcomes),
        took_s=run.now_s,
        committed={each.number: each.offsets()[1] for each in run.partitions},
        error=process.stopped_by,
        events=seen,
    )


def _state(
    process: MemoryProcess, run: MemoryRun, outcomes: Sequence[Outcome]
) -> Literal["completed", "waiting", "paused", "stopped"]:
    if process.stopped_by is not None:
        return "stopped"
    if any(each.is_paused for each in run.partitions):
        return "paused"
    return "waiting" if any(each.state == "waiting" for each in outcomes) else "completed"


def _outcome(partition: int, entry: Entry, about: Sequence[Event]) -> Outcome:
    failed = sum(isinstance(each, JobFailed) for each in about)
    state: State = "handled" if entry.is_done else "waiting"
    if any(isinstance(each, MessageDeadLettered) for each in about):
        state = "dead-lettered"
    elif any(isinstance(each, MessageSkipped) for each in about):
        state = "skipped"
    return Outcome(partition=partition, offset=entry.offset, state=state, attempts=failed + (state == "handled"))


def _failed(event: JobFailed) -> Failed:
    return Failed(**{name: getattr(event, name) for name in Failed.__struct_fields__})


def is_letter(route: Route, sent: Sent) -> bool:
    """Returns whether a record is a dead letter of the route."""
    return sent.topic == route.dead_letter and any(name in HEADERS for name, _ in sent.headers)


def _dead_letter(sent: Sent) -> SentLetter:
    parts = MessageParts(0, sent.data, sent.key, sent.headers, sent.timestamp_ms)
    found = origin(make_batch((sent.topic, 0), [parts])[0])
    assert found is not None
    return SentLetter(
        topic=sent.topic,
        partition=found.partition,
        offset=found.offset,
        value=sent.data,
        key=sent.key,
        headers=[each for each in sent.headers if each[0] not in HEADERS],
        attempts=found.attempts,
        error_type=found.error_type,
        reason=found.error_text,
    )
