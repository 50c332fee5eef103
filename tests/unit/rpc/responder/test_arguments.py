"""The arguments of a method, as the annotations of its parameters say."""

from __future__ import annotations

import functools
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pydantic
import pytest

from awoke.rpc.responder.arguments import Arguments, check_result


class Money(msgspec.Struct):
    amount: float


class Plain: ...


class Order(pydantic.BaseModel):
    sku: str
    quantity: pydantic.PositiveInt = 1


def quote(sku: str, quantity: int = 1, price: Money | None = None) -> None: ...
def optional(note: str = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013
def anything(value) -> None: ...  # type: ignore[no-untyped-def]
def nothing() -> None: ...
def place(order: Order, orders: list[Order] = []) -> None: ...  # noqa: B006


def read(function: Callable[..., Any], body: bytes) -> dict[str, Any]:
    return Arguments(function, typing.get_type_hints(function)).read(body)


@pytest.mark.parametrize(
    ("function", "body", "arguments"),
    [
        (quote, b'{"sku":"A1"}', {"sku": "A1", "quantity": 1, "price": None}),
        (quote, b'["A1",2,{"amount":3}]', {"sku": "A1", "quantity": 2, "price": Money(3.0)}),
        (quote, b'{"price":{"amount":3},"sku":"A1"}', {"sku": "A1", "quantity": 1, "price": Money(3.0)}),
        (optional, b'{"note":null}', {"note": None}),
        (anything, b'[{"a":[1]}]', {"value": {"a": [1]}}),
        (nothing, b"", {}),
        (nothing, b"[]", {}),
        (nothing, b"{}", {}),
        (place, b'[{"sku":"A1"}]', {"order": Order(sku="A1"), "orders": []}),
        (place, b'{"order":{"sku":"A"},"orders":[{"sku":"B"}]}', {"order": Order(sku="A"), "orders": [Order(sku="B")]}),
    ],
)
def test_arguments_come_by_name_or_in_order(function: Any, body: bytes, arguments: dict[str, Any]) -> None:
    assert read(function, body) == arguments


@pytest.mark.parametrize(
    ("function", "body", "text"),
    [
        (quote, b"{}", "required field `sku`"),
        (quote, b'{"sku":1}', "Expected `str`"),
        (quote, b'{"sku":"A","color":"red"}', "unknown field `color`"),
        (quote, b'["A",1,null,4]', "takes 3 arguments, 4 were given"),
        (quote, b'{"sku":"A","price":{"amount":"x"}}', r"\$.price.amount"),
        (quote, b"{", "truncated"),
        (place, b'{"order":{"sku":"A","quantity":0}}', r"\$\.order\.quantity"),
    ],
)
def test_an_argument_that_is_wrong_is_named(function: Any, body: bytes, text: str) -> None:
    with pytest.raises(msgspec.MsgspecError, match=text):
        read(function, body)


def unreadable(value: Callable[[], None]) -> None: ...


def test_a_parameter_that_can_not_be_read_is_refused_before_any_call() -> None:
    with pytest.raises(TypeError):
        Arguments(unreadable, typing.get_type_hints(unreadable))


@pytest.mark.parametrize(
    ("result", "is_stream"),
    [(Money, False), (Any, False), (None, False), (Iterator[Money], True), (AsyncIterator[Order], True), (Any, True)],
)
def test_results_that_json_can_hold_are_accepted(result: Any, is_stream: bool) -> None:
    check_result(quote, result, is_stream)


@pytest.mark.parametrize(
    ("result", "is_stream"), [(Plain, False), (list[Plain] | None, False), (Iterator[Plain], True)]
)
def test_results_that_json_can_not_hold_are_refused(result: Any, is_stream: bool) -> None:
    with pytest.raises(TypeError):
        check_result(quote, result, is_stream)


def test_the_results_of_a_decorated_function_are_not_known() -> None:
    decorated = functools.wraps(quote)(lambda: None)
    check_result(decorated, Plain, False)
