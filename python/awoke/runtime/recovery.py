"""What happens when user code fails: seen, and tried again in its place, until its route gives up.

What is given up goes to the dead letter topic, where the route has one, and is acknowledged there before its offset moves.
A dead letter that is refused as too large goes without its value; refused once more, its message is skipped. For neither does
user code run again.

No message is held in a variable here: an exception that somebody keeps would keep it, and librdkafka's memory with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from awoke._native import DeliveryHandle, Job, PendingCommit
from awoke.dead_letter import letter
from awoke.errors import FencedError, RetriesExhausted, is_refused_for_good, is_too_large
from awoke.events import DeadLetterFailed, DeadLetterShortened, JobFailed, MessageDeadLettered, MessageSkipped
from awoke.message import Record
from awoke.printable import shown

if TYPE_CHECKING:
    from awoke.routing import Route
    from awoke.runtime.server import AppRunner


End = type[MessageSkipped] | type[MessageDeadLettered]
"""How a message ended that was exhausted."""


class GivenUp(NamedTuple):
    """A message that is given up as soon as the broker agrees."""

    offset: int
    answer: DeliveryHandle | PendingCommit
    """Says when its dead letter is acknowledged; where the route is exactly-once, when that and its offset are committed."""
    event: End
    """The event that is emitted then."""
    instead: Instead | None = None
    """Called where its dead letter is refused as too large."""


Instead = Callable[[BaseException], GivenUp | None]
"""Gives up a message in another way: it is given the refusal of the first one, and returns as `fail`."""


def narrow(job: Job) -> None:
    """Cut an exactly-once job that is tried again: a transaction does not say which message's record the broker refused."""
    if job.attempt > 1:
        job.truncate(job.remaining >> job.attempt - 1)


def fail(
    server: AppRunner,
    route: Route,
    job: Job,
    error: BaseException,
    on_skip: Callable[[Job], object],
    *,
    is_unclear: bool = False,
    undecodable: int | None = None,
) -> GivenUp | None:
    """Say what failed and give the job back; its first message that is not done is the one that failed.

    A result that the broker refuses for good exhausts the message at once; where it `is_unclear` whose result it is, the job
    is tried again in smaller parts (`narrow`) until that is found. A value that does not decode exhausts its message at
    once, too; `undecodable` is the place of that message in the job, and at another place than 0 the job is tried again
    without it. Where the broker has to agree first, what it is asked is returned: when it does, call `pass_by`, when not,
    `refuse`.
    """
    attempt = job.attempt
    is_over = not job.remaining
    is_refused = (route.output is not None or route.is_exactly_once) and is_refused_for_good(error)
    is_unclear = is_refused and is_unclear
    is_hopeless = is_refused or (undecodable == 0 and not route.retry.retries_undecodable)
    is_in_parts = is_unclear or bool(undecodable)
    is_exhausted = is_over or (not is_in_parts and (is_hopeless or route.retry.is_exhausted(attempt, error)))
    delay_s = 0.0 if is_exhausted or is_in_parts else route.retry.delay_s(attempt)
    server.app.events.emit(
        JobFailed(
            handler=route.name,
            topic=job.topic,
            partition=job.partition,
            offset=job.first_offset,
            attempt=attempt,
            retry_in_s=None if is_exhausted else round(delay_s, 3),
            error=error,
        )
    )
    if is_over:
        job.release_rest()  # User code had marked all of it as done before it failed: there is nothing to try again.
        return None
    if not is_exhausted:
        server.failures.failed(job, error, delay_s)
        job.retry(delay_s)
        server.failures.retried(job.topic, job.partition)
        return None
    return give_up(server, route, job, attempt, error, on_skip)


def give_up(
    server: AppRunner, route: Route, job: Job, attempts: int, error: BaseException, on_skip: Callable[[Job], object]
) -> GivenUp | None:
    """Give up the job's first message as its route wants; returns as `fail`. `on_skip` hears of one that is skipped."""
    if route.dead_letter is not None:
        return _DeadLetter(server, route, job, attempts, error, on_skip).send()
    if route.retry.on_exhausted == "skip":
        return skip(server, route, job, error, on_skip)
    text = (
        f"{job.topic}[{job.partition}] offset {job.first_offset} failed {attempts} times, the last with: {shown(error)}"
    )
    if route.retry.on_exhausted == "pause":
        server.failures.failed(job, error, 0.0)
        server.pause_exhausted(job, RetriesExhausted(text))
        job.retry(0.0)
        return None
    job.retry(route.retry.backoff_s[1])
    server.give_up(RetriesExhausted(text))
    return None


def skip(
    server: AppRunner, route: Route, job: Job, error: BaseException, on_skip: Callable[[Job], object]
) -> GivenUp | None:
    """Goes on behind the job's first message without it; returns as `fail`. `on_skip` hears of it first."""
    on_skip(job)
    offset = job.first_offset
    if server.transactions is not None and route.is_exactly_once:
        return GivenUp(offset, server.transactions.contribution().submit(job, offset), MessageSkipped)
    _pass_by(server, route, job, offset, MessageSkipped, error)
    return None


class _DeadLetter(NamedTuple):
    """The dead letter of a job's first message, on its way. Each method returns as `fail`."""

    server: AppRunner
    route: Route
    job: Job
    attempts: int
    error: BaseException
    on_skip: Callable[[Job], object]

    def send(self) -> GivenUp | None:
        return self._send(True, self.send_without_value)

    def send_without_value(self, refused: BaseException) -> GivenUp | None:
        self.server.app.events.emit(
            DeadLetterShortened(
                handler=self.route.name,
                topic=self.job.topic,
                partition=self.job.partition,
                offset=self.job.first_offset,
                dead_letter=self.route.dead_letter,
                error=refused,
            )
        )
        return self._send(False, self.skip)

    def skip(self, refused: BaseException) -> GivenUp | None:
        """Skips the message: its key and headers alone are too large for the dead letter topic."""
        say_failed(self.server, self.route, self.job, None, refused)
        return skip(self.server, self.route, self.job, self.error, self.on_skip)

    def _send(self, has_value: bool, instead: Instead) -> GivenUp | None:
        first, group = self.job.batch()[0], self.server.group
        record = letter(first, group, self.attempts, self.error, self.route.name, has_value=has_value)
        del first  # An exception that is kept keeps this frame.
        try:
            return GivenUp(self.job.first_offset, self._produce(record), MessageDeadLettered, instead)
        except Exception as refused:
            return _refused(self.server, self.route, self.job, instead, refused)

    def _produce(self, record: Record) -> DeliveryHandle | PendingCommit:
        topic, transactions = self.route.dead_letter, self.server.transactions
        assert topic is not None
        if transactions is None or not self.route.is_exactly_once:
            return self.server.alone.produce(topic, record.value, **record.options)
        contribution = transactions.contribution()
        contribution.produce(topic, record.value, **record.options)
        return contribution.submit(self.job, self.job.first_offset)


def refuse(server: AppRunner, route: Route, job: Job, given_up: GivenUp, refused: BaseException) -> GivenUp | None:
    """The broker did not agree; returns as `fail`."""
    return _refused(server, route, job, given_up.instead, refused)


def _refused(
    server: AppRunner, route: Route, job: Job, instead: Instead | None, refused: BaseException
) -> GivenUp | None:
    if instead is not None and is_too_large(refused):
        return instead(refused)
    fail_again(server, route, job, refused)
    return None


def pass_by(server: AppRunner, route: Route, job: Job, given_up: GivenUp, error: BaseException) -> None:
    """The broker agreed: the message is done."""
    _pass_by(server, route, job, given_up.offset, given_up.event, error)


def fail_again(server: AppRunner, route: Route, job: Job, error: BaseException) -> None:
    """The dead letter could not be sent: the message stays, and is tried again after the longest back-off.

    Where it would be refused again, the partition is paused instead: nothing is lost, and user code does not run for nothing.
    """
    is_hopeless = is_refused_for_good(error)
    delay_s = None if is_hopeless else route.retry.backoff_s[1]
    say_failed(server, route, job, delay_s, error)
    server.failures.failed(job, error, delay_s or 0.0)
    if delay_s is None:
        at = f"{job.topic}[{job.partition}] offset {job.first_offset}"
        text = f"{at}: its dead letter for {route.dead_letter!r} is refused and would be again: {error}"
        server.pause_exhausted(job, RetriesExhausted(text))
    job.retry(delay_s or 0.0)
    server.failures.retried(job.topic, job.partition)


def say_failed(server: AppRunner, route: Route, job: Job, retry_in_s: float | None, error: BaseException) -> None:
    """Says that the dead letter of the job's first message could not be sent; None: it would be refused again."""
    server.app.events.emit(
        DeadLetterFailed(
            handler=route.name,
            topic=job.topic,
            partition=job.partition,
            offset=job.first_offset,
            dead_letter=route.dead_letter,
            retry_in_s=retry_in_s,
            error=error,
        )
    )


def _pass_by(server: AppRunner, route: Route, job: Job, offset: int, event: End, error: BaseException) -> None:
    server.failures.passed(job, offset)
    server.app.events.emit(
        event(handler=route.name, topic=job.topic, partition=job.partition, offset=offset, error=error)
    )
    with contextlib.suppress(FencedError):
        job.done(offset)
    job.release_rest()
