"""What happens when user code fails: seen, and tried again in its place, until its route gives up."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from awoke._native import Job
from awoke.errors import FencedError, RetriesExhausted

if TYPE_CHECKING:
    from awoke.app import App
    from awoke.routing import Route
    from awoke.runtime.server import Server


def fail(server: Server, route: Route, job: Job, error: BaseException) -> None:
    """Say what failed and give the job back; its first message that is not done is the one that failed."""
    first = job.batch()[0]
    attempt = job.attempt
    is_exhausted = route.retry.is_exhausted(attempt)
    delay_s = 0.0 if is_exhausted else route.retry.delay_s(attempt)
    server.app.events.emit(
        "job.failed",
        handler=route.name,
        topic=first.topic,
        partition=first.partition,
        offset=first.offset,
        attempt=attempt,
        retry_in_s=None if is_exhausted else round(delay_s, 3),
        error=error,
    )
    if not is_exhausted:
        job.retry(delay_s)
    elif route.retry.on_exhausted == "skip":
        _skip(server.app, route, job, error)
    else:
        job.retry(route.retry.backoff_s[1])
        text = (
            f"{first.topic}[{first.partition}] offset {first.offset} failed {attempt} times, the last with: {error!r}"
        )
        server.give_up(RetriesExhausted(text))


def _skip(app: App, route: Route, job: Job, error: BaseException) -> None:
    batch = job.batch()
    first = batch[0]
    app.events.emit(
        "message.skipped",
        handler=route.name,
        topic=first.topic,
        partition=first.partition,
        offset=first.offset,
        error=error,
    )
    with contextlib.suppress(FencedError):
        job.done(first.offset)
    if len(batch) == 1:
        with contextlib.suppress(FencedError):
            job.complete()
    else:
        job.retry(0.0)
