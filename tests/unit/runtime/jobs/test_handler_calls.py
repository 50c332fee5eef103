"""The handler of a route as jobs call it: arguments, middleware, decoding and choice, and assignments."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, cast

import pytest

import awoke
from awoke._native import HookJob, Job
from awoke.declare.injection import Assignment, Depends, Header
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.jobs.handler_calls import HandlerCalls, collected
from awoke.runtime.jobs.outputs import Yielded
from awoke.waiting.drive import drive
from tests.unit.runtime.fakes import KINDS, FakeContext, FakeJob, executor, process

said: list[Any] = []


@pytest.fixture(autouse=True)
def quiet() -> None:
    said.clear()


def later(function: Callable[..., Any], is_async: bool) -> Any:
    """Returns a function of named arguments, or an `async def` that calls it."""

    async def call(message: Any, **named: Any) -> Any:
        return function(message, **named)

    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call if is_async else function


def calls_of(
    target: Any, context: FakeContext | None = None, output: str | None = None, **options: Any
) -> HandlerCalls:
    """Returns the calls of a route's handler, ready for its first message."""
    context = context or FakeContext()
    route = Route("orders", target, cast("Any", options), KindOptions(output=output))
    calls = HandlerCalls(route, cast("Any", context))
    if calls.is_late:
        calls.bind()
    return calls


# The order of what is around a handler.


class Message:
    """A message whose value decodes when it is asked for."""

    topic, partition, offset, key = "orders", 0, 7, b"key"

    def __init__(self, value: Any = b"value", *headers: tuple[str, bytes]) -> None:
        self._value, self.headers = value, list(headers)

    @property
    def value(self) -> Any:
        said.append("decode")
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


def around(name: str) -> Any:
    async def call(message: Any, call_next: Any) -> Any:
        said.append(name)
        result = await call_next(message)
        said.append(f"{name} ends")
        return result

    return call


def session() -> Iterator[str]:
    said.append("open")
    yield "session"
    said.append("close")


def of_session(message: awoke.Message[int], it: Annotated[str, Depends(session)]) -> str:
    said.append("handle")
    return it


@KINDS
def test_middleware_of_the_app_is_around_that_of_the_route_around_decoding_and_functions(is_async: bool) -> None:
    context = FakeContext()
    context.app.incoming.append(around("app"))
    calls = calls_of(later(of_session, is_async), context, value=int, incoming=[around("route")])
    assert not calls.is_typed, "the strategy must not decode before the middleware"
    result = calls.function(Message(7))
    assert (asyncio.run(result) if is_async else result) == "session"
    assert said == ["app", "route", "decode", "open", "handle", "close", "route ends", "app ends"]


@KINDS
def test_a_value_that_does_not_decode_passes_the_middleware_and_calls_no_function(is_async: bool) -> None:
    async def count(message: Any, call_next: Any) -> Any:
        try:
            return await call_next(message)
        except awoke.DecodeError as error:
            said.append(error)
            raise

    calls, error = calls_of(later(of_session, is_async), value=int, incoming=[count]), awoke.DecodeError("no number")
    with pytest.raises(awoke.DecodeError, match="no number"):
        result = calls.function(Message(error))
        asyncio.run(result)
    assert said == ["decode", error]


def test_a_handler_of_bytes_decodes_nothing() -> None:
    calls = calls_of(lambda message: said.append("handle"), incoming=[around("route")])
    calls.function(Message(ValueError("no good")))
    assert said == ["route", "handle", "route ends"]


def test_without_middleware_the_strategy_decodes() -> None:
    assert calls_of(of_session).is_typed
    assert not calls_of(lambda message: None).is_typed


def test_a_plain_handler_is_called_as_it_is_and_needs_no_start() -> None:
    def handle(message: Any) -> None: ...

    calls = HandlerCalls(Route("orders", handle, {}), cast("Any", FakeContext()))
    assert (calls.is_late, calls.function) == (False, handle)
    late = HandlerCalls(Route("orders", of_session, {}), cast("Any", FakeContext()))
    assert late.is_late


# Jobs.


def with_all(
    message: awoke.Message[bytes], producer: awoke.Producer, at: Assignment, it: Annotated[str, Depends(session)]
) -> None:
    said.append((message.offset, producer, at, it))


@KINDS
def test_a_job_calls_the_handler_with_its_arguments(is_async: bool) -> None:
    context = FakeContext()
    job = process(executor(later(with_all, is_async), context), FakeJob(2), on_loop=is_async)
    assert said == [
        *("open", (0, context.app.producer, Assignment("orders", 0), "session"), "close"),
        *("open", (1, context.app.producer, Assignment("orders", 0), "session"), "close"),
    ]
    assert (job.said, job.detached) == (["complete"], 0)


def of_tenant(message: awoke.Message[bytes], tenant: Annotated[str, Header("tenant")]) -> None:
    said.append(tenant)


@KINDS
def test_a_header_that_is_missing_fails_its_message(is_async: bool) -> None:
    context = FakeContext()
    job = process(
        executor(later(of_tenant, is_async), context, retry=awoke.Retry(on_exhausted="skip")),
        FakeJob(),
        on_loop=is_async,
    )
    assert said == []
    assert context.heard[-1] == "message.skipped"
    assert job.said[-1] == "release_rest"


@KINDS
def test_middleware_that_does_not_go_on_completes_its_message(is_async: bool) -> None:
    async def only_even(message: Any, call_next: Any) -> Any:
        return None if message.offset % 2 else await call_next(message)

    handle = later(lambda message: said.append(message.offset), is_async)
    job = process(executor(handle, FakeContext(), incoming=[only_even]), FakeJob(4), on_loop=is_async)
    assert (said, job.said, job.detached) == ([0, 2], ["complete"], 0)


@KINDS
def test_middleware_changes_what_is_sent(is_async: bool) -> None:
    async def upper(message: Any, call_next: Any) -> Any:
        return (await call_next(message)).upper()

    context = FakeContext()
    ran = executor(later(lambda message: b"result", is_async), context, output="out", incoming=[upper])
    process(ran, FakeJob(1), on_loop=True)
    assert context.producer.sent == [("out", b"RESULT")]


def choosing(is_async: bool) -> awoke.Handlers:
    handlers = awoke.Handlers()

    def first(message: Any, it: Annotated[str, Depends(session)]) -> None:
        said.append(("first", it))

    handlers.when(lambda message: message.offset == 0)(later(first, is_async))
    handlers.when(lambda message: message.offset == 1)(later(lambda message: said.append("second"), is_async))
    return handlers


@KINDS
def test_only_the_chosen_handler_has_its_functions_called(is_async: bool) -> None:
    context = FakeContext()
    process(executor(choosing(is_async), context), FakeJob(2), on_loop=is_async)
    assert said == ["open", ("first", "session"), "close", "second"]


@KINDS
def test_a_message_that_no_handler_takes_is_exhausted_at_once(is_async: bool) -> None:
    context = FakeContext()
    ran = executor(choosing(is_async), context, retry=awoke.Retry(attempts=9, on_exhausted="skip"))
    job = process(ran, FakeJob(3), on_loop=is_async)
    assert context.heard == ["job.failed", "message.skipped"]
    assert job.said[-1] == "release_rest"


# Classes.


def consumer_class(is_async: bool) -> type[awoke.Consumer]:
    class Plain(awoke.Consumer):
        def consume(
            self, batch: awoke.Batch[bytes], producer: awoke.Producer, it: Annotated[str, Depends(session)]
        ) -> None:
            said.append((batch.offsets(), self.partition, producer, it))

    class Async(awoke.Consumer):
        async def consume(
            self, batch: awoke.Batch[bytes], producer: awoke.Producer, it: Annotated[str, Depends(session)]
        ) -> None:
            said.append((batch.offsets(), self.partition, producer, it))

    return Async if is_async else Plain


@KINDS
def test_a_class_gets_arguments_beside_its_batch_within_the_middleware(is_async: bool) -> None:
    context = FakeContext()
    context.app.incoming.append(around("app"))
    job = process(executor(consumer_class(is_async), context), FakeJob(2), on_loop=is_async)
    assert said == ["app", "open", ([0, 1], 0, context.app.producer, "session"), "close", "app ends"]
    assert (job.said, job.detached) == (["complete"], 0)


def test_a_class_without_arguments_and_middleware_is_called_as_it_is() -> None:
    class Plain(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None: ...

    class Static(awoke.Consumer):
        @staticmethod
        def consume(batch: awoke.Batch[bytes], producer: awoke.Producer) -> None:
            said.append((batch.offsets(), producer))

    assert calls_of(Plain).consume is None
    context = FakeContext()
    process(executor(Static, context), FakeJob(1), on_loop=False)
    assert said == [([0], context.app.producer)]


# Assignments.


def connection(at: Assignment) -> Iterator[str]:
    said.append("connect")
    yield f"connection of {at.topic}[{at.partition}]"
    said.append("disconnect")


async def connection_later(at: Assignment) -> AsyncIterator[str]:
    said.append("connect")
    await asyncio.sleep(0)
    yield f"connection of {at.topic}[{at.partition}]"
    said.append("disconnect")


def of_connection(
    message: Any,
    it: Annotated[str, Depends(connection, scope="assignment")],
    again: Annotated[str, Depends(connection, scope="assignment")],
) -> None:
    said.append(it)
    assert it is again


def job_of(generation: int = 1, partition: int = 0, *, is_current: bool = True) -> FakeJob:
    job = FakeJob(1)
    vars(job).update(generation=generation, partition=partition)
    job.assigned.is_current = is_current
    return job


def hook_of(generation: int = 1, name: str = "revoked") -> FakeJob:
    hook = FakeJob(name=name)
    vars(hook)["generation"] = generation
    return hook


class Case:
    """An executor of jobs and hooks of several assignments, on a thread or on one event loop."""

    def __init__(self, function: Any, is_async: bool) -> None:
        self.context, self._loop = FakeContext(), asyncio.Runner() if is_async else None
        self.executor: Executor = executor(later(function, is_async), self.context)

    def job(self, *arguments: Any, **named: Any) -> FakeJob:
        job = job_of(*arguments, **named)
        self._run(self.executor.process(cast("Job", job)))
        return job

    def hook(self, *arguments: Any, **named: Any) -> FakeJob:
        hook = hook_of(*arguments, **named)
        self._run(self.executor.call_hook(cast("HookJob", hook)))
        return hook

    def _run(self, flow: Any) -> None:
        drive(flow) if self._loop is None else self._loop.run(flow)

    def __enter__(self) -> Case:
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.close()


@KINDS
def test_what_belongs_to_an_assignment_is_made_once_and_closed_with_it(is_async: bool) -> None:
    with Case(of_connection, is_async) as case:
        case.job()
        case.job()
        case.job(partition=1)
        assert said == ["connect", *["connection of orders[0]"] * 2, "connect", "connection of orders[1]"]
        case.hook(name="assigned")
        case.hook(generation=2)
        assert "disconnect" not in said, "neither of them ends this assignment"
        assert case.hook().said == ["finish"]
        assert said[5:] == ["disconnect"]
        case.job(generation=2)
        assert said[6:] == ["connect", "connection of orders[0]"]


@pytest.mark.parametrize("name", ["revoked", "lost", "shutdown"])
def test_every_end_of_an_assignment_closes_what_belongs_to_it(name: str) -> None:
    with Case(of_connection, False) as case:
        case.job()
        case.hook(name=name)
        case.hook(name=name)
        assert said[-2:] == ["connection of orders[0]", "disconnect"]


async def of_connection_later(message: Any, it: Annotated[str, Depends(connection_later, scope="assignment")]) -> None:
    said.append(it)


def test_jobs_that_come_first_at_once_on_an_event_loop_make_it_once() -> None:
    ran = executor(of_connection_later, FakeContext())

    async def run() -> None:
        jobs = [job_of() for _ in range(5)]
        await asyncio.gather(*(ran.process(cast("Job", job)) for job in jobs))
        await ran.call_hook(cast("HookJob", hook_of()))
        assert [job.said for job in jobs] == [["complete"]] * 5

    asyncio.run(run())
    assert said == ["connect", *["connection of orders[0]"] * 5, "disconnect"]


def test_workers_that_come_first_at_once_make_it_once() -> None:
    ran, together = executor(of_connection, FakeContext()), threading.Barrier(8)
    jobs = [job_of() for _ in range(8)]

    def work(job: FakeJob) -> None:
        together.wait(30)
        ran.run_job(cast("Job", job))

    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert said.count("connect") == 1
    assert [job.said for job in jobs] == [["complete"]] * 8


@KINDS
def test_a_job_that_outlived_its_assignment_makes_nothing(is_async: bool) -> None:
    with Case(of_connection, is_async) as case:
        job = case.job(is_current=False)
        assert said == []
        assert job.said == ["retry"]


def broken(at: Assignment, other: Annotated[str, Depends(connection, scope="assignment")]) -> str:
    raise OSError("no database")


def of_broken(message: Any, it: Annotated[str, Depends(broken, scope="assignment")]) -> None:
    said.append("handle")


@KINDS
def test_what_can_not_be_made_fails_its_job_and_is_tried_again(is_async: bool) -> None:
    with Case(of_broken, is_async) as case:
        jobs = [case.job(), case.job()]
        assert [job.said for job in jobs] == [["retry"], ["retry"]]
        assert case.context.heard == ["job.failed", "job.failed"]
        assert said == ["connect", "connect"], "its error went to the yield, and closed it"


def broken_at_the_end() -> Iterator[str]:
    yield "broken"
    raise OSError("no database")


def of_broken_at_the_end(
    message: Any,
    one: Annotated[str, Depends(connection, scope="assignment")],
    two: Annotated[str, Depends(broken_at_the_end, scope="assignment")],
) -> None: ...


@KINDS
def test_what_fails_while_it_is_closed_is_an_event_and_the_partition_is_given_back(is_async: bool) -> None:
    with Case(of_broken_at_the_end, is_async) as case:
        failed: list[Any] = []
        case.context.events.subscribe("hook.failed", failed.append)
        case.job()
        assert case.hook().said == ["finish"]
        assert [(each.hook, each.handler.endswith("Depends(broken_at_the_end)")) for each in failed] == [
            ("revoked", True)
        ]
        assert str(failed[0].error) == "no database"
        assert said == ["connect", "disconnect"]


# Generators.


def test_a_generator_is_called_to_its_end() -> None:
    def plain(message: Any, more: int = 0) -> Iterator[int]:
        yield 1 + more
        yield 2 + more

    async def of_loop(message: Any, more: int = 0) -> AsyncIterator[int]:
        yield 1 + more
        yield 2 + more

    found, found_later = collected(plain)(None, more=1), asyncio.run(collected(of_loop)(None, more=1))
    assert (type(found), found) == (type(found_later), found_later) == (Yielded, [2, 3])
    assert collected(session) is not session
    assert collected(of_session) is of_session


def yielding(message: Any, it: Annotated[str, Depends(session)]) -> Iterator[Any]:
    said.append("handle")
    yield it.encode()
    yield awoke.Outgoing("other", b"more")
    said.append("end")


async def yielding_later(message: Any, it: Annotated[str, Depends(session)]) -> AsyncIterator[Any]:
    for each in yielding(message, it):
        yield each


@pytest.mark.parametrize("function", [yielding, yielding_later])
def test_the_functions_of_a_generator_are_closed_behind_its_end(function: Any) -> None:
    context = FakeContext()
    process(executor(function, context, output="out"), FakeJob(1), on_loop=True)
    assert said == ["open", "handle", "end", "close"]
    assert context.producer.sent == [("out", b"session"), ("other", b"more")]
