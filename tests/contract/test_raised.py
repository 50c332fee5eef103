"""Whatever user code raises is a failure that is told and tried again, or ends the app. On every path of user code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest

import awoke
from awoke import rpc
from awoke.payloads import dead_letter
from awoke.payloads.formats.format import Format
from awoke.payloads.message import Outgoing
from awoke.runtime.process.runner import AppRunner
from awoke.testing import running
from tests.contract.test_consume import committed, new_app, send
from tests.support.clusters import Cluster, MockCluster, read_all
from tests.support.services import calling
from tests.support.waiting import Collected, wait_until

CreateTopic = Callable[..., str]

QUICK = awoke.Retry(backoff_s=(0.001, 0.002))
WITHIN_S = 30.0


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: what user code raises never reaches a broker."""
    return mock_cluster


class OwnBase(BaseException):
    """An error of user code that is no Exception, as some libraries have."""


class Unspeakable(Exception):
    """An error that can be shown in no way, and not be pickled."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__

    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


def failures() -> list[BaseException]:
    """One error of each kind that is a failure of what user code was called for."""
    return [
        ValueError("no good"),
        asyncio.CancelledError(),
        OwnBase("not an Exception"),
        GeneratorExit(),
        StopIteration(1),
        StopAsyncIteration(),
        TimeoutError("too long"),
        ExceptionGroup("several", [ValueError("a"), OSError("b")]),
        BaseExceptionGroup("cancelled", [asyncio.CancelledError(), OwnBase("b")]),
        RecursionError("too deep"),
        MemoryError(),
        Unspeakable(),
    ]


def ends() -> list[BaseException]:
    """One error of each kind that asks for the end of the app."""
    inner = BaseExceptionGroup("inner", [asyncio.CancelledError(), SystemExit(4)])
    return [SystemExit(3), KeyboardInterrupt(), BaseExceptionGroup("outer", [ValueError("a"), inner])]


class Raising:
    """Raises each of its errors once, then none. Any thread."""

    def __init__(self, errors: list[BaseException]) -> None:
        self.errors, self._left = list(errors), deque(errors)

    def refill(self) -> None:
        """Has the errors raised once more."""
        self._left = deque(self.errors)

    def __call__(self) -> None:
        with contextlib.suppress(IndexError):
            error = self._left.popleft()
            try:
                raise error
            finally:
                del error


class Case:
    """An app with user code that raises at one place, and a topic for it."""

    def __init__(self, cluster: Cluster, topic: CreateTopic, errors: list[BaseException]) -> None:
        self.cluster, self.topic = cluster, topic
        self.app, self.name, self.output = new_app(cluster), topic(), topic("out")
        self.fail, self.done = Raising(errors), Collected[bytes]()
        self.errors = Collected[BaseException]()
        self.left: set[bytes] = set()
        """Messages that the handler does not get."""
        self.app.events.subscribe("*", self._note)

    def _note(self, event: Any) -> None:
        if isinstance(error := getattr(event, "error", None), BaseException):
            self.errors.add(error)

    def handle(self, message: awoke.Message[Any]) -> bytes:
        self.done.add(message.raw_value or b"")
        return b"result"

    async def handle_async(self, message: awoke.Message[Any]) -> bytes:
        return self.handle(message)

    def raise_then_handle(self, message: awoke.Message[Any]) -> bytes:
        self.fail()
        return self.handle(message)

    async def raise_then_handle_async(self, message: awoke.Message[Any]) -> bytes:
        await asyncio.sleep(0)
        return self.raise_then_handle(message)


# Paths of messages: each has user code of a route that raises, and then lets the message through.


def function(case: Case, **options: Any) -> None:
    case.app.on(case.name, retry=QUICK, **options)(case.raise_then_handle)


def async_function(case: Case, **options: Any) -> None:
    case.app.on(case.name, retry=QUICK, **options)(case.raise_then_handle_async)


def task_of_a_function(case: Case) -> None:
    async def handle(message: awoke.Message[bytes]) -> None:
        async def part() -> None:
            case.fail()

        await asyncio.gather(part())
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def cancelled_itself(case: Case) -> None:
    """Each error comes with a cancellation of the job's own task, which is to hit the message only."""

    async def handle(message: awoke.Message[bytes]) -> None:
        try:
            case.fail()
        except BaseException:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            raise
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def generator(case: Case) -> None:
    def handle(message: awoke.Message[bytes]) -> Iterator[bytes]:
        yield b"one"
        case.fail()
        yield case.handle(message)

    case.app.on(case.name, retry=QUICK, output=case.output)(handle)


def async_generator(case: Case) -> None:
    async def handle(message: awoke.Message[bytes]) -> AsyncIterator[bytes]:
        yield b"one"
        case.fail()
        yield case.handle(message)

    case.app.on(case.name, retry=QUICK, output=case.output)(handle)


def by_key(case: Case) -> None:
    function(case, concurrency=awoke.by_key(4), output=case.output)


def by_key_ordered(case: Case) -> None:
    function(case, concurrency=awoke.by_key(4), output=case.output, ordered=True)


def async_by_key(case: Case) -> None:
    async_function(case, concurrency=awoke.by_key(4), output=case.output)


def exactly_once(case: Case) -> None:
    function(case, output=case.output, exactly_once=True)


def async_exactly_once(case: Case) -> None:
    async_function(case, output=case.output, exactly_once=True)


def consumer(case: Case, **options: Any) -> None:
    @case.app.consumer(case.name, retry=QUICK, **options)
    class Take(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            case.fail()
            for message in batch:
                case.handle(message)


def own_thread(case: Case) -> None:
    consumer(case, own_thread=True)


def async_consumer(case: Case) -> None:
    @case.app.consumer(case.name, retry=QUICK)
    class Take(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            case.fail()
            for message in batch:
                case.handle(message)


def hook_assigned(case: Case) -> None:
    @case.app.consumer(case.name, retry=QUICK)
    class Take(awoke.Consumer):
        def assigned(self) -> None:
            case.fail()

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                case.handle(message)


def async_hook_assigned(case: Case) -> None:
    @case.app.consumer(case.name, retry=QUICK)
    class Take(awoke.Consumer):
        async def assigned(self) -> None:
            case.fail()

        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                case.handle(message)


def init_of_a_consumer(case: Case) -> None:
    @case.app.consumer(case.name, retry=QUICK)
    class Take(awoke.Consumer):
        def __init__(self) -> None:
            case.fail()

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                case.handle(message)


def lane(case: Case) -> None:
    def lane_of(message: awoke.Message[bytes]) -> object:
        case.fail()
        return message.key

    case.app.on(case.name, retry=QUICK, concurrency=awoke.by(lane_of, 4))(case.handle)


def async_lane(case: Case) -> None:
    def lane_of(message: awoke.Message[bytes]) -> object:
        case.fail()
        return message.key

    case.app.on(case.name, retry=QUICK, concurrency=awoke.by(lane_of, 4))(case.handle_async)


def incoming(case: Case) -> None:
    @case.app.incoming
    def around(message: Any, call_next: Any) -> Any:
        case.fail()
        return call_next(message)

    case.app.on(case.name, retry=QUICK)(case.handle)


def async_incoming(case: Case) -> None:
    @case.app.incoming
    async def around(message: Any, call_next: Any) -> Any:
        result = await call_next(message)
        case.fail()
        return result

    case.app.on(case.name, retry=QUICK)(case.handle_async)


def outgoing(case: Case, **options: Any) -> None:
    @case.app.outgoing
    def pass_on(message: Outgoing) -> Outgoing:
        case.fail()
        return message

    case.app.on(case.name, retry=QUICK, output=case.output, **options)(case.handle)


def outgoing_in_order(case: Case) -> None:
    outgoing(case, concurrency=awoke.by_key(4), ordered=True)


def outgoing_exactly_once(case: Case) -> None:
    outgoing(case, exactly_once=True)


def format_that_reads(case: Case) -> None:
    class Own(Format):
        def encode(self, value: Any) -> bytes:
            return bytes(value)

        def decode(self, data: bytes) -> Any:
            case.fail()
            return data

    retry = awoke.Retry(backoff_s=(0.001, 0.002), on=(BaseException, awoke.DecodeError))
    case.app.on(case.name, retry=retry, value=Own())(case.handle)


def depends(case: Case) -> None:
    def found() -> int:
        case.fail()
        return 7

    def handle(message: awoke.Message[bytes], number: Annotated[int, awoke.Depends(found)]) -> None:
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def depends_behind_the_yield(case: Case) -> None:
    def found() -> Iterator[int]:
        yield 7
        case.fail()

    def handle(message: awoke.Message[bytes], number: Annotated[int, awoke.Depends(found)]) -> None:
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def async_depends(case: Case) -> None:
    async def found() -> AsyncIterator[int]:
        case.fail()
        yield 7

    async def handle(message: awoke.Message[bytes], number: Annotated[int, awoke.Depends(found)]) -> None:
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def depends_of_an_assignment(case: Case) -> None:
    def found() -> Iterator[int]:
        case.fail()
        yield 7

    def handle(message: awoke.Message[bytes], number: Annotated[int, awoke.Depends(found, "assignment")]) -> None:
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def filter_of_messages(case: Case) -> None:
    def where(message: awoke.Message[bytes]) -> bool:
        case.fail()
        return True

    case.app.on(case.name, retry=QUICK, flow=awoke.Flow(where=where))(case.handle)


def between_jobs(case: Case) -> None:
    case.app.between_jobs(case.fail)
    case.app.on(case.name, retry=QUICK)(case.handle)


def async_between_jobs(case: Case) -> None:
    @case.app.between_jobs
    async def between() -> None:
        case.fail()

    case.app.on(case.name, retry=QUICK)(case.handle_async)


def subscriber(case: Case) -> None:
    case.app.events.subscribe("job.failed", lambda event: case.fail())
    calls = iter(range(len(case.fail.errors)))

    def handle(message: awoke.Message[bytes]) -> None:
        if next(calls, None) is not None:
            raise ValueError("for the subscriber")
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def background(case: Case) -> None:
    for _ in case.fail.errors:
        case.app.background(case.fail)
    case.app.on(case.name)(case.handle)


def callback(case: Case) -> None:
    def handle(message: awoke.Message[bytes]) -> None:
        for _ in case.fail.errors:
            case.app.producer.produce(case.output, b"x").add_done_callback(lambda handle: case.fail())
        case.handle(message)

    case.app.on(case.name, retry=QUICK)(handle)


def retry(case: Case) -> None:
    class Own(awoke.Retry, frozen=True):
        def delay_s(self, attempt: int) -> float:
            case.fail()
            return 0.001

    calls = iter(range(len(case.fail.errors)))

    def handle(message: awoke.Message[bytes]) -> None:
        if next(calls, None) is not None:
            raise ValueError("for the retry")
        case.handle(message)

    case.app.on(case.name, retry=Own(backoff_s=(0.001, 0.002)))(handle)


def outgoing_of_a_letter(case: Case) -> None:
    @case.app.outgoing
    def pass_on(message: Outgoing) -> Outgoing:
        case.fail()
        return message

    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"1":
            raise ValueError("no good")
        case.handle(message)

    case.left.add(b"1")
    once = awoke.Retry(attempts=1, backoff_s=(0.001, 0.002))
    case.app.on(case.name, retry=once, dead_letter=case.output)(handle)


MESSAGES = [
    function,
    async_function,
    task_of_a_function,
    cancelled_itself,
    generator,
    async_generator,
    by_key,
    by_key_ordered,
    async_by_key,
    exactly_once,
    async_exactly_once,
    consumer,
    own_thread,
    async_consumer,
    hook_assigned,
    async_hook_assigned,
    init_of_a_consumer,
    lane,
    async_lane,
    incoming,
    async_incoming,
    outgoing,
    outgoing_in_order,
    outgoing_exactly_once,
    format_that_reads,
    depends,
    depends_behind_the_yield,
    async_depends,
    depends_of_an_assignment,
    filter_of_messages,
    between_jobs,
    async_between_jobs,
    subscriber,
    background,
    callback,
    retry,
    outgoing_of_a_letter,
]


def is_told(error: BaseException, told: list[BaseException]) -> bool:
    """Tells whether an error is among those that were told, or the cause of one: Python puts some into others."""
    for each in told:
        found: BaseException | None = each
        while found is not None:
            if found is error or type(found) is type(error) is GeneratorExit:  # Of a task, Python makes a new one.
                return True
            found = found.__cause__ or found.__context__
    return False


@pytest.mark.parametrize("path", MESSAGES)
def test_every_failure_is_told_and_its_message_is_tried_again(
    cluster: Cluster, topic: CreateTopic, caplog: pytest.LogCaptureFixture, path: Callable[[Case], None]
) -> None:
    case = Case(cluster, topic, failures())
    path(case)
    values = [str(number).encode() for number in range(1, 4 + len(failures()))]
    send(cluster, case.name, list(values))
    with caplog.at_level(logging.DEBUG), running(case.app) as runner:
        case.done.wait_until(lambda items: {*values} <= {*items, *case.left}, WITHIN_S)

        def told() -> list[BaseException]:
            lines = [record.exc_info[1] for record in caplog.records if record.exc_info]
            return [*case.errors.items, *(each for each in lines if each is not None)]

        wait_until(
            lambda: all(is_told(each, told()) for each in case.fail.errors), "each error is told", WITHIN_S, 0.01
        )
        # A result that middleware refused is sent again after its handler has run.
        everything = {(case.name, 0): len(values)}
        wait_until(lambda: committed(cluster, case.app) == everything, "all is committed", WITHIN_S, 0.05)
        assert runner.fatal_error is None
    assert committed(cluster, case.app) == everything


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@pytest.mark.parametrize("error", failures(), ids=lambda error: type(error).__name__)
def test_an_exhausted_message_is_a_dead_letter_whatever_was_raised(
    cluster: Cluster, topic: CreateTopic, error: BaseException, *, is_async: bool
) -> None:
    case = Case(cluster, topic, [error, error])
    twice = awoke.Retry(attempts=2, backoff_s=(0.001, 0.002))
    handle = case.raise_then_handle_async if is_async else case.raise_then_handle
    case.app.on(case.name, retry=twice, dead_letter=case.output)(handle)
    send(cluster, case.name, [b"1", b"2"])
    with running(case.app):
        assert case.done.wait_for(1, WITHIN_S) == [b"2"]
    (letter,) = read_all(cluster, case.output)
    origin = dead_letter.origin(letter)
    assert origin is not None
    assert (origin.offset, origin.attempts) == (0, 2)
    converted = {"StopIteration": "RuntimeError"}  # Python's own: no coroutine raises it.
    kind = type(error).__name__
    assert origin.error_type.rpartition(".")[2] in (kind, converted.get(kind))


def hooks(case: Case, *, is_async: bool) -> None:
    """A consumer whose other hooks raise."""

    def then(name: str) -> Any:
        def hook(self: Any) -> None:
            case.fail()

        async def hook_async(self: Any) -> None:
            case.fail()

        return hook_async if is_async else hook

    def consume(self: Any, batch: awoke.Batch[bytes]) -> None:
        for message in batch:
            case.handle(message)

    async def consume_async(self: Any, batch: awoke.Batch[bytes]) -> None:
        consume(self, batch)

    members = {name: then(name) for name in ("tick", "revoked")}
    kind = type("Take", (awoke.Consumer,), {**members, "consume": consume_async if is_async else consume})
    case.app.consumer(case.name, retry=QUICK, tick_every_s=0.001)(kind)


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_a_hook_that_raises_is_told_and_its_partition_goes_on(
    cluster: Cluster, topic: CreateTopic, *, is_async: bool
) -> None:
    case = Case(cluster, topic, failures())
    hooks(case, is_async=is_async)
    send(cluster, case.name, [b"1"])
    with running(case.app):
        case.done.wait_for(1, WITHIN_S)
        case.errors.wait_until(lambda told: all(is_told(each, list(told)) for each in case.fail.errors), WITHIN_S)
    assert committed(cluster, case.app) == {(case.name, 0): 1}


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@pytest.mark.parametrize("error", failures(), ids=lambda error: type(error).__name__)
def test_a_start_up_function_that_raises_ends_the_start_and_a_shutdown_function_nothing(
    cluster: Cluster, topic: CreateTopic, error: BaseException, *, is_async: bool
) -> None:
    case = Case(cluster, topic, [error])
    case.app.on(case.name)(case.handle)

    async def fail_async() -> None:
        case.fail()

    case.app.on_shutdown(fail_async if is_async else case.fail)
    with running(case.app) as runner:
        pass
    assert runner.stop()
    (told,) = case.errors.wait_for(1)
    assert type(told).__name__ in (type(error).__name__, "RuntimeError"), "a future may have made another one of it"

    case = Case(cluster, topic, [error])
    case.app.on(case.name)(case.handle)
    case.app.on_startup(fail_async if is_async else case.fail)
    case.fail.refill()
    with pytest.raises(BaseException) as raised, running(case.app):  # noqa: PT011 - whatever it is
        pass
    assert type(raised.value).__name__ in (type(error).__name__, "RuntimeError")


def echo(case: Case) -> None:
    @case.app.rpc.method
    def serve() -> str:
        case.fail()
        return "served"


def async_echo(case: Case) -> None:
    @case.app.rpc.method
    async def serve() -> str:
        case.fail()
        return "served"


def task_of_a_method(case: Case) -> None:
    @case.app.rpc.method
    async def serve() -> str:
        async def part() -> None:
            case.fail()

        await asyncio.gather(part())
        return "served"


def stream(case: Case) -> None:
    @case.app.rpc.method
    def serve() -> Iterator[str]:
        yield "one"
        case.fail()
        yield "served"


def async_stream(case: Case) -> None:
    @case.app.rpc.method
    async def serve() -> AsyncIterator[str]:
        yield "one"
        case.fail()
        yield "served"


CALLS = [echo, async_echo, task_of_a_method, stream, async_stream]


def called(caller: rpc.Caller, path: Callable[[Case], None]) -> Any:
    return list(caller.stream("serve"))[-1] if path in (stream, async_stream) else caller.call("serve")


@pytest.mark.parametrize("mode", ["at_least_once", "at_most_once"])
@pytest.mark.parametrize("path", CALLS)
def test_every_failure_of_a_method_is_told_to_its_caller_and_the_service_goes_on(
    cluster: Cluster, topic: CreateTopic, path: Callable[[Case], None], mode: str
) -> None:
    case = Case(cluster, topic, failures())
    case.app.rpc.options(mode=mode)
    path(case)
    with calling(case.app) as caller:
        for error in case.fail.errors:
            with pytest.raises(rpc.Internal):
                called(caller, path)
            case.errors.wait_until(lambda told, error=error: is_told(error, list(told)), WITHIN_S)  # type: ignore[misc]
        assert called(caller, path) == "served"


@pytest.mark.parametrize("path", CALLS)
def test_an_end_in_a_method_ends_the_app(cluster: Cluster, topic: CreateTopic, path: Callable[[Case], None]) -> None:
    case = Case(cluster, topic, [SystemExit(3)])
    path(case)
    ended = Collected[BaseException]()
    runner = AppRunner(case.app, ended.add)
    runner.start()
    try:
        with rpc.Caller(case.app.name, cluster.bootstrap_servers, timeout_s=10, kafka=cluster.properties) as caller:
            caller.wait_until_served()
            with pytest.raises(awoke.RpcError):
                called(caller, path)
        (error,) = ended.wait_for(1)
    finally:
        assert runner.stop(), "all of it ends in order"
    assert isinstance(error, SystemExit)


@pytest.mark.parametrize("path", MESSAGES)
def test_an_end_ends_the_app_with_its_message_not_done(
    cluster: Cluster, topic: CreateTopic, path: Callable[[Case], None]
) -> None:
    case = Case(cluster, topic, [SystemExit(3)])
    path(case)
    send(cluster, case.name, [b"1"])
    ended = Collected[BaseException]()
    runner = AppRunner(case.app, ended.add)
    runner.start()
    try:
        (error,) = ended.wait_for(1)
    finally:
        assert runner.stop(), "all of it ends in order"
    assert isinstance(error, SystemExit)
    assert error.code == 3


@pytest.mark.parametrize("number", range(3), ids=["SystemExit", "KeyboardInterrupt", "group"])
@pytest.mark.parametrize("path", [function, async_function, task_of_a_function, consumer, hook_assigned])
def test_each_end_ends_the_app(cluster: Cluster, topic: CreateTopic, path: Callable[[Case], None], number: int) -> None:
    case = Case(cluster, topic, [ends()[number]])
    path(case)
    send(cluster, case.name, [b"1"])
    with running(case.app) as runner:
        wait_until(lambda: runner.fatal_error is not None, "the app is to end", WITHIN_S, 0.01)
        assert isinstance(runner.fatal_error, SystemExit | KeyboardInterrupt)
