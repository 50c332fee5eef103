"""Handles failures of user code: the message is tried again in its place, until its route counts it as exhausted.

An exhausted message goes to the dead letter topic, where the route has one, and is acknowledged there before its offset
moves. A dead letter that is refused as too large goes without its value; refused once more, its message is skipped. For
neither does user code run again.

No message is held in a variable here: an exception that user code keeps would keep it, and librdkafka's memory with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from awoke._native import DeliveryHandle, Job, PendingStep
from awoke.declare.routing import Route
from awoke.errors import (
    AwokeError,
    ClosedError,
    DecodeError,
    EncodeError,
    FencedError,
    RetriesExhausted,
    is_refused_for_good,
    is_too_large,
)
from awoke.observe.events import (
    DeadLetterFailed,
    DeadLetterShortened,
    JobFailed,
    MessageDeadLettered,
    MessageSkipped,
    RegistryWaited,
)
from awoke.payloads.dead_letter import letter
from awoke.payloads.message import Record
from awoke.payloads.registry.away import RegistryAway
from awoke.payloads.registry.errors import RegistryError, SchemaNotFound
from awoke.payloads.registry.schemas import SchemaNeeded
from awoke.runtime.failures.undecodable import Undecodable
from awoke.runtime.process.context import RecoveryContext
from awoke.text.printable import shown
from awoke.text.secrets import key_hash
from awoke.waiting.drive import elsewhere, until

Ending = type[MessageSkipped] | type[MessageDeadLettered]
"""The event of a message that was left without being processed."""


def schema_needed(error: BaseException | None) -> SchemaNeeded | RegistryError | None:
    """Returns why a message can't be read or sent for now: a schema is not loaded, or the registry can't be asked.

    None for any other error, also for a schema that the registry does not have.
    """
    while error is not None and not isinstance(error, SchemaNeeded | RegistryError):
        error = error.__cause__ if isinstance(error, DecodeError | EncodeError) else None
    return None if isinstance(error, SchemaNotFound) else error


class Exhausted(NamedTuple):
    """An exhausted message whose dead letter, or transaction, is not answered yet: then the job goes on behind it."""

    offset: int
    answer: DeliveryHandle | PendingStep
    """Ends when its dead letter is acknowledged; where the route is exactly-once, when that and its offset are
    committed."""
    event: Ending
    """The event that is emitted then."""
    instead: Instead | None = None
    """Called where its dead letter is refused as too large."""


Instead = Callable[[BaseException], Exhausted | None]
"""Called with a refusal to get rid of a message in another way; returns `None` where it has given the job back."""


def narrow(job: Job) -> None:
    """Shortens an exactly-once job at each new try: a transaction does not name the refused message."""
    if job.attempt > 1:
        job.truncate(job.remaining >> job.attempt - 1)


class Recovery:
    """Ends the jobs of one route: completed, to be tried again, or without an exhausted message. Any thread.

    `on_skip` is called with a job whose first message is left without being processed.
    """

    def __init__(
        self, route: Route, context: RecoveryContext, undecodable: Undecodable, on_skip: Callable[[Job], object]
    ) -> None:
        self._route, self._context, self._undecodable, self._on_skip = route, context, undecodable, on_skip
        self._registry_away = RegistryAway(context.schema_loads)

    def end_app(self, job: Job, error: BaseException) -> None:
        """Ends the app in order, with the job not done: user code asked for it (`SystemExit`), or nothing can go on."""
        job.retry(self._route.retry.backoff_s[1])
        self._context.stop_app(error)

    async def failed(self, job: Job, error: BaseException, *, is_unclear: bool = False) -> None:
        """Gives back a job that user code, or the broker, has failed: its first message that is not done is the one.

        Waits until the dead letter of an exhausted message is acknowledged. A result that the broker refuses for good
        exhausts the message at once. Where it `is_unclear` whose result it is, the job is tried again in smaller parts
        (`narrow`) until the message is found.
        """
        await self._end_exhausted(job, self._fail(job, error, is_unclear=is_unclear), error)

    async def failed_or_loaded(self, job: Job, error: BaseException) -> None:
        """As `failed`, unless a schema is missing, or the registry can't be asked for it: then as `loaded`."""
        if not await self.loaded(job, error):
            await self.failed(job, error)

    async def loaded(self, job: Job, error: BaseException) -> bool:
        """Loads the schema that a job failed for, and gives the job back; returns false after any other failure.

        The try does not count as an attempt at the message. While the registry can't be asked, the job is tried again
        after a back-off: its partition, or its key, waits. What the registry does not have is the message's failure.
        """
        needed = schema_needed(error)
        if needed is None or not job.remaining:
            return False
        if isinstance(needed, SchemaNeeded):
            try:
                await elsewhere(needed.load)
            except SchemaNotFound:
                pass  # The decoder says so at the next try.
            except RegistryError as unavailable:
                needed = unavailable
            except ClosedError:
                pass  # The app stops: the next owner of the partition does it again.
            except Exception as wrong:  # A setting, or the client itself: the next try would end alike.
                await self.failed(job, wrong)
                return True
        if isinstance(needed, RegistryError):
            self._wait_for_registry(job, needed)
        else:
            self._registry_away.is_back()
            job.retry(0.0, is_counted=False)
        return True

    def _wait_for_registry(self, job: Job, error: RegistryError) -> None:
        delay_s = self._registry_away.delay_s()
        self._context.events.emit(
            RegistryWaited(
                handler=self._route.name,
                topic=job.topic,
                partition=job.partition,
                offset=job.first_offset,
                retry_in_s=round(delay_s, 3),
                error=error,
            )
        )
        self._context.failures.failed(job, error, delay_s)
        job.retry(delay_s, is_counted=False)
        self._context.failures.retried(job.topic, job.partition)

    async def skip(self, job: Job, error: BaseException) -> None:
        """Skips the job's first message without another try, as an operator asked; the messages behind it go on."""
        await self._end_exhausted(job, self._skip(job, error), error)

    async def exhaust(self, job: Job, attempts: int, error: BaseException) -> None:
        """Treats the job's first message as exhausted, as its route says."""
        await self._end_exhausted(job, self._exhaust(job, attempts, error), error)

    async def _end_exhausted(self, job: Job, exhausted: Exhausted | None, error: BaseException) -> None:
        """Waits for the answer of an exhausted message's dead letter or transaction, and gives the job back."""
        while exhausted is not None:
            try:
                await until(exhausted.answer)
            except (ClosedError, FencedError):
                job.retry(0.0)  # The next owner of the partition does it again.
                return
            except AwokeError as refused:
                exhausted = self._refused(job, exhausted.instead, refused)
            else:
                self._on_skip(job)
                self._finish_without(job, exhausted.offset, exhausted.event, error)
                return

    def _fail(self, job: Job, error: BaseException, *, is_unclear: bool) -> Exhausted | None:
        """Emits the failure, and gives the job back or exhausts its message.

        A value that does not decode exhausts its message at once. At another place than the job's first, the job
        is tried again without it.
        """
        undecodable = self._undecodable.place(job, error)
        route, attempt, is_over = self._route, job.attempt, not job.remaining
        is_refused = (route.output is not None or route.is_exactly_once) and is_refused_for_good(error)
        is_permanent = is_refused or (undecodable == 0 and not route.retry.retries_undecodable)
        is_in_parts = (is_refused and is_unclear) or bool(undecodable)
        is_exhausted = is_over or (not is_in_parts and (is_permanent or route.retry.is_exhausted(attempt, error)))
        delay_s = 0.0 if is_exhausted or is_in_parts else route.retry.delay_s(attempt)
        self._context.events.emit(
            JobFailed(
                handler=route.name,
                topic=job.topic,
                partition=job.partition,
                offset=job.first_offset,
                attempt=attempt,
                retry_in_s=None if is_exhausted else round(delay_s, 3),
                error=error,
                key_hash=None if is_over else key_hash(job.batch()[0].key),
            )
        )
        if is_over:
            job.release_rest()  # User code had marked all messages as done before it failed: nothing is left to retry.
            return None
        if not is_exhausted:
            self._retry(job, error, delay_s)
            return None
        return self._exhaust(job, attempt, error)

    def _retry(self, job: Job, error: BaseException, delay_s: float) -> None:
        failures = self._context.failures
        failures.failed(job, error, delay_s)
        job.retry(delay_s)
        failures.retried(job.topic, job.partition)

    def _exhaust(self, job: Job, attempts: int, error: BaseException) -> Exhausted | None:
        route = self._route
        if route.dead_letter is not None:
            return self._send_letter(job, attempts, error)
        if route.retry.on_exhausted == "skip":
            return self._skip(job, error)
        at = f"{job.topic}[{job.partition}] offset {job.first_offset}"
        text = f"{at} failed {attempts} times, the last with: {shown(error)}"
        if route.retry.on_exhausted == "pause":
            self._context.failures.failed(job, error, 0.0)
            self._context.pause_exhausted(job, RetriesExhausted(text))
            job.retry(0.0)
            return None
        job.retry(route.retry.backoff_s[1])
        self._context.stop_app(RetriesExhausted(text))
        return None

    def _skip(self, job: Job, error: BaseException) -> Exhausted | None:
        self._on_skip(job)
        offset, transactions = job.first_offset, self._context.transactions
        if transactions is not None and self._route.is_exactly_once:
            return Exhausted(offset, transactions.entry().submit(job, offset), MessageSkipped)
        self._finish_without(job, offset, MessageSkipped, error)
        return None

    def _finish_without(self, job: Job, offset: int, event: Ending, error: BaseException) -> None:
        """Marks the message as done without its handler: the job goes on behind it."""
        self._context.failures.passed(job, offset)
        self._context.events.emit(
            event(handler=self._route.name, topic=job.topic, partition=job.partition, offset=offset, error=error)
        )
        with contextlib.suppress(FencedError):
            job.done(offset)
        job.release_rest()

    # Dead letters.

    def _send_letter(
        self, job: Job, attempts: int, error: BaseException, *, has_value: bool = True
    ) -> Exhausted | None:
        """Sends the dead letter of the job's first message; refused as too large it goes without its value."""

        def shorten(refused: BaseException) -> Exhausted | None:
            self._context.events.emit(
                DeadLetterShortened(
                    handler=self._route.name,
                    topic=job.topic,
                    partition=job.partition,
                    offset=job.first_offset,
                    dead_letter=self._route.dead_letter,
                    error=refused,
                )
            )
            return self._send_letter(job, attempts, error, has_value=False)

        def skip(refused: BaseException) -> Exhausted | None:
            """The message's key and headers alone are too large for the dead letter topic."""
            self._letter_failed(job, None, refused)
            return self._skip(job, error)

        instead = shorten if has_value else skip
        first = job.batch()[0]
        record = letter(first, self._context.group, attempts, error, self._route.name, has_value=has_value)
        del first  # An exception that is kept keeps this frame.
        try:
            return Exhausted(job.first_offset, self._produce_letter(job, record), MessageDeadLettered, instead)
        except Exception as refused:
            return self._refused(job, instead, refused)

    def _produce_letter(self, job: Job, record: Record) -> DeliveryHandle | PendingStep:
        topic, transactions = self._route.dead_letter, self._context.transactions
        assert topic is not None
        if transactions is None or not self._route.is_exactly_once:
            return self._context.alone.produce(topic, record.value, **record.options)
        entry = transactions.entry()
        entry.produce(topic, record.value, **record.options)
        return entry.submit(job, job.first_offset)

    def _refused(self, job: Job, instead: Instead | None, refused: BaseException) -> Exhausted | None:
        """Handles a dead letter that was refused."""
        if instead is not None and is_too_large(refused):
            return instead(refused)
        self._fail_again(job, refused)
        return None

    def _fail_again(self, job: Job, error: BaseException) -> None:
        """Keeps a message whose dead letter could not be sent: it is tried again after the longest back-off.

        Where it would be refused again, the partition is paused instead: nothing is lost, and user code does not
        run in vain.
        """
        is_permanent = is_refused_for_good(error)
        delay_s = None if is_permanent else self._route.retry.backoff_s[1]
        self._letter_failed(job, delay_s, error)
        self._context.failures.failed(job, error, delay_s or 0.0)
        if delay_s is None:
            at = f"{job.topic}[{job.partition}] offset {job.first_offset}"
            text = f"{at}: its dead letter for {self._route.dead_letter!r} is refused and would be again: {error}"
            self._context.pause_exhausted(job, RetriesExhausted(text))
        job.retry(delay_s or 0.0)
        self._context.failures.retried(job.topic, job.partition)

    def _letter_failed(self, job: Job, retry_in_s: float | None, error: BaseException) -> None:
        """Emits that a dead letter could not be sent; `None`: it would be refused again."""
        self._context.events.emit(
            DeadLetterFailed(
                handler=self._route.name,
                topic=job.topic,
                partition=job.partition,
                offset=job.first_offset,
                dead_letter=self._route.dead_letter,
                retry_in_s=retry_in_s,
                error=error,
            )
        )
