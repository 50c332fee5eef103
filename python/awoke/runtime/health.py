"""Whether all is well with a running app: one sentence for each thing that is wrong, with its place and the way on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from awoke.runtime.observed import Observed


def reasons(server: Observed) -> Iterator[str]:
    """Says what is wrong. Does not block and asks no broker."""
    if server.given_up is not None:
        yield f"gave up: {server.given_up}"
    yield from server.refusals.reasons()
    yield from _overdue(server)
    yield from _paused(server)
    yield from _stuck(server)
    yield from _blocked(server)
    yield from _full(server)
    fatal = None if server.member is None else server.member.fatal_error()
    if fatal is not None:
        yield f"the group member can't go on: {fatal[2]} ({fatal[1]})"


def way_on(topic: str, partition: int) -> str:
    """Returns the ways to resume a partition."""
    return f"`awoke resume MODULE:APP {topic} {partition}` (in the process: app.resume)"


def _overdue(server: Observed) -> Iterator[str]:
    for each in server.overdue.overdue():
        ran_s = time.monotonic() - each.began_s
        at = f"{each.topic}[{each.partition}] offset {each.offset}"
        yield f"{each.handler} works on {at} for {ran_s:.0f} s, allowed are {each.limit_s:g} s"


def _paused(server: Observed) -> Iterator[str]:
    for (topic, partition), (assignment, error) in list(server.paused.items()):
        if assignment.is_current:
            yield f"{topic}[{partition}] is paused: {error}; {way_on(topic, partition)} lets it go on"


def _stuck(server: Observed) -> Iterator[str]:
    for topic, partition, text, is_resumable in server.stuck():
        place = f"topic {topic}" if partition < 0 else f"{topic}[{partition}]"
        reads = f"{way_on(topic, partition)} reads it from its first message"
        what_next = reads if is_resumable else "it goes on by itself when that is mended"
        yield f"{place} gives no messages any more: {text}; {what_next}"


def _blocked(server: Observed) -> Iterator[str]:
    """Names the oldest failure of each partition that has gone on for too long."""
    for (topic, partition), failures in server.failures.blocked(server.settings.blocked_after_s).items():
        if (topic, partition) in server.paused:
            continue
        others = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
        skip = f"`awoke skip MODULE:APP {topic} {partition} {failures[0].offset}` goes on without it"
        yield f"{topic}[{partition}] is blocked: {failures[0]}{others}; {skip}"


def _full(server: Observed) -> Iterator[str]:
    for state in server.partitions():
        route = server.app.routes.get(state.topic)
        if (
            state.commit_gap is not None
            and route is not None
            and state.commit_gap.messages >= route.concurrency.commit_gap
        ):
            at = f"{state.topic}[{state.partition}]"
            oldest = f"offset {state.commit_gap.oldest_offset} is not done after {state.commit_gap.oldest_s:.0f} s"
            yield f"{at} takes in no more: {oldest}, with {state.commit_gap.messages} messages behind it"
