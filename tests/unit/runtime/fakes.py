"""Stands for the engine: jobs whose batches are plain Python objects, and handles that a test answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke._native import Job
from awoke.declare.incoming import Incoming
from awoke.declare.injection.overrides import AppDependencies
from awoke.declare.lifecycle import BetweenJobs
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.observe.contexts import JobContexts
from awoke.observe.ledger import Ledger
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.payloads.topic_formats import TopicFormats
from awoke.runtime.failures.failures import Failures
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.process.assigned import AssignedPartitions
from awoke.runtime.process.dependencies import ProcessDependencies
from awoke.settings import Settings
from awoke.waiting.drive import drive
from awoke.waiting.handles import resolve


class FakeHandle:
    """A result of the engine's; `answer` gives it."""

    def __init__(self, error: BaseException | None = None, *, is_answered: bool = True) -> None:
        self._error, self._is_answered = error, is_answered
        self._waiting: list[tuple[Any, int]] = []
        self.waits = 0

    def answer(self) -> None:
        self._is_answered = True
        waiting, self._waiting = self._waiting, []
        for mailbox, token in waiting:
            mailbox.post(token)

    def done(self) -> bool:
        return self._is_answered

    def result(self) -> str:
        assert self._is_answered
        if self._error is not None:
            raise self._error
        return "answer"

    def exception(self) -> BaseException | None:
        return self._error

    def wait(self, timeout_s: float | None = None) -> str:
        self.waits += 1
        return self.result()

    def notify(self, mailbox: Any, token: int) -> bool:
        if self._is_answered:
            return False
        self._waiting.append((mailbox, token))
        return True

    def __await__(self) -> Generator[Any, Any, str]:
        return resolve(self).__await__()


class FakeMessage:
    """A message, which keeps its batch alive as a real one does."""

    def __init__(self, batch: FakeBatch, offset: int) -> None:
        self.batch, self.offset = batch, offset
        self.topic, self.partition, self.attempt = "orders", 0, 1
        self.key = self.raw_key = b"key"
        self.headers, self.value, self.raw_value = list[Any](), b"value", b"value"
        self.timestamp_ms = None


class FakeBatch:
    """Messages with the given offsets."""

    topic, partition = "orders", 0

    def __init__(self, job: FakeJob, offsets: Sequence[int]) -> None:
        self._job, self._offsets = job, offsets

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, place: int) -> FakeMessage:
        return FakeMessage(self, self._offsets[place])

    def __iter__(self) -> Iterator[FakeMessage]:
        return (FakeMessage(self, offset) for offset in self._offsets)

    @property
    def first_offset(self) -> int:
        return self._offsets[0]

    @property
    def size_bytes(self) -> int:
        return sum(100 + offset for offset in self._offsets)

    def offsets(self) -> list[int]:
        return list(self._offsets)

    def pick(self, places: Sequence[int]) -> FakeBatch:
        picked = FakeBatch(self._job, [self._offsets[place] for place in places])
        picked.of = self  # type: ignore[attr-defined]
        return picked

    def detach(self) -> None:
        self._job.detached += 1


class FakePartition:
    """An assignment of a partition; notes what it is told."""

    def __init__(self) -> None:
        self.is_current, self.is_lost = True, False
        self.stored: int | None = None
        self.said: list[str] = []

    def offsets(self) -> tuple[int | None, int | None]:
        if self.is_lost:
            raise awoke.FencedError("taken away", "orders", 0)
        return self.stored, None

    def clear_backoff(self) -> None:
        self._note("clear_backoff")

    def pause(self) -> None:
        self._note("pause")

    def resume(self) -> None:
        self._note("resume")

    def _note(self, name: str) -> None:
        if self.is_lost:
            raise awoke.FencedError("taken away", "orders", 0)
        self.said.append(name)


class FakeResults:
    """The results of one job, each with a `FakeHandle` that is answered."""

    def __init__(self) -> None:
        self._sent: list[tuple[int, FakeHandle, Any]] = []

    def keep(self, offset: int, handle: FakeHandle, record: Any) -> None:
        self._sent.append((offset, handle, record))

    def __len__(self) -> int:
        return len(self._sent)

    def wait(self) -> bool:
        return self.done() and self.result()

    def take(self) -> list[tuple[int, FakeHandle, Any]]:
        taken, self._sent = self._sent, []
        return taken

    def done(self) -> bool:
        return all(handle.done() for _, handle, _ in self._sent)

    def result(self) -> bool:
        return all(handle.exception() is None for _, handle, _ in self._sent)

    def notify(self, mailbox: Any, token: int) -> bool:
        assert self.done()
        return False


class FakeJob:
    """A job, or with `name` a hook, of `orders[0]`; notes what it is told."""

    topic, partition, generation, epoch, waited_s, route_number = "orders", 0, 1, 0, 0.25, 1

    def __init__(self, messages: int = 3, *, attempt: int = 1, is_of_lanes: bool = False, name: str = "") -> None:
        self.offsets, self.attempt, self.is_of_lanes, self.name = list(range(messages)), attempt, is_of_lanes, name
        self.remaining, self.detached, self.left, self.rest_offset = messages, 0, 0, None
        self.said: list[Any] = []
        self.parts: dict[int, FakeJob] = {}
        self.assigned, self.has_several_lanes = FakePartition(), False

    @property
    def first_offset(self) -> int:
        return self.offsets[-self.remaining] if self.remaining else self.offsets[-1] + 1

    def batch(self, decoder: Any = None) -> FakeBatch:
        return FakeBatch(self, self.offsets[len(self.offsets) - self.remaining :])

    def each(self, batch: FakeBatch, is_done_when_passed: bool = False) -> Iterator[FakeMessage]:
        return iter(batch)

    def assignment(self) -> Any:
        return self.assigned

    def ordinals(self) -> list[int | None]:
        return list(self.offsets[len(self.offsets) - self.remaining :])

    def split_off(self, offset: int) -> FakeJob:
        """Splits off the messages up to an offset, as a job that ends by itself."""
        part = self.parts[offset] = FakeJob(offset + 1, is_of_lanes=True)
        self.remaining = self.offsets[-1] - offset
        return part

    def leave_slot(self, keeps_assigned: bool, others_s: float = 0.0) -> None:
        self.said.append(("leave_slot", keeps_assigned))

    def split_lanes_behind(self, offset: int) -> FakeJob | None:
        """Splits off the messages behind an offset, if each has a lane of its own."""
        behind = [each for each in self.offsets if each > offset]
        if not self.has_several_lanes or not behind:
            return None
        self.offsets = self.offsets[: -len(behind)]
        self.remaining -= len(behind)
        part = self.parts[offset] = FakeJob(len(behind), is_of_lanes=True)
        part.offsets, part.has_several_lanes = behind, True
        return part

    def done(self, offset: int) -> None:
        self.remaining = self.offsets[-1] - offset
        self.said.append(("done", offset))

    def done_before(self, offset: int) -> None:
        self.remaining = self.offsets[-1] - offset + 1
        self.said.append(("done_before", offset))

    def retry(self, delay_s: float, *, is_counted: bool = True) -> None:
        self.said.append("retry")

    def __getattr__(self, name: str) -> Any:
        if name in (
            "complete",
            "release",
            "release_rest",
            "truncate",
            "finish",
            "keep_assigned",
            "allow_revoke",
        ):
            return lambda *arguments: self.said.append((name, *arguments) if arguments else name)
        raise AttributeError(name)


class FakeProducer:
    """Keeps what is sent; answers with the handles that it was given, then with good ones."""

    def __init__(self, *handles: FakeHandle) -> None:
        self._handles = list(handles)
        self.sent: list[tuple[str, Any]] = []

    def produce(self, topic: str, value: Any, **_: Any) -> FakeHandle:
        self.sent.append((topic, value))
        return self._handles.pop(0) if self._handles else FakeHandle()


class FakeApp:
    """An app with what it gives to its handlers, and the middleware around them."""

    name = "shop"

    def __init__(self, events: awoke.Events) -> None:
        self.events, self.settings, self.producer = events, Settings(), object()
        self.incoming: list[Incoming] = []
        self.cleanups = BetweenJobs()

    def around(self, route: Route) -> Sequence[Incoming]:
        return [*self.incoming, *route.incoming]

    def caller(self, service: str) -> str:
        return f"caller of {service}"

    def logger(self, name: str) -> str:
        return f"logger of {name}"


def on_a_loop(function: Callable[[], Any]) -> Future[Any]:
    """Stands for the runtime's event loop."""
    done: Future[Any] = Future()
    try:
        done.set_result(asyncio.run(function()))
    except Exception as error:
        done.set_exception(error)
    return done


class FakeContext:
    """The process that runs a route. `heard` are the names of the events, `ended` the fatal errors of the app."""

    def __init__(self, **parts: Any) -> None:
        self.events, self.heard = awoke.Events(), list[str]()
        self.events.subscribe("*", lambda event: self.heard.append(event.name))
        self.failures, self.ledger, self.group = Failures(), Ledger(), "shop"
        self.contexts = JobContexts()
        self.assigned = AssignedPartitions()
        self.settings: Any = SimpleNamespace(revoke_timeout_s=5.0)
        self.tracer = self.metrics = self.transactions = self.member = None
        self.last_commits: Any = SimpleNamespace(note_hook=lambda hook: None)
        self.producer, self.alone = FakeProducer(), FakeProducer()
        self.topic_formats = TopicFormats((), BY_TYPE, NO_SCHEMAS)
        self.app, self.refusals, self.overdue = FakeApp(self.events), None, None
        self.routes: list[Route] = []
        known = AppDependencies(cast("Any", self.app))
        self.dependencies = ProcessDependencies(known, self.routes, self.events, on_a_loop)
        self.ended: list[BaseException] = []
        self.paused: list[BaseException] = []
        self.loads = 0
        vars(self).update(parts)

    def schema_loads(self) -> int:
        return self.loads

    def stop_app(self, error: BaseException) -> None:
        self.ended.append(error)

    def pause_exhausted(self, job: Any, error: BaseException) -> None:
        self.paused.append(error)


class FakeTransactions:
    """Commits with the handles that it was given, then with good ones. It is its own transaction entry."""

    def __init__(self, *handles: FakeHandle) -> None:
        self._handles, self.is_direct = list(handles), False
        self.sent: list[tuple[str, Any]] = []
        self.submitted: list[int | None] = []

    def entry(self) -> FakeTransactions:
        return self

    def produce(self, topic: str, value: Any, **_: Any) -> None:
        self.sent.append((topic, value))

    def add(self, topic: str, record: Any) -> None:
        self.sent.append((topic, record.value))

    def produce_all(self, records: Iterable[tuple[str, Any]]) -> None:
        for topic, record in records:
            self.add(topic, record)

    def submit(self, job: Any, offset: int | None) -> FakeHandle:
        self.submitted.append(offset)
        return self._handles.pop(0) if self._handles else FakeHandle()


KINDS = pytest.mark.parametrize("is_async", [False, True])
"""Runs a test with `def` and with `async def` user code."""

Handler = Callable[[Any], Any]


def handler(function: Handler, is_async: bool) -> Handler:
    """Returns the function, or an `async def` that calls it."""

    async def call(message: Any) -> Any:
        return function(message)

    return call if is_async else function


def fails_at(offset: int) -> Handler:
    """Returns a function that raises for one message, and returns a result for others."""

    def function(message: Any) -> bytes:
        if message.offset == offset:
            raise ValueError("no good")
        return b"result"

    return function


def yields(is_async: bool) -> Any:
    """Returns a generator that sends the offset of each message, and the same to a topic of its own."""

    def generator(message: Any) -> Iterator[Any]:
        yield b"%d" % message.offset
        yield awoke.Outgoing("other", b"%d" % message.offset)

    async def async_generator(message: Any) -> AsyncIterator[Any]:
        for each in generator(message):
            yield each

    return async_generator if is_async else generator


YIELDED = [(topic, value) for value in (b"0", b"1", b"2") for topic in ("out", "other")]
"""All that `yields` sends for the messages of a job."""


def executor(target: Any, context: FakeContext, **options: Any) -> Executor:
    """Returns the executor of a route with these options, ready for its first job."""
    own = KindOptions(**{name: options.pop(name) for name in ("output", "ordered") if name in options})
    route = Route("orders", target, cast("Any", options), own)
    context.routes.append(route)
    ran = Executor(cast("Any", context), route)
    context.dependencies.open()
    ran.bind()
    return ran


def process(executor: Executor, job: FakeJob, *, on_loop: bool) -> FakeJob:
    """Processes a job on this thread, or on an event loop."""
    flow = executor.process(cast("Job", job))
    asyncio.run(flow) if on_loop else drive(flow)
    return job


def wait_for_callbacks() -> None:
    """Waits for awoke's callback thread, which ends jobs whose answers come later."""
    for thread in threading.enumerate():
        if thread.name == "awoke-callbacks":
            thread.join(30)
