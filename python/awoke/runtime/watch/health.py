"""Finds the reasons why a running app is unhealthy: one sentence each, with its place and what to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from awoke import _native
from awoke.declare.routing import Route
from awoke.observe.events import OutputBlocked, OutputUnblocked
from awoke.observe.partitions import PartitionState, not_written, without_owner
from awoke.runtime.extension import Extension
from awoke.runtime.failures.failures import Failures
from awoke.runtime.process.refusals import Refusals
from awoke.settings import Settings
from awoke.text.durations import duration
from awoke.text.printable import text_of
from awoke.waiting.clock import wall_ms


class WatchedGroup(Protocol):
    """The parts of a running consumer group that reasons come from."""

    @property
    def group(self) -> str: ...
    @property
    def is_own(self) -> bool: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def routes(self) -> Mapping[str, Route]: ...
    @property
    def member(self) -> _native.GroupMember | None: ...
    @property
    def failures(self) -> Failures: ...
    @property
    def refusals(self) -> Refusals: ...
    @property
    def paused(self) -> Mapping[tuple[str, int], tuple[_native.Partition, BaseException]]: ...
    def stuck(self) -> Sequence[tuple[str, int, str, bool]]: ...
    def unowned(self) -> Sequence[tuple[str, int]]: ...
    def partitions(self) -> Sequence[PartitionState]: ...


class BlockedOutput(NamedTuple):
    """A partition to which nothing can be written."""

    topic: str
    partition: int
    messages: int
    """Those that waited when it was found."""
    since_ms: int
    text: str


class BlockedOutputs:
    """The partitions to which nothing can be written, as the producers of the process tell them.

    Any thread may call everything here; nothing blocks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], list[BlockedOutput]] = {}
        """Several producers may send to one partition."""

    def on_blocked(self, event: OutputBlocked) -> None:
        """Notes a partition that acknowledges nothing to a producer."""
        since_ms = wall_ms() - round(event.for_s * 1_000)
        found = BlockedOutput(event.topic, event.partition, event.messages, since_ms, event.text)
        with self._lock:
            self._known.setdefault((event.topic, event.partition), []).append(found)

    def on_unblocked(self, event: OutputUnblocked) -> None:
        """Notes that a partition is well again for one producer."""
        with self._lock:
            found = self._known.get((event.topic, event.partition), [])
            if len(found) > 1:
                found.pop()
            else:
                self._known.pop((event.topic, event.partition), None)

    def all(self) -> list[BlockedOutput]:
        """Returns them, the oldest first."""
        with self._lock:
            found = [each[0] for each in self._known.values()]
        return sorted(found, key=lambda output: output.since_ms)

    def reasons(self) -> Iterator[str]:
        """Gives a sentence for each."""
        for output in self.all():
            for_s = (wall_ms() - output.since_ms) / 1_000
            yield not_written(output.topic, output.partition, output.messages, for_s, output.text)


class Watched(Protocol):
    """The parts of a running app that reasons come from."""

    @property
    def blocked_outputs(self) -> BlockedOutputs: ...
    @property
    def fatal_error(self) -> BaseException | None: ...
    @property
    def extensions(self) -> Sequence[Extension]: ...
    @property
    def groups(self) -> Sequence[WatchedGroup]: ...


def reasons(app: Watched) -> Iterator[str]:
    """Gives each reason. Does not block and asks no broker."""
    if app.fatal_error is not None:
        yield f"fatal error: {text_of(app.fatal_error)}"
    for extension in app.extensions:
        yield from extension.reasons()
    yield from app.blocked_outputs.reasons()
    for group in app.groups:
        yield from group.refusals.reasons()
        yield from _paused(group)
        yield from _stuck(group)
        yield from _unowned(group)
        yield from _blocked(group)
        yield from _full(group)
        fatal = None if group.member is None else group.member.fatal_error()
        if fatal is not None:
            yield f"the member of group {group.group} can't go on: {fatal[2]} ({fatal[1]})"


def place(group: WatchedGroup, topic: str, partition: int) -> str:
    """Returns the name of a partition, or of a topic (-1); of another group than the app's own with the group."""
    name = f"topic {topic}" if partition < 0 else f"{topic}[{partition}]"
    return name if group.is_own else f"{name} of group {group.group}"


def way_on(group: WatchedGroup, topic: str, partition: int) -> str:
    """Returns the ways to resume a partition."""
    return f"`awoke resume MODULE:APP {topic} {partition}{option(group)}` (in the process: app.resume)"


def option(group: WatchedGroup) -> str:
    """Returns the option that names a group in a command; nothing for the app's own."""
    return "" if group.is_own else f" --group {group.group}"


def _paused(group: WatchedGroup) -> Iterator[str]:
    for (topic, partition), (assignment, error) in list(group.paused.items()):
        if assignment.is_current:
            at, resumed = place(group, topic, partition), way_on(group, topic, partition)
            yield f"{at} is paused: {error}; {resumed} lets it go on"


def _stuck(group: WatchedGroup) -> Iterator[str]:
    for topic, partition, text, is_resumable in group.stuck():
        reads = f"{way_on(group, topic, partition)} reads it from its first message"
        what_next = reads if is_resumable else "it goes on by itself when that is mended"
        yield f"{place(group, topic, partition)} gives no messages any more: {text}; {what_next}"


def _unowned(group: WatchedGroup) -> Iterator[str]:
    partitions = group.unowned()
    if partitions:
        yield f"{without_owner(group.group, partitions, len(partitions))}; restart a member if it stays so"


def _blocked(group: WatchedGroup) -> Iterator[str]:
    """Names the oldest failure of each partition that has been blocked for too long."""
    for (topic, partition), failures in group.failures.blocked(group.settings.blocked_after_s).items():
        if (topic, partition) in group.paused:
            continue
        others = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
        skip = f"`awoke skip MODULE:APP {topic} {partition} {failures[0].offset}{option(group)}` goes on without it"
        yield f"{place(group, topic, partition)} is blocked: {failures[0]}{others}; {skip}"


def _full(group: WatchedGroup) -> Iterator[str]:
    for state in group.partitions():
        route = group.routes.get(state.topic)
        if (
            state.commit_gap is not None
            and route is not None
            and state.commit_gap.messages >= route.concurrency.commit_gap
        ):
            at = place(group, state.topic, state.partition)
            oldest = f"offset {state.commit_gap.oldest_offset} is not done after {duration(state.commit_gap.oldest_s)}"
            yield f"{at} takes in no more: {oldest}, with {state.commit_gap.messages} messages behind it"
