"""The call of a handler with its arguments: looked up once or for each call, and closed behind it."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest

import awoke
from awoke.declare.injection import Assignment, Depends, Header, Value
from awoke.declare.injection.binding import bind, is_constant
from awoke.declare.injection.parameters import in_order, parameters_of
from awoke.settings import Settings
from awoke.waiting.drive import run_now
from tests.unit.declare.injection.fakes import WHERE, FakeAssignments, FakeMessage, app, parameters, process
from tests.unit.runtime.fakes import KINDS

Tenant = Annotated[str, Header("tenant")]

said: list[Any] = []


@pytest.fixture(autouse=True)
def quiet() -> None:
    said.clear()


class Call:
    """The call of a handler, which is run on an event loop where it is async."""

    def __init__(self, function: Callable[..., Any], assignments: FakeAssignments | None = None) -> None:
        read = parameters_of(function, sys._getframe(1), WHERE)
        self.function, self.is_async = function, inspect.iscoroutinefunction(function)
        self.assignments, self.app = assignments or FakeAssignments(), app()
        self.process = process(self.app)
        for each in in_order(read.by_name):
            if each.scope in ("app", "process"):
                run_now(self.process.make(each), each.name)
        self.call = bind(read, self.process, self.assignments, is_async=self.is_async)

    def __call__(self, received: Any = None) -> Any:
        result = self.call(self.function, FakeMessage(headers=[("tenant", b"acme")]) if received is None else received)
        return asyncio.run(result) if self.is_async else result


def of_kind(function: Callable[..., Any], is_async: bool) -> Any:
    """Returns a handler that notes its arguments and returns them, as a `def` or as an `async def`."""

    async def handle(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    handle.__wrapped__ = function  # type: ignore[attr-defined]
    return handle if is_async else function


def session(tenant: Tenant) -> Iterator[str]:
    said.append("open")
    try:
        yield f"session of {tenant}"
    except BaseException as error:
        said.append(error)
        raise
    finally:
        said.append("close")


def plain(message: Any) -> Any:
    return message


def with_app(message: Any, producer: awoke.Producer, settings: Settings) -> Any:
    return message, producer, settings


def with_header(message: Any, tenant: Tenant) -> Any:
    return message, tenant


def with_headers(message: Any, tenant: Tenant, region: Annotated[str, Header("region")] = "eu") -> Any:
    return tenant, region


def with_both(message: Any, tenant: Tenant, producer: awoke.Producer) -> Any:
    return message, tenant, producer


def of_value(value: Value[bytes], tenant: Tenant) -> Any:
    return value, tenant


def of_app(producer: awoke.Producer) -> Any:
    return producer


@KINDS
def test_a_handler_gets_what_its_annotations_say(is_async: bool) -> None:
    def call(function: Any, message: Any) -> tuple[Any, Any]:
        made = Call(of_kind(function, is_async))
        return made(message), made.app

    message = FakeMessage(headers=[("tenant", b"acme")])
    assert call(plain, message)[0] is message
    found, shop = call(with_app, message)
    assert found == (message, shop.producer, shop.settings)
    assert call(with_header, message)[0] == (message, "acme")
    assert call(with_headers, message)[0] == ("acme", "eu")
    found, shop = call(with_both, message)
    assert found == (message, "acme", shop.producer)
    assert call(of_value, message)[0] == (b"value", "acme")
    found, shop = call(of_app, message)
    assert found is shop.producer


def with_session(message: Any, it: Annotated[str, Depends(session)]) -> str:
    said.append("handle")
    return it


def in_reverse(message: Any, it: Annotated[str, Depends(session)], again: Annotated[str, Depends(session)]) -> Any:
    said.append("handle")
    return it, again


@KINDS
def test_a_function_is_called_for_each_call_and_closed_behind_it(is_async: bool) -> None:
    call = Call(of_kind(with_session, is_async))
    assert (call(), call(FakeMessage(headers=[("tenant", b"b")]))) == ("session of acme", "session of b")
    assert said == ["open", "handle", "close"] * 2


@KINDS
def test_two_parameters_of_one_function_share_its_value(is_async: bool) -> None:
    assert Call(of_kind(in_reverse, is_async))() == ("session of acme", "session of acme")
    assert said == ["open", "handle", "close"]


ERROR = ValueError("no good")


def fails(message: Any, it: Annotated[str, Depends(session)]) -> str:
    raise ERROR


def hides() -> Iterator[None]:
    try:
        yield
    except ValueError:
        said.append("hidden")


def fails_behind_one_that_hides(
    message: Any, a: Annotated[str, Depends(session)], b: Annotated[None, Depends(hides)]
) -> str:
    raise ERROR


@KINDS
@pytest.mark.parametrize(("function", "expected"), [(fails, []), (fails_behind_one_that_hides, ["hidden"])])
def test_an_error_of_the_handler_reaches_each_function_and_can_not_be_hidden(
    is_async: bool, function: Any, expected: list[str]
) -> None:
    with pytest.raises(ValueError, match="no good") as failed:
        Call(of_kind(function, is_async))()
    assert failed.value is ERROR
    assert said == ["open", *expected, ERROR, "close"]


def broken() -> Iterator[str]:
    yield "broken"
    said.append("broken")
    raise OSError("no connection")


def between(message: Any, a: Annotated[str, Depends(session)], b: Annotated[str, Depends(broken)]) -> None: ...


def broken_always() -> Iterator[str]:
    try:
        yield "broken"
    finally:
        raise OSError("no connection")


def fails_twice(message: Any, a: Annotated[str, Depends(session)], b: Annotated[str, Depends(broken_always)]) -> None:
    raise LookupError("no good")


@KINDS
def test_an_error_of_a_closing_is_the_failure_of_the_message(is_async: bool) -> None:
    with pytest.raises(OSError, match="no connection"):
        Call(of_kind(between, is_async))()
    assert said == ["open", "broken", "close"]


@KINDS
def test_an_error_of_a_closing_behind_an_error_is_a_note_of_that(is_async: bool) -> None:
    with pytest.raises(LookupError, match="no good") as failed:
        Call(of_kind(fails_twice, is_async))()
    assert failed.value.__notes__ == ["broken_always failed, too, while it was closed: OSError: no connection"]
    assert said == ["open", failed.value, "close"]


def refuses() -> str:
    raise ERROR


def never_called(message: Any, a: Annotated[str, Depends(session)], b: Annotated[str, Depends(refuses)]) -> None:
    said.append("handle")


@KINDS
def test_a_function_that_fails_closes_those_before_it_and_the_handler_is_not_called(is_async: bool) -> None:
    with pytest.raises(ValueError, match="no good"):
        Call(of_kind(never_called, is_async))()
    assert said == ["open", ERROR, "close"]


def of_nothing(message: Any, it: Annotated[None, Depends(lambda: None)]) -> Any:
    return it


def forgotten() -> Any:
    return later()


def of_forgotten(message: Any, it: Annotated[Any, Depends(forgotten)]) -> None:
    said.append("handle")


@KINDS
def test_a_function_may_return_nothing_and_no_coroutine(is_async: bool) -> None:
    assert Call(of_kind(of_nothing, is_async))() is None
    with pytest.raises(awoke.HandlerDidNotRun, match="forgotten returned a coroutine"):
        Call(of_kind(of_forgotten, is_async))()
    assert said == []


async def later() -> str:
    await asyncio.sleep(0)
    return "later"


async def connection(of: Annotated[str, Depends(later)]) -> AsyncIterator[str]:
    said.append(f"connect {of}")
    await asyncio.sleep(0)
    try:
        yield "connection"
    finally:
        await asyncio.sleep(0)
        said.append("disconnect")


def test_async_functions_are_awaited_between_the_others() -> None:
    async def handle(
        message: Any, a: Annotated[str, Depends(session)], b: Annotated[str, Depends(connection)]
    ) -> tuple[str, str]:
        return a, b

    assert Call(handle)() == ("session of acme", "connection")
    assert said == ["open", "connect later", "disconnect", "close"]


def test_a_task_that_is_cancelled_closes_what_it_has_opened() -> None:
    async def handle(message: Any, it: Annotated[str, Depends(connection)]) -> None:
        await asyncio.get_running_loop().create_future()

    call = Call(handle)

    async def run() -> None:
        task = asyncio.create_task(call.call(handle, FakeMessage()))
        while "connect later" not in said:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(run())
    assert said == ["connect later", "disconnect"]


def counted() -> int:
    said.append("made")
    return len(said)


def of_process(
    message: Any, a: Annotated[int, Depends(counted, scope="process")], b: Annotated[int, Depends(counted)]
) -> Any:
    return a, b


@KINDS
def test_a_value_of_the_process_is_not_made_again(is_async: bool) -> None:
    call = Call(of_kind(of_process, is_async))
    assert [call(), call()] == [(1, 2), (1, 3)]


def place(at: Assignment, tenant: Tenant) -> str:
    return f"{tenant} at {at.topic}[{at.partition}]"


def of_assignment(message: Any, it: Annotated[str, Depends(place)]) -> str:
    return it


def at_assignment(message: Any, at: Assignment) -> Assignment:
    return at


@KINDS
@pytest.mark.parametrize(
    ("function", "expected"), [(of_assignment, "acme at orders[0]"), (at_assignment, Assignment("orders", 0))]
)
def test_the_values_of_an_assignment_are_made_on_first_use(is_async: bool, function: Any, expected: Any) -> None:
    assignments = FakeAssignments()
    call = Call(of_kind(function, is_async), assignments)
    assert [call(), call()] == [expected, expected]
    assert assignments.times_made == 1


@KINDS
def test_a_handler_that_needs_no_assignment_has_none_made(is_async: bool) -> None:
    assignments = FakeAssignments()
    Call(of_kind(with_session, is_async), assignments)()
    assert assignments.times_made == 0


def test_values_of_an_assignment_that_wait_need_an_async_handler() -> None:
    class Waiting(FakeAssignments):
        async def made(self) -> Any:
            await asyncio.sleep(0)
            raise AssertionError("there is no event loop")

    with pytest.raises(awoke.HandlerDidNotRun, match="make that async def"):
        Call(at_assignment, Waiting())()


def test_what_the_app_gives_is_the_same_for_all_calls_and_the_rest_is_not() -> None:
    def handle(
        message: Any,
        producer: awoke.Producer,
        long: Annotated[int, Depends(counted, scope="process")],
        shared: Annotated[int, Depends(counted, scope="app")],
        tenant: Tenant,
        at: Assignment,
        short: Annotated[int, Depends(counted)],
    ) -> None: ...

    found = parameters(handle).by_name
    assert [each.name for each in found if is_constant(each)] == ["producer", "long", "shared"]
