"""Decides what becomes of a message that has failed, and does it.

`ACTIONS`, at the end, says what happens: for each kind of failure, and for an exhausted message by what its route says.
A message is tried again in its place, until its route counts it as exhausted. It then goes to the dead letter topic, if
the route has one, and is acknowledged there before its offset moves. For a dead letter that is refused, no user code
runs again.

No message is held in a variable here: an exception that user code keeps would keep it, and librdkafka's memory with it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from awoke._native import DeliveryHandle, Job, PendingStep
from awoke.declare.routing import Route
from awoke.errors import (
    AwokeError,
    ClosedError,
    DecodeError,
    EncodeError,
    FencedError,
    RetriesExhausted,
    end_in,
    is_refused_for_good,
    is_too_large,
)
from awoke.observe.events import (
    DeadLetterFailed,
    DeadLetterShortened,
    Event,
    JobFailed,
    MessageDeadLettered,
    MessageSkipped,
    RegistryWaited,
)
from awoke.payloads.dead_letter import letter
from awoke.payloads.formats.encryption import Encrypted
from awoke.payloads.registry.away import RegistryAway
from awoke.payloads.registry.errors import RegistryError, SchemaNotFound
from awoke.payloads.registry.schemas import SchemaNeeded
from awoke.runtime.failures.failures import Leaving
from awoke.runtime.failures.undecodable import Undecodable
from awoke.runtime.process.context import RecoveryContext
from awoke.text.printable import shown
from awoke.text.secrets import key_hash
from awoke.waiting.drive import elsewhere, is_of_owner, until

logger = logging.getLogger(__name__)

Kind = Literal["all done", "no schema", "no registry", "unclear", "passing", "exhausted"]
"""What made a job fail:

- *all done*: user code had marked all of its messages as done before it failed;
- *no schema*: a schema is not loaded yet, and *no registry*: the registry can't be asked for it;
- *unclear*: it is not the first message, or not known which one it is;
- *passing*: the first message, and another try may succeed;
- *exhausted*: the first message, and no further try is worth it, or allowed.
"""

Policy = Literal["dead_letter", "skip", "pause", "stop"]
"""What a route says about an exhausted message."""

WAITING: tuple[Kind, ...] = ("no schema", "no registry")
"""No failures of the message: the try does not count as an attempt."""


class FailedJob(NamedTuple):
    """A job's first message has failed."""

    error: BaseException
    attempts: int
    delay_s: float | None
    """The time until it is tried again; None if it is not."""


class Recovery:
    """Ends the failed jobs of one route: to be tried again, or without their first message. Any thread.

    `on_skip` is called with a job whose first message is left without being processed.
    """

    def __init__(
        self, route: Route, context: RecoveryContext, undecodable: Undecodable, on_skip: Callable[[Job], object]
    ) -> None:
        self._route, self._context, self._undecodable, self._on_skip = route, context, undecodable, on_skip
        self._policy: Policy = route.retry.on_exhausted if route.dead_letter is None else "dead_letter"
        self._registry_away = RegistryAway(context.schema_loads)

    async def failed(self, job: Job, error: BaseException, *, is_unclear: bool = False) -> None:
        """Ends a job that user code, or the broker, has failed: its first message that is not done is the one.

        Waits until the dead letter of an exhausted message is acknowledged. Where it `is_unclear` whose result was
        refused, the job is tried again in smaller parts (`narrow`) until the message is found. An error that asks for
        the end of the app ends it.
        """
        if (end := end_in(error)) is not None:
            at = f"{job.topic}[{job.partition}] offset {job.first_offset}"
            logger.error(
                "%s raised %s at %s: the app stops, and the message comes again", self._route.name, shown(end), at
            )
            self.end_app(job, end)
            return
        with self._ending(job):
            kind = self._kind_of(job, error, is_unclear=is_unclear)
            failed = FailedJob(error, job.attempt, self._delay_s(kind, job.attempt))
            if kind not in WAITING:
                retry_in_s = None if failed.delay_s is None else round(failed.delay_s, 3)
                hashed = None if kind == "all done" else key_hash(job.batch()[0].key)
                self._emit(JobFailed, job, error, attempt=failed.attempts, retry_in_s=retry_in_s, key_hash=hashed)
            await ACTIONS[kind, self._policy if kind == "exhausted" else None](self, job, failed)

    async def exhaust(self, job: Job, attempts: int, error: BaseException) -> None:
        """Treats the job's first message as exhausted, as its route says."""
        with self._ending(job):
            await ACTIONS["exhausted", self._policy](self, job, FailedJob(error, attempts, None))

    async def leave(self, job: Job, how: Leaving, error: BaseException) -> None:
        """Leaves the job's first message without another try, as an operator asked; those behind it go on."""
        policy: Policy = "skip" if how == "skip" else self._policy
        with self._ending(job):
            await ACTIONS["exhausted", policy](self, job, FailedJob(error, job.attempt, None))

    def end_app(self, job: Job, error: BaseException) -> None:
        """Ends the app in order, with the job not done: user code asked for it (`SystemExit`), or nothing can go on."""
        job.retry(self._route.retry.backoff_s[1])
        self._context.stop_app(error)

    @contextlib.contextmanager
    def _ending(self, job: Job) -> Iterator[None]:
        """Ends a job whatever the block raises: user code runs there, too, as a `Retry` or a producer's middleware.

        The job is then tried again after the longest back-off.
        """
        try:
            yield
        except BaseException as error:
            if is_of_owner(error):
                job.retry(0.0)
                raise
            if (end := end_in(error)) is not None:
                self.end_app(job, end)
                return
            logger.exception("%s: what was to be done about a failed message failed itself", self._route.name)
            self._give_back(job, error, self._route.retry.backoff_s[1])

    # The kinds of failures.

    def _kind_of(self, job: Job, error: BaseException, *, is_unclear: bool) -> Kind:
        route = self._route
        if not job.remaining:
            return "all done"
        if (needed := schema_needed(error)) is not None:
            return "no registry" if isinstance(needed, RegistryError) else "no schema"
        undecodable = self._undecodable.place(job, error)
        is_refused = (route.output is not None or route.is_exactly_once) and is_refused_for_good(error)
        if undecodable or (is_refused and is_unclear):
            return "unclear"
        is_permanent = is_refused or (undecodable == 0 and not route.retry.retries_undecodable)
        return "exhausted" if is_permanent or route.retry.is_exhausted(job.attempt, error) else "passing"

    def _delay_s(self, kind: Kind, attempt: int) -> float | None:
        if kind == "passing":
            return self._route.retry.delay_s(attempt)
        return 0.0 if kind == "unclear" else None

    # The actions.

    async def release(self, job: Job, failed: FailedJob) -> None:
        """Gives back a job of which nothing is left to be tried again."""
        job.release_rest()

    async def load_schema(self, job: Job, failed: FailedJob) -> None:
        """Loads the schema, and gives the job back to be tried again at once."""
        needed = schema_needed(failed.error)
        assert isinstance(needed, SchemaNeeded)
        try:
            await elsewhere(needed.load)
        except SchemaNotFound:
            pass  # The decoder says so at the next try.
        except RegistryError as unavailable:
            await self.wait_for_registry(job, failed._replace(error=unavailable))
            return
        except ClosedError:
            pass  # The app stops: the next owner of the partition does it again.
        except BaseException as wrong:  # A setting, or the client itself: the next try would end alike.
            if is_of_owner(wrong):
                raise
            await self.failed(job, wrong)
            return
        self._registry_away.is_back()
        job.retry(0.0, is_counted=False)

    async def wait_for_registry(self, job: Job, failed: FailedJob) -> None:
        """Has the job tried again after the back-off of the registry: its partition, or its key, waits."""
        needed, delay_s = schema_needed(failed.error), self._registry_away.delay_s()
        assert needed is not None
        self._emit(RegistryWaited, job, needed, retry_in_s=round(delay_s, 3))
        self._give_back(job, needed, delay_s, is_counted=False)

    async def try_again(self, job: Job, failed: FailedJob) -> None:
        """Has the job tried again after its delay."""
        self._give_back(job, failed.error, failed.delay_s or 0.0)

    async def send_letter(self, job: Job, failed: FailedJob) -> None:
        """Sends the message to the dead letter topic, and passes it by when it is acknowledged there.

        Refused as too large, it goes without its value. If key and headers alone are too large, it is skipped.
        """
        offset = job.first_offset
        for has_value in (True, False):
            try:
                await until(self._produce_letter(job, failed, has_value=has_value))
            except (ClosedError, FencedError):
                job.retry(0.0)  # The next owner of the partition does it again.
                return
            except BaseException as refused:
                if is_of_owner(refused) or end_in(refused) is not None:
                    raise
                if not is_too_large(refused):
                    self._keep(job, refused)
                    return
                if has_value:
                    self._emit(DeadLetterShortened, job, refused, dead_letter=self._route.dead_letter)
                else:
                    self._emit_letter_failed(job, refused, None)
            else:
                self._pass_by(job, offset, MessageDeadLettered, failed.error)
                return
        await self.skip(job, failed)

    async def skip(self, job: Job, failed: FailedJob) -> None:
        """Passes the message by, with an event only; where the route is exactly-once, when that is committed."""
        offset, transactions = job.first_offset, self._context.transactions
        if transactions is not None and self._route.is_exactly_once:
            try:
                await until(transactions.entry().submit(job, offset))
            except (ClosedError, FencedError):
                job.retry(0.0)  # The next owner of the partition does it again.
                return
            except AwokeError as refused:
                self._keep(job, refused)
                return
        self._pass_by(job, offset, MessageSkipped, failed.error)

    async def pause(self, job: Job, failed: FailedJob) -> None:
        """Pauses the partition, until an operator resumes it."""
        self._context.failures.failed(job, failed.error, 0.0)
        self._context.pause_exhausted(job, self._exhausted(job, failed))
        job.retry(0.0)

    async def stop(self, job: Job, failed: FailedJob) -> None:
        """Ends the app: the message is there at its next start."""
        self.end_app(job, self._exhausted(job, failed))

    # Steps of the actions.

    def _give_back(self, job: Job, error: BaseException, delay_s: float, *, is_counted: bool = True) -> None:
        """Has a job tried again after a delay, of which health and operators know."""
        failures = self._context.failures
        failures.failed(job, error, delay_s)
        job.retry(delay_s, is_counted=is_counted)
        failures.retried(job.topic, job.partition)

    def _pass_by(self, job: Job, offset: int, event: Callable[..., Event], error: BaseException) -> None:
        """Marks the message as done without its handler: the job goes on behind it."""
        self._on_skip(job)
        self._context.failures.passed(job, offset)
        self._emit(event, job, error, offset=offset)
        with contextlib.suppress(FencedError):
            job.done(offset)
        job.release_rest()

    def _produce_letter(self, job: Job, failed: FailedJob, *, has_value: bool) -> DeliveryHandle | PendingStep:
        """Sends the dead letter of the job's first message; where the route is exactly-once, with its offset."""
        topic, transactions = self._route.dead_letter, self._context.transactions
        assert topic is not None
        first = job.batch()[0]
        record = letter(
            first, self._context.group, failed.attempts, failed.error, self._route.name, has_value=has_value
        )
        del first  # An exception that is kept keeps this frame.
        if record.value is not None and self._route.value_format.is_encrypted:
            # The letter has the message's own bytes. A format of its topic does not encrypt them once more.
            record = record._replace(value=Encrypted(record.value))
        if transactions is None or not self._route.is_exactly_once:
            return self._context.alone.produce(topic, record.value, **record.options)
        entry = transactions.entry()
        entry.produce(topic, record.value, **record.options)
        return entry.submit(job, job.first_offset)

    def _keep(self, job: Job, refused: BaseException) -> None:
        """Keeps a message whose dead letter could not be sent: it is tried again after the longest back-off.

        Where it would be refused again, the partition is paused instead: nothing is lost, and user code does not
        run in vain.
        """
        delay_s = None if is_refused_for_good(refused) else self._route.retry.backoff_s[1]
        self._emit_letter_failed(job, refused, delay_s)
        failures = self._context.failures
        failures.failed(job, refused, delay_s or 0.0)
        if delay_s is None:
            at = f"{job.topic}[{job.partition}] offset {job.first_offset}"
            text = f"{at}: its dead letter for {self._route.dead_letter!r} is refused and would be again: {refused}"
            self._context.pause_exhausted(job, RetriesExhausted(text))
        job.retry(delay_s or 0.0)
        failures.retried(job.topic, job.partition)

    def _exhausted(self, job: Job, failed: FailedJob) -> RetriesExhausted:
        at = f"{job.topic}[{job.partition}] offset {job.first_offset}"
        times = "once" if failed.attempts == 1 else f"{failed.attempts} times, the last"
        return RetriesExhausted(f"{at} failed {times} with: {shown(failed.error)}")

    def _emit_letter_failed(self, job: Job, refused: BaseException, retry_in_s: float | None) -> None:
        """Emits that a dead letter could not be sent; `None`: it would be refused again."""
        self._emit(DeadLetterFailed, job, refused, dead_letter=self._route.dead_letter, retry_in_s=retry_in_s)

    def _emit(
        self, event: Callable[..., Event], job: Job, error: BaseException, *, offset: int | None = None, **more: Any
    ) -> None:
        """Emits an event about a message: the job's first one, unless it has another offset."""
        offset = job.first_offset if offset is None else offset
        at = {"topic": job.topic, "partition": job.partition, "offset": offset}
        self._context.events.emit(event(handler=self._route.name, error=error, **at, **more))


Action = Callable[[Recovery, Job, FailedJob], Coroutine[Any, Any, None]]

ACTIONS: Mapping[tuple[Kind, Policy | None], Action] = {
    ("all done", None): Recovery.release,
    ("no schema", None): Recovery.load_schema,
    ("no registry", None): Recovery.wait_for_registry,
    ("unclear", None): Recovery.try_again,  # At once: without the message, or as a smaller job.
    ("passing", None): Recovery.try_again,
    ("exhausted", "dead_letter"): Recovery.send_letter,
    ("exhausted", "skip"): Recovery.skip,
    ("exhausted", "pause"): Recovery.pause,
    ("exhausted", "stop"): Recovery.stop,
}
"""What happens to the job, by the kind of its failure and, for an exhausted message, by what its route says."""


def schema_needed(error: BaseException | None) -> SchemaNeeded | RegistryError | None:
    """Returns why a message can't be read or sent for now: a schema is not loaded, or the registry can't be asked.

    None for any other error, also for a schema that the registry does not have.
    """
    while error is not None and not isinstance(error, SchemaNeeded | RegistryError):
        error = error.__cause__ if isinstance(error, DecodeError | EncodeError) else None
    return None if isinstance(error, SchemaNotFound) else error


def narrow(job: Job) -> None:
    """Shortens an exactly-once job at each new try: a transaction does not name the refused message."""
    if job.attempt > 1:
        job.truncate(job.remaining >> job.attempt - 1)
