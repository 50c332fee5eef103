"""What happens when user code fails: seen, and tried again in its place, until its route gives up.

What is given up goes to the dead letter topic, where the route has one, and is acknowledged there before its offset moves.

No message is held in a variable here: an exception that somebody keeps would keep it, and librdkafka's memory with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from awoke._native import DeliveryHandle, Job, PendingCommit
from awoke.dead_letter import letter
from awoke.errors import ClosedError, FencedError, RetriesExhausted

if TYPE_CHECKING:
    from awoke.routing import Route
    from awoke.runtime.server import Server


class Letter(NamedTuple):
    """A dead letter on its way."""

    offset: int
    """Of the message that is given up."""
    sent: DeliveryHandle | PendingCommit
    """Says when it is acknowledged; where the route is exactly-once, committed with its offset."""


def fail(
    server: Server, route: Route, job: Job, error: BaseException, on_skip: Callable[[Job], object]
) -> Letter | None:
    """Say what failed and give the job back; its first message that is not done is the one that failed.

    Where a dead letter is sent, it is returned: when it is acknowledged, call `dead_lettered`, when not, `fail_again`.
    """
    attempt = job.attempt
    is_exhausted = route.retry.is_exhausted(attempt, error)
    delay_s = 0.0 if is_exhausted else route.retry.delay_s(attempt)
    server.app.events.emit(
        "job.failed",
        handler=route.name,
        topic=job.topic,
        partition=job.partition,
        offset=job.first_offset,
        attempt=attempt,
        retry_in_s=None if is_exhausted else round(delay_s, 3),
        error=error,
    )
    if not is_exhausted:
        job.retry(delay_s)
        return None
    return give_up(server, route, job, attempt, error, on_skip)


def give_up(
    server: Server, route: Route, job: Job, attempts: int, error: BaseException, on_skip: Callable[[Job], object]
) -> Letter | None:
    """Give up the job's first message as its route wants; returns as `fail`. `on_skip` hears of one that is skipped."""
    if route.dead_letter is not None:
        return _send_dead_letter(server, route, job, attempts, error)
    if route.retry.on_exhausted == "skip":
        on_skip(job)
        offset = job.first_offset
        if server.transactions is not None and route.is_exactly_once:
            with contextlib.suppress(FencedError, ClosedError):
                server.transactions.contribution().submit(job, offset)
        _pass_by(server, route, job, offset, "message.skipped", error)
        return None
    text = f"{job.topic}[{job.partition}] offset {job.first_offset} failed {attempts} times, the last with: {error!r}"
    if route.retry.on_exhausted == "pause":
        server.pause_exhausted(job, RetriesExhausted(text))
        job.retry(0.0)
        return None
    job.retry(route.retry.backoff_s[1])
    server.give_up(RetriesExhausted(text))
    return None


def _send_dead_letter(server: Server, route: Route, job: Job, attempts: int, error: BaseException) -> Letter | None:
    assert route.dead_letter is not None
    record = letter(job.batch()[0], server.group, attempts, error)
    offset = job.first_offset
    try:
        if server.transactions is not None and route.is_exactly_once:
            contribution = server.transactions.contribution()
            contribution.produce(route.dead_letter, record.value, key=record.key, headers=record.headers)
            return Letter(offset, contribution.submit(job, offset))
        produce = server.app.producer.produce
        return Letter(offset, produce(route.dead_letter, record.value, key=record.key, headers=record.headers))
    except Exception as refused:
        fail_again(server, route, job, refused)
        return None


def dead_lettered(server: Server, route: Route, job: Job, offset: int, error: BaseException) -> None:
    """The dead letter of the message at this offset was acknowledged: it is done."""
    _pass_by(server, route, job, offset, "message.dead_lettered", error)


def fail_again(server: Server, route: Route, job: Job, error: BaseException) -> None:
    """The dead letter could not be sent: the message stays, and is tried again after the longest back-off."""
    delay_s = route.retry.backoff_s[1]
    server.app.events.emit(
        "dead_letter.failed",
        handler=route.name,
        topic=job.topic,
        partition=job.partition,
        offset=job.first_offset,
        dead_letter=route.dead_letter,
        retry_in_s=delay_s,
        error=error,
    )
    job.retry(delay_s)


def _pass_by(server: Server, route: Route, job: Job, offset: int, event: str, error: BaseException) -> None:
    server.app.events.emit(
        event,
        handler=route.name,
        topic=job.topic,
        partition=job.partition,
        offset=offset,
        error=error,
    )
    with contextlib.suppress(FencedError):
        job.done(offset)
    job.pass_on()
