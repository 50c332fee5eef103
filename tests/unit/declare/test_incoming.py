"""Middleware of incoming messages: what is refused, and in which order functions are called around a handler."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import awoke
from awoke.declare.incoming import around, check_incoming, check_suits
from awoke.waiting.drive import drive
from tests.unit.runtime.fakes import KINDS

said: list[Any] = []


@pytest.fixture(autouse=True)
def quiet() -> None:
    said.clear()


def plain(message: Any, call_next: Any) -> Any:
    said.append("plain")
    try:
        return call_next(message)
    finally:
        said.append("plain ends")


async def later(message: Any, call_next: Any) -> Any:
    said.append("later")
    try:
        return await call_next(message)
    finally:
        said.append("later ends")


def with_yield(message: Any, call_next: Any) -> Iterator[None]:
    yield


async def with_async_yield(message: Any, call_next: Any) -> AsyncIterator[None]:
    yield


def of_one(message: Any) -> None: ...
def of_three(message: Any, call_next: Any, more: Any) -> None: ...
def by_keyword(message: Any, *, call_next: Any) -> None: ...


@pytest.mark.parametrize(
    "function", [plain, later, functools.partial(of_three, more=1), lambda *all: None, lambda m, n, more=1: None]
)
def test_a_function_of_a_message_and_the_next_function_is_taken(function: Any) -> None:
    check_incoming(function, "app")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("text", "takes a function, not 'text'"),
        (with_yield, "with_yield has a yield; call the second argument instead"),
        (with_async_yield, "with_async_yield has a yield"),
        (of_one, "of_one is called with the message and the function that goes on with it: too many positional"),
        (of_three, "of_three is called with the message .*: missing a required argument: 'more'"),
        (by_keyword, "by_keyword is called with the message"),
    ],
)
def test_what_can_not_be_called_so_is_refused(function: Any, words: str) -> None:
    with pytest.raises(awoke.ConfigError, match=f"^@app.incoming: {words}") as refused:
        awoke.App("app").incoming(function)
    assert refused.value.property == "incoming"


def test_a_def_does_not_go_around_an_async_def() -> None:
    check_suits(plain, "app", "handle", is_async=False)
    check_suits(later, "app", "handle", is_async=False)
    check_suits(later, "app", "handle", is_async=True)
    with pytest.raises(
        awoke.ConfigError, match=r"^app: plain is def, and can't go around handle, which is async def; make it"
    ):
        check_suits(plain, "app", "handle", is_async=True)


async def handle(message: awoke.Message[bytes]) -> None: ...


class Async(awoke.Consumer):
    async def consume(self, batch: awoke.Batch[bytes]) -> None: ...


def test_a_def_around_an_async_def_is_refused_whichever_comes_first() -> None:
    before, behind, of_route, of_class = (awoke.App("app") for _ in range(4))
    before.incoming(plain)
    behind.on("orders")(handle)
    of_class.consumer("orders")(Async)
    words = "can't go around handle, which is async def"
    with pytest.raises(awoke.ConfigError, match=words):
        before.on("orders")(handle)
    with pytest.raises(awoke.ConfigError, match=words):
        behind.incoming(plain)
    with pytest.raises(awoke.ConfigError, match=words):
        of_route.on("orders", incoming=[plain])(handle)
    with pytest.raises(awoke.ConfigError, match="can't go around Async"):
        of_class.incoming_batch(plain)
    of_class.incoming(plain)
    behind.incoming_batch(plain)
    assert before.routes == {}


def result(message: Any, call: Any, *functions: Any, is_async: bool) -> Any:
    """Calls a handler with middleware around it."""

    async def handle(message: Any) -> Any:
        return call(message)

    found = around(functions, handle if is_async else call, is_async=is_async)(message)
    return asyncio.run(found) if is_async else found


def test_the_first_function_is_outermost() -> None:
    said_by: Any = lambda message: said.append(message)  # noqa: E731
    result("it", said_by, plain, later, plain, is_async=False)
    assert said == ["plain", "later", "plain", "it", "plain ends", "later ends", "plain ends"]
    said.clear()
    result("it", said_by, later, later, is_async=True)
    assert said == ["later", "later", "it", "later ends", "later ends"]


def test_without_middleware_a_handler_is_called_as_it_is() -> None:
    assert around([], handle, is_async=True) is handle


@KINDS
def test_a_function_may_change_the_message_and_the_result(is_async: bool) -> None:
    async def double(message: Any, call_next: Any) -> Any:
        return 2 * await call_next(message + 1)

    assert result(1, lambda message: message * 10, double, is_async=is_async) == 40


@KINDS
def test_a_function_that_does_not_go_on_ends_the_call(is_async: bool) -> None:
    async def stop(message: Any, call_next: Any) -> str:
        return "stopped"

    assert result("it", said.append, later, stop, later, is_async=is_async) == "stopped"
    assert said == ["later", "later ends"]


@KINDS
def test_an_exception_passes_each_function_which_may_answer_it(is_async: bool) -> None:
    def fail(message: Any) -> None:
        raise ValueError("no good")

    async def answer(message: Any, call_next: Any) -> Any:
        try:
            return await call_next(message)
        except ValueError as error:
            return str(error)

    with pytest.raises(ValueError, match="no good"):
        result("it", fail, later, is_async=is_async)
    assert said == ["later", "later ends"]
    assert result("it", fail, answer, later, is_async=is_async) == "no good"


@KINDS
def test_a_function_may_call_the_handler_again(is_async: bool) -> None:
    async def twice(message: Any, call_next: Any) -> Any:
        return [await call_next(message), await call_next(message)]

    assert result(1, lambda message: message, twice, is_async=is_async) == [1, 1]


def test_an_async_function_around_a_def_awaits_the_handler_only() -> None:
    async def wait(message: Any, call_next: Any) -> Any:
        await asyncio.sleep(0)
        return await call_next(message)

    assert result("it", lambda message: message, wait, is_async=True) == "it"
    with pytest.raises(awoke.HandlerDidNotRun, match="wait: awaits something around a def handler, which has no event"):
        result("it", said.append, wait, is_async=False)
    assert said == []


def test_objects_with_a_call_are_middleware_too() -> None:
    class Counter:
        count = 0

        async def __call__(self, message: Any, call_next: Any) -> Any:
            self.count += 1
            return await call_next(message)

    counter = Counter()
    check_incoming(counter, "app")
    assert [result("it", lambda message: message, counter, is_async=each) for each in (False, True)] == ["it", "it"]
    assert counter.count == 2


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_one_that_does_not_await_the_handler_fails_the_message(is_async: bool) -> None:
    ran: list[Any] = []

    async def forget(message: Any, call_next: Any) -> Any:
        call_next(message)

    async def handle_later(message: Any) -> None:
        ran.append(message)

    call = around([forget], handle_later if is_async else ran.append, is_async=is_async)
    with pytest.raises(awoke.HandlerDidNotRun, match=r"forget: has called call_next and not awaited it"):
        drive(call(1)) if is_async else call(1)
    assert ran == []


def test_one_may_call_the_handler_twice_or_not_at_all() -> None:
    ran: list[Any] = []

    async def handle(message: Any) -> int:
        ran.append(message)
        return len(ran)

    async def twice(message: Any, call_next: Any) -> Any:
        await call_next(message)
        return await call_next(message)

    async def never(message: Any, call_next: Any) -> Any:
        return "skipped"

    assert drive(around([twice], handle, is_async=True)(1)) == 2
    assert drive(around([never], handle, is_async=True)(1)) == "skipped"
    assert ran == [1, 1]
