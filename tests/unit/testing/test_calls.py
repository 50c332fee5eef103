"""One handler, or one method, is called without brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke import testing
from awoke.rpc import InvalidArgument


class Order(msgspec.Struct):
    id: int


@pytest.fixture
def app() -> awoke.App:
    return awoke.App("shop")


def test_a_handler_gets_the_decoded_message_and_its_result_is_returned(app: awoke.App) -> None:
    @app.on("orders", value=Order, output="receipts")
    def charge(message: awoke.Message[Order]) -> tuple[str, int, int]:
        return message.topic, message.value.id, message.attempt

    assert testing.call(charge, testing.message(Order(4), attempt=3)) == ("orders", 4, 3)
    assert testing.call(charge, Order(5)) == ("orders", 5, 1)


def test_an_error_of_a_handler_is_raised_as_it_is(app: awoke.App) -> None:
    error = ValueError("no money")

    @app.on("orders")
    def charge(message: awoke.Message[Any]) -> None:
        raise error

    with pytest.raises(ValueError, match="no money") as raised:
        testing.call(charge, b"")
    assert raised.value is error


def test_a_value_that_does_not_decode_is_awokes_error(app: awoke.App) -> None:
    called = []

    @app.on("orders", value=Order)
    def charge(message: awoke.Message[Order]) -> None:
        called.append(message)

    with pytest.raises(awoke.DecodeError, match=r"orders\[0\] offset 9: the value does not decode"):
        testing.call(charge, testing.message(b"junk", offset=9))
    assert called == []


def test_an_app_calls_the_route_of_the_messages_topic(app: awoke.App) -> None:
    app.on("a", output="out")(lambda message: "of a")
    app.on("b", output="out")(lambda message: "of b")
    assert testing.call(app, testing.message(b"", topic="b")) == "of b"
    with pytest.raises(awoke.ConfigError, match="it reads: a, b"):
        testing.call(app, testing.message(b"", topic="c"))


def test_an_app_with_one_topic_needs_no_topic(app: awoke.App) -> None:
    app.on("orders", output="out")(lambda message: message.topic)
    assert testing.call(app, b"") == "orders"


def test_a_route_of_a_pattern_is_found_by_a_topic_that_matches(app: awoke.App) -> None:
    app.on(awoke.pattern(r"eu\..*"), output="out")(lambda message: message.topic)
    assert testing.call(app, testing.message(b"", topic="eu.orders")) == "eu.orders"


def test_arguments_are_made_and_closed_and_overrides_count(app: awoke.App) -> None:
    closed = []

    def bank() -> Iterator[str]:
        yield "the bank"
        closed.append("bank")

    @app.on("orders", output="out")
    def charge(
        message: awoke.Message[Any],
        bank: Annotated[str, awoke.Depends(bank)],
        user: Annotated[str, awoke.Header("user")],
    ) -> str:
        return f"{bank} for {user}"

    given = testing.message(b"", headers={"user": "Ann"})
    assert testing.call(charge, given) == "the bank for Ann"
    assert closed == ["bank"]
    with app.override(bank, lambda: "another"):
        assert testing.call(charge, given) == "another for Ann"


def test_arguments_of_process_and_assignment_are_closed_after_the_call(app: awoke.App) -> None:
    steps = []

    def process() -> Iterator[str]:
        steps.append("process")
        yield "p"
        steps.append("process closed")

    def assignment() -> Iterator[str]:
        steps.append("assignment")
        yield "a"
        steps.append("assignment closed")

    @app.on("orders", output="out")
    def charge(
        message: awoke.Message[Any],
        one: Annotated[str, awoke.Depends(process, scope="process")],
        two: Annotated[str, awoke.Depends(assignment, scope="assignment")],
    ) -> str:
        return one + two

    assert testing.call(charge, b"") == "pa"
    assert steps == ["process", "assignment", "assignment closed", "process closed"]


def test_middleware_is_around_the_call(app: awoke.App) -> None:
    @app.incoming
    def twice(message, call_next):  # type: ignore[no-untyped-def]
        return [call_next(message), call_next(message)]

    app.on("orders", output="out")(lambda message: message.value)
    assert testing.call(app, b"x") == [b"x", b"x"]


def test_an_async_handler_runs_on_a_loop_of_its_own_or_on_the_running_one(app: awoke.App) -> None:
    @app.on("orders", output="out")
    async def charge(message: awoke.Message[Order]) -> AsyncIterator[int]:
        await asyncio.sleep(0)
        yield message.value.id
        yield id(asyncio.get_running_loop())

    assert testing.call(charge, Order(1))[0] == 1

    async def within() -> None:
        assert await testing.acall(charge, Order(2)) == [2, id(asyncio.get_running_loop())]
        with pytest.raises(awoke.ConfigError, match="on this thread: await"):
            testing.call(charge, Order(3))

    asyncio.run(within())


def test_a_class_is_assigned_called_and_revoked(app: awoke.App) -> None:
    steps = []

    @app.consumer("clicks")
    class Clicks(awoke.Consumer):
        def assigned(self) -> None:
            self.background(lambda stop: steps.append(f"background ended: {stop.wait()}"))
            steps.append(f"assigned {self.topic}[{self.partition}]")

        def consume(self, batch: awoke.Batch[Order]) -> None:
            steps.append(f"got {[each.id for each in batch.values()]}")
            self.mark(batch[0])
            self.commit()

        def revoked(self) -> None:
            steps.append("revoked")

    messages = [
        testing.message(Order(1), partition=2, topic="clicks"),
        testing.message(Order(2), partition=2, topic="clicks"),
    ]
    testing.call(Clicks, testing.batch(messages))
    assert steps == ["assigned clicks[2]", "got [1, 2]", "revoked", "background ended: True"]


def test_an_error_of_a_class_is_raised_and_its_threads_end(app: awoke.App) -> None:
    ended = []

    @app.consumer("clicks")
    class Clicks(awoke.Consumer):
        def assigned(self) -> None:
            self.background(lambda stop: ended.append(stop.wait()))

        def consume(self, batch: awoke.Batch[Any]) -> None:
            raise KeyError(batch[0].offset)

    with pytest.raises(KeyError, match="0"):
        testing.call(Clicks, b"x")
    assert ended == [True]


def test_several_messages_for_a_function_are_refused(app: awoke.App) -> None:
    app.on("orders")(lambda message: None)
    with pytest.raises(awoke.ConfigError, match="takes one message"):
        testing.call(app, testing.batch([b"a", b"b"]))


def test_what_a_handler_sends_needs_no_broker(app: awoke.App) -> None:
    @app.on("orders")
    def charge(message: awoke.Message[Any]) -> None:
        assert app.producer.produce("audit", {"a": 1}).wait().topic == "audit"
        assert app.producer.flush()

    testing.call(charge, b"")


def test_a_handler_of_no_app_runs_in_one_of_its_own() -> None:
    def charge(message: awoke.Message[Order]) -> None:
        raise LookupError(message.value.id)

    with pytest.raises(LookupError, match="4"):
        testing.call(charge, Order(4))


def test_a_handler_of_several_apps_needs_the_app(app: awoke.App) -> None:
    def charge(message: awoke.Message[Any], app: awoke.App) -> str:
        return app.name

    other = awoke.App("other")
    for each in (app, other):
        each.on("orders", output="out")(charge)
    with pytest.raises(awoke.ConfigError, match="'other', 'shop': say app="):
        testing.call(charge, b"")
    assert testing.call(charge, b"", app=other) == "other"
    with pytest.raises(awoke.ConfigError, match="has no handler"):
        testing.call(charge, b"", app=awoke.App("third"))


def test_a_method_gets_checked_arguments_and_its_result_is_checked(app: awoke.App) -> None:
    @app.rpc.method
    def quote(sku: str, quantity: int = 1) -> Order:
        return Order(quantity)

    @app.rpc.method
    def broken() -> object:
        return object()

    @app.rpc.method
    def lines(until: int) -> Iterator[int]:
        yield from range(until)

    assert testing.call(quote, sku="A1", quantity=3) == Order(3)
    assert testing.call(lines, until=3) == [0, 1, 2]
    with pytest.raises(InvalidArgument, match=r"\$\.sku"):
        testing.call(quote, sku=3)
    with pytest.raises(awoke.AwokeError, match="can't be written as JSON"):
        testing.call(broken)


def test_arguments_of_a_method_for_a_handler_are_refused(app: awoke.App) -> None:
    app.on("orders")(lambda message: None)
    with pytest.raises(awoke.ConfigError, match="takes a message, not"):
        testing.call(app, b"", sku="A1")
