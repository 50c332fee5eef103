"""What is set in context variables for one message is seen for that message only; what stood at the start, for all."""

from __future__ import annotations

import asyncio
import decimal
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Annotated, Any

import pytest
import structlog
from django.conf import settings as django_settings
from django.utils import translation
from opentelemetry import baggage, context

import awoke
from awoke.observe.events import JobFailed, OffsetsCommitted
from awoke.payloads.formats.format import Format
from awoke.payloads.message import Outgoing
from awoke.testing import run_route, running
from tests.contract.test_consume import new_app, send
from tests.support.clusters import Cluster, MockCluster, read_all
from tests.support.services import calling
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]

CUSTOMER: ContextVar[str | None] = ContextVar("customer", default=None)
SERVICE: ContextVar[str | None] = ContextVar("service", default=None)
NUMBERS: ContextVar[list[int] | None] = ContextVar("numbers", default=None)
VALUES = [b"1", b"2", b"3", b"4", b"5", b"6"]
WITHIN_S = 30.0


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: a context never reaches a broker."""
    return mock_cluster


class Case:
    """An app whose code sets a variable for each message, and notes what it had found before."""

    def __init__(self, cluster: Cluster, topic: CreateTopic) -> None:
        self.cluster, self.app = cluster, new_app(cluster)
        self.name, self.output = topic(), topic("out")
        self.found = Collected[str | None]()
        self.done = Collected[bytes]()

    def set(self, message: awoke.Message[Any]) -> None:
        self.found.add(CUSTOMER.get())
        CUSTOMER.set((message.raw_value or b"").decode())

    def handle(self, message: awoke.Message[Any]) -> bytes:
        self.set(message)
        self.done.add(message.raw_value or b"")
        return b"result"

    async def handle_async(self, message: awoke.Message[Any]) -> bytes:
        await asyncio.sleep(0)
        return self.handle(message)


def function(case: Case, **options: Any) -> None:
    case.app.on(case.name, **options)(case.handle)


def async_function(case: Case, **options: Any) -> None:
    case.app.on(case.name, **options)(case.handle_async)


def one_by_one(case: Case) -> None:
    function(case, dead_letter=case.output)


def lanes(case: Case) -> None:
    function(case, concurrency=awoke.by_key(2), output=case.output)


def async_lanes(case: Case) -> None:
    async_function(case, concurrency=awoke.by_key(2), output=case.output, ordered=True)


def exactly_once(case: Case) -> None:
    function(case, output=case.output, exactly_once=True)


def function_for_lanes(case: Case) -> None:
    def lane_of(message: awoke.Message[bytes]) -> object:
        case.set(message)
        return message.value

    case.app.on(case.name, concurrency=awoke.by(lane_of, 4))(lambda message: case.done.add(message.raw_value))


def filter_of_messages(case: Case) -> None:
    def where(message: awoke.Message[bytes]) -> bool:
        case.set(message)
        return True

    @case.app.on(case.name, flow=awoke.Flow(where=where))
    def handle(message: awoke.Message[bytes]) -> None:
        assert CUSTOMER.get() is None
        case.done.add(message.value)


def consumer(case: Case, **options: Any) -> None:
    @case.app.consumer(case.name, batch=awoke.Batching(max_messages=1), **options)
    class Take(awoke.Consumer):
        def assigned(self) -> None:
            CUSTOMER.set("of the hook")

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                case.handle(message)


def own_thread(case: Case) -> None:
    consumer(case, own_thread=True)


def async_consumer(case: Case) -> None:
    @case.app.consumer(case.name, batch=awoke.Batching(max_messages=1))
    class Take(awoke.Consumer):
        async def assigned(self) -> None:
            CUSTOMER.set("of the hook")

        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                await case.handle_async(message)


def incoming(case: Case) -> None:
    @case.app.incoming
    def around(message: Any, call_next: Any) -> Any:
        case.set(message)
        result = call_next(message)
        assert SERVICE.get() == "set by the handler"
        return result

    @case.app.on(case.name)
    def handle(message: awoke.Message[bytes]) -> None:
        assert CUSTOMER.get() == message.value.decode(), "middleware and handler share a context"
        SERVICE.set("set by the handler")
        case.done.add(message.value)


def depends(case: Case) -> None:
    def opened(message: awoke.Message[bytes]) -> Iterator[None]:
        case.set(message)
        token = SERVICE.set("inner")
        yield None
        SERVICE.reset(token)

    @case.app.on(case.name)
    def handle(message: awoke.Message[bytes], _: Annotated[None, awoke.Depends(opened)]) -> None:
        assert (CUSTOMER.get(), SERVICE.get()) == (message.value.decode(), "inner")
        case.done.add(message.value)


def async_depends(case: Case) -> None:
    async def opened(message: awoke.Message[bytes]) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        case.set(message)
        token = SERVICE.set("inner")
        yield None
        SERVICE.reset(token)

    @case.app.on(case.name)
    async def handle(message: awoke.Message[bytes], _: Annotated[None, awoke.Depends(opened)]) -> None:
        assert (CUSTOMER.get(), SERVICE.get()) == (message.value.decode(), "inner")
        case.done.add(message.value)


def depends_of_an_assignment(case: Case) -> None:
    def opened(place: awoke.Assignment) -> Iterator[None]:
        token = CUSTOMER.set("of the assignment")
        yield None
        CUSTOMER.reset(token)  # In the context in which it was set: else this raises.

    @case.app.on(case.name)
    def handle(message: awoke.Message[bytes], _: Annotated[None, awoke.Depends(opened, "assignment")]) -> None:
        case.handle(message)


PATHS = [
    function,
    async_function,
    one_by_one,
    lanes,
    async_lanes,
    exactly_once,
    function_for_lanes,
    filter_of_messages,
    consumer,
    own_thread,
    async_consumer,
    incoming,
    depends,
    async_depends,
    depends_of_an_assignment,
]


@pytest.mark.parametrize("path", PATHS)
def test_no_message_sees_the_variables_of_another(
    cluster: Cluster, topic: CreateTopic, path: Callable[[Case], None]
) -> None:
    case, failed = Case(cluster, topic), Collected[Any]()
    for name in ("job.failed", "hook.failed"):
        case.app.events.subscribe(name, failed.add)
    path(case)
    send(cluster, case.name, list(VALUES))
    with running(case.app, workers=1):
        case.done.wait_for(len(VALUES), WITHIN_S)
    assert case.found.items == [None] * len(VALUES)
    assert failed.items == []


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@pytest.mark.parametrize("options", [{}, {"exactly_once": True}, {"concurrency": awoke.by_key(2), "ordered": True}])
def test_middleware_of_what_is_sent_sees_the_variables_of_its_message(
    cluster: Cluster, topic: CreateTopic, options: dict[str, Any], *, is_async: bool
) -> None:
    case = Case(cluster, topic)

    @case.app.outgoing
    def named(message: Outgoing) -> Outgoing:
        return message._replace(headers=[("customer", (CUSTOMER.get() or "none").encode())])

    def handle(message: awoke.Message[bytes]) -> awoke.Record:
        CUSTOMER.set(message.value.decode())
        return awoke.Record(message.value)

    async def handle_async(message: awoke.Message[bytes]) -> awoke.Record:
        return handle(message)

    case.app.on(case.name, output=case.output, **options)(handle_async if is_async else handle)
    for value in VALUES:
        send(cluster, case.name, [value], key=value)
    sent = Collected[int]()
    case.app.events.subscribe(OffsetsCommitted, lambda event: sent.add(event.offsets[-1][2]))
    with running(case.app):
        sent.wait_until(lambda offsets: len(VALUES) in offsets, WITHIN_S)
    found = read_all(cluster, case.output)
    assert sorted(message.value or b"" for message in found) == VALUES
    assert all(message.headers == [("customer", message.value)] for message in found)


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_what_stood_at_the_start_and_what_start_up_functions_set_is_there_for_each_message(
    cluster: Cluster, topic: CreateTopic, *, is_async: bool
) -> None:
    case, seen = Case(cluster, topic), Collected[Any]()

    @case.app.on_startup
    def begin() -> None:
        assert SERVICE.get() == "shop"
        CUSTOMER.set("of the start")

    @case.app.on_startup
    async def begin_async() -> None:
        await asyncio.sleep(0)
        NUMBERS.set([1])

    @case.app.on_shutdown
    def end() -> None:
        seen.add((SERVICE.get(), CUSTOMER.get(), NUMBERS.get()))

    def handle(message: awoke.Message[bytes]) -> None:
        seen.add((SERVICE.get(), CUSTOMER.get(), NUMBERS.get()))
        SERVICE.set("changed")
        CUSTOMER.set("changed")

    async def handle_async(message: awoke.Message[bytes]) -> None:
        handle(message)

    case.app.on(case.name)(handle_async if is_async else handle)
    send(cluster, case.name, list(VALUES))
    token = SERVICE.set("shop")
    try:
        with running(case.app):
            seen.wait_for(len(VALUES), WITHIN_S)
    finally:
        SERVICE.reset(token)
    assert seen.items == [("shop", "of the start", [1])] * (len(VALUES) + 1)
    assert CUSTOMER.get() is None, "nor does it leave the app"


def test_no_call_sees_the_variables_of_another(cluster: Cluster) -> None:
    app = awoke.App("calls", bootstrap_servers=cluster.bootstrap_servers, kafka=cluster.properties)
    app.rpc.options(threads=1, tasks=1)

    def seen() -> str | None:
        found = CUSTOMER.get()
        CUSTOMER.set("another")
        return found

    async def seen_async() -> str | None:
        return seen()

    def stream() -> Iterator[str | None]:
        for _ in range(2):
            yield CUSTOMER.get()
            CUSTOMER.set("another")

    app.rpc.method(seen)
    app.rpc.method(seen_async)
    app.rpc.method(stream)
    with calling(app) as caller:
        assert [caller.call(name) for name in ("seen", "seen_async") * 3] == [None] * 6
        assert [list(caller.stream("stream")) for _ in range(2)] == [[None, "another"]] * 2


def test_an_async_handler_with_a_value_that_cannot_be_compared_is_isolated_too(
    cluster: Cluster, topic: CreateTopic
) -> None:
    class Array:
        def __eq__(self, other: object) -> bool:
            raise ValueError("the truth value is ambiguous")

        __hash__ = None  # type: ignore[assignment]

    variable: ContextVar[Any] = ContextVar("array")
    case, found = Case(cluster, topic), Collected[Any]()

    @case.app.on(case.name)
    async def handle(message: awoke.Message[bytes]) -> None:
        found.add(variable.get())
        variable.set(Array())

    first = Array()
    send(cluster, case.name, list(VALUES))
    token = variable.set(first)
    try:
        with running(case.app):
            assert all(each is first for each in found.wait_for(len(VALUES), WITHIN_S))
    finally:
        variable.reset(token)


def test_what_is_told_of_a_failure_is_told_in_the_context_of_its_message(cluster: Cluster, topic: CreateTopic) -> None:
    case, told = Case(cluster, topic), Collected[Any]()
    case.app.events.subscribe(JobFailed, lambda event: told.add((event.offset, CUSTOMER.get())))

    @case.app.on(case.name, retry=awoke.Retry(attempts=1, on_exhausted="skip"))
    def handle(message: awoke.Message[bytes]) -> None:
        CUSTOMER.set(message.value.decode())
        raise ValueError("no good")

    send(cluster, case.name, list(VALUES))
    with running(case.app):
        told.wait_for(len(VALUES), WITHIN_S)
    assert told.items == [(place, value.decode()) for place, value in enumerate(VALUES)]


def test_a_callback_of_a_delivery_runs_in_the_context_of_its_message(cluster: Cluster, topic: CreateTopic) -> None:
    case, told = Case(cluster, topic), Collected[Any]()

    def delivered(handle: Any) -> None:
        told.add(CUSTOMER.get())
        CUSTOMER.set("of a callback")

    @case.app.on(case.name)
    def handle(message: awoke.Message[bytes]) -> None:
        CUSTOMER.set(message.value.decode())
        case.app.producer.produce(case.output, b"x").add_done_callback(delivered)

    send(cluster, case.name, list(VALUES))
    with running(case.app):
        assert sorted(told.wait_for(len(VALUES), WITHIN_S)) == [value.decode() for value in VALUES]


def test_a_route_without_brokers_keeps_its_messages_apart_too() -> None:
    app, found = awoke.App("shop"), list[Any]()

    @app.on("orders")
    async def handle(message: awoke.Message[bytes]) -> None:
        found.append(CUSTOMER.get())
        CUSTOMER.set("another")

    run_route(app, "orders", list(VALUES))
    assert found == [None] * len(VALUES)


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_structlog_opentelemetry_django_and_decimal_begin_anew_for_each_message(
    cluster: Cluster, topic: CreateTopic, *, is_async: bool
) -> None:
    if not django_settings.configured:
        django_settings.configure(USE_I18N=True)
    case, seen = Case(cluster, topic), Collected[Any]()

    def handle(message: awoke.Message[bytes]) -> None:
        bound = structlog.contextvars.get_contextvars()
        customer = baggage.get_baggage("customer")
        seen.add((bound, customer, translation.get_language(), decimal.getcontext().prec))
        context.attach(baggage.set_baggage("customer", "another"))
        structlog.contextvars.bind_contextvars(customer=message.value)
        translation.activate("de")
        decimal.getcontext().prec = 5

    async def handle_async(message: awoke.Message[bytes]) -> None:
        handle(message)

    case.app.on(case.name)(handle_async if is_async else handle)
    send(cluster, case.name, list(VALUES))
    decimal.getcontext()  # This thread's own, which no message may change.
    structlog.contextvars.bind_contextvars(service="shop")
    try:
        with running(case.app):
            found = seen.wait_for(len(VALUES), WITHIN_S)
    finally:
        structlog.contextvars.clear_contextvars()
    assert found == [({"service": "shop"}, None, "en-us", 28)] * len(VALUES)
    assert decimal.getcontext().prec == 28


class Tenant(Format):
    """A format that reads for the customer of the message: what middleware has set is there."""

    def encode(self, value: Any) -> bytes:
        return f"{CUSTOMER.get()} {value}".encode()

    def decode(self, data: bytes) -> Any:
        return f"{CUSTOMER.get()} {data.decode()}"


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_a_format_sees_the_variables_of_its_message(cluster: Cluster, topic: CreateTopic, *, is_async: bool) -> None:
    name, out, seen = topic(), topic("out"), Collected[Any]()
    app = new_app(cluster, format=Tenant())

    @app.incoming
    async def around(message: Any, call_next: Any) -> Any:
        CUSTOMER.set(f"customer {message.offset}")
        return await call_next(message)

    def handle(message: awoke.Message[Any]) -> tuple[int]:
        seen.add(message.value)
        return (7,)

    async def handle_async(message: awoke.Message[Any]) -> tuple[int]:
        return handle(message)

    app.on(name, value=Tenant(), output=out)(handle_async if is_async else handle)
    send(cluster, name, [b"a", b"b"])
    with running(app):
        assert seen.wait_for(2, WITHIN_S) == ["customer 0 a", "customer 1 b"]
    assert [message.value for message in read_all(cluster, out)] == [b"customer 0 (7,)", b"customer 1 (7,)"]
