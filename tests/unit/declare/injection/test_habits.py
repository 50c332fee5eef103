"""Handlers written as users of FastAPI and FastStream write them: they get what is meant."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.testing import call, run_route


class Order(msgspec.Struct):
    id: int


def session() -> str:
    return "a session"


def new_app() -> awoke.App:
    return awoke.App("habits")


def passed_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return wrapper


def of_value(order: Order) -> object:
    return order


def of_value_or_tombstone(order: Order | None) -> object:
    return order


async def of_value_async(order: Order) -> object:
    return order


@pytest.mark.parametrize("handler", [of_value, of_value_or_tombstone, of_value_async, passed_on(of_value)])
def test_a_parameter_of_the_type_of_the_value_gets_the_value(handler: Any) -> None:
    app = new_app()
    app.on("orders")(handler)
    assert app.routes["orders"].types[0] in (Order, Order | None)
    assert call(handler, Order(1), app=app) == Order(1)


@pytest.mark.parametrize(("kind", "value"), [(bytes, b"x"), (str, "x"), (int, 1), (dict[str, int], {"id": 1})])
def test_a_plain_type_is_a_value_too(kind: Any, value: object) -> None:
    def handle(value: Any) -> object:
        return value

    handle.__annotations__["value"] = kind
    app = new_app()
    app.on("orders")(handle)
    assert call(handle, value, app=app) == value


@pytest.mark.parametrize("annotation", [Any, object, awoke.Message, awoke.Message[Order], None])
def test_what_says_no_value_gets_the_message(annotation: Any) -> None:
    def handle(message: Any) -> object:
        return message.offset

    if annotation is None:
        del handle.__annotations__["message"]
    else:
        handle.__annotations__["message"] = annotation
    app = new_app()
    app.on("orders", value=Order)(handle)
    assert call(handle, Order(1), app=app) == 0


def test_a_value_that_contradicts_the_route_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match=r"value=int contradicts the annotation of of_value, which takes Order"):
        new_app().on("orders", value=int)(of_value)


def test_a_mark_may_be_the_default_of_a_parameter() -> None:
    def handle(
        order: Order, tenant: int = awoke.Header("tenant"), session: str = awoke.Depends(session)
    ) -> tuple[object, ...]:
        return order, tenant, session

    app = new_app()
    app.on("orders")(handle)
    message = awoke.testing.message(b'{"id": 1}', headers={"tenant": b"7"})
    assert call(handle, message, app=app) == (Order(1), 7, "a session")


@pytest.mark.parametrize(("kind", "result"), [(int, "5"), (int, b"5"), (Order, {"id": 1}), (int | None, 1.5)], ids=str)
def test_a_result_of_another_type_than_its_annotation_says_is_not_sent(kind: Any, result: object) -> None:
    app = new_app()

    def handle(message: awoke.Message[bytes]) -> Any:
        return result

    handle.__annotations__["return"] = kind
    app.on("orders", output="out", retry=awoke.Retry(attempts=1), dead_letter="dead")(handle)
    (failed,) = run_route(app, "orders", [b""]).failures
    assert isinstance(failed.error, awoke.EncodeError)
    assert f"returned a {type(result).__name__}, and its annotation says" in str(failed.error)


@pytest.mark.parametrize(("kind", "result"), [(int, 5), (float, 1), (Order, Order(1)), (str | None, "x"), (Any, "x")])
def test_a_result_of_its_annotated_type_is_sent(kind: Any, result: object) -> None:
    app = new_app()

    def handle(message: awoke.Message[bytes]) -> Any:
        return result

    handle.__annotations__["return"] = kind
    app.on("orders", output="out")(handle)
    assert len(run_route(app, "orders", [b""]).outputs) == 1


def test_a_method_is_refused_by_name() -> None:
    app = new_app()
    with pytest.raises(awoke.ConfigError, match=r"Shop.handle: is a method, whose 'self' would get the message"):

        class Shop:
            @app.on("orders")
            def handle(self, message: awoke.Message[bytes]) -> None: ...


def test_the_method_of_an_object_is_a_handler() -> None:
    class Shop:
        def handle(self, order: Order) -> object:
            return order

    app, shop = new_app(), Shop()
    app.on("orders")(shop.handle)
    assert app.routes["orders"].types[0] is Order


def test_the_mark_of_another_library_is_refused_by_name() -> None:
    import fastapi

    def by_default(message: Any, found: Any = fastapi.Depends(session)) -> None: ...  # noqa: B008
    def annotated(message: Any, found: Annotated[Any, fastapi.Depends(session)]) -> None: ...

    for handler in (by_default, annotated):
        with pytest.raises(awoke.ConfigError, match=r"'found': has the mark Depends of fastapi, .* use awoke.Depends"):
            new_app().on("orders")(handler)


def test_a_list_in_place_of_a_batch_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match=r"'orders' is annotated as list.*annotate awoke.Batch"):

        @new_app().consumer("orders")
        class Charge(awoke.Consumer):
            def consume(self, orders: list[Order]) -> None: ...
