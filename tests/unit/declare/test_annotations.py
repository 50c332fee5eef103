"""The type of a route's values, as the annotation of its handler says it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pytest

import awoke
from awoke import Batch, Message
from awoke.declare.annotations import contradicts
from tests.support.formats import value_decoder

if TYPE_CHECKING:
    from tests.unit.payloads.formats.test_format import Order as OnlyForCheckers

Value = TypeVar("Value")


class Order(msgspec.Struct):
    id: int


class Refund(msgspec.Struct):
    id: int


class Rush(Order):
    until: str


def decode(function: Any, raw: bytes | None, **options: Any) -> Any:
    """Returns a value as a route of this handler decodes it."""
    app = awoke.App("app")
    (app.consumer if isinstance(function, type) else app.on)("orders", **options)(function)
    decoder = value_decoder(app.routes["orders"])
    return raw if decoder is None else decoder(raw)


def of_order(message: Message[Order]) -> None: ...
def of_awoke_order(message: awoke.Message[Order]) -> None: ...
def of_order_or_none(message: Message[Order | None]) -> None: ...
def of_annotated(message: Annotated[Message[Order], "checked"]) -> None: ...
def of_optional(message: Message[Order] | None = None) -> None: ...
def of_text(message: Message[str]) -> None: ...


async def of_order_async(message: Message[Order]) -> None: ...


class Orders(awoke.Consumer):
    def consume(self, batch: Batch[Order]) -> None: ...


class Handlers:
    def handle(self, message: Message[Order]) -> None: ...
    def __call__(self, message: Message[Order]) -> None: ...


def test_a_value_type_is_taken_from_the_annotation() -> None:
    handlers: list[Any] = [
        of_order,
        of_awoke_order,
        of_order_or_none,
        of_annotated,
        of_optional,
        of_order_async,
        Orders,
        Handlers().handle,
        Handlers(),
    ]
    assert [decode(each, b'{"id": 7}') for each in handlers] == [Order(7)] * len(handlers)
    assert decode(of_order_or_none, None) is None
    assert decode(of_text, b"text") == "text"


def without_annotation(message): ...  # type: ignore[no-untyped-def]
def of_nothing(message: Message) -> None: ...  # type: ignore[type-arg]
def of_any(message: Message[Any]) -> None: ...
def of_object(message: Message[object]) -> None: ...
def of_bytes(message: Message[bytes]) -> None: ...
def of_bytes_or_none(message: Message[bytes | None]) -> None: ...
def of_variable(message: Message[Value]) -> None: ...
def of_anything(message: Any) -> None: ...
def of_unknown(message: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


class OfVariable(awoke.Consumer, Generic[Value]):
    def consume(self, batch: Batch[Value]) -> None: ...


UNTYPED = [
    without_annotation,
    of_nothing,
    of_any,
    of_object,
    of_bytes,
    of_bytes_or_none,
    of_variable,
    of_anything,
    of_unknown,
    OfVariable,
    print,
]


@pytest.mark.parametrize("handler", UNTYPED)
def test_values_are_bytes_where_neither_says_a_type(handler: Any) -> None:
    assert decode(handler, b"no json") == b"no json"
    assert decode(handler, None) is None


@pytest.mark.parametrize("handler", [each for each in UNTYPED if each not in (of_bytes, of_bytes_or_none)])
def test_a_type_of_the_route_needs_no_annotation(handler: Any) -> None:
    assert decode(handler, b'{"id": 7}', value=Order) == Order(7)


@pytest.mark.parametrize(
    ("handler", "value"),
    [
        (of_order, Refund),
        (of_order, Order | None),  # The handler does not expect the None of a tombstone.
        (of_order, bytes),
        (of_order, Order | Refund),
        (of_bytes, Order),
        (of_bytes_or_none, str),
        (of_text, bytes),
        (Orders, Refund),
    ],
)
def test_an_annotation_that_contradicts_the_route_is_refused(handler: Any, value: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="contradicts the annotation of") as refused:
        decode(handler, b"", value=value)
    assert refused.value.property == "value"


@pytest.mark.parametrize(
    ("handler", "value"),
    [(of_order, Order), (of_order, Rush), (of_order_or_none, Order), (of_order_or_none, Order | None), (of_order, Any)],
)
def test_an_annotation_that_takes_the_routes_values_is_right(handler: Any, value: Any) -> None:
    decode(handler, b'{"id": 7, "until": "noon"}', value=value)


def of_type_for_checkers(message: awoke.Message[OnlyForCheckers]) -> None: ...


def test_a_name_that_can_not_be_resolved_needs_a_type_of_the_route() -> None:
    assert decode(of_type_for_checkers, b'{"id": 7}', value=Order) == Order(7)
    with pytest.raises(awoke.ConfigError, match=r"can't be resolved \(name 'OnlyForCheckers'.*value="):
        decode(of_type_for_checkers, b"")


def test_a_class_of_the_function_around_the_handler_is_found() -> None:
    class Local(msgspec.Struct):
        id: int

    app = awoke.App("app")

    @app.on("orders")
    def handle(message: awoke.Message[Local]) -> None: ...

    decoder: Any = value_decoder(app.routes["orders"])
    assert decoder(b'{"id": 7}') == Local(7)


def test_a_route_keeps_nothing_of_the_function_around_the_handler() -> None:
    class Kept:
        """Something that is to be freed."""

    app, kept = awoke.App("app"), Kept()

    @app.on("orders")
    def handle(message: awoke.Message[Order]) -> None: ...

    freed = weakref.ref(kept)
    del kept
    assert freed() is None


def test_annotations_that_are_no_text_say_the_same() -> None:
    def handle(message): ...  # type: ignore[no-untyped-def]

    handle.__annotations__["message"] = Message[Order]
    assert decode(handle, b'{"id": 7}') == Order(7)
    handle.__annotations__["message"] = Message["Order"]
    assert decode(handle, b'{"id": 7}') == Order(7)


@pytest.mark.parametrize(
    ("value", "annotated", "expected"),
    [
        (int, float, False),
        (float, int, True),
        (bool, int, False),
        (list[Order], Sequence[Order], False),
        (list[Order], list[Refund], True),
        (list[Order], list, False),
        (dict[str, int], dict[str, Any], False),
        (dict[str, int], dict[str, str], True),
        (Literal["a", "b"], str, False),
        (Literal["a", 1], str, True),
        (Annotated[int, "positive"], int, False),
        (None, Order | None, False),
        (Order, Value, False),
        (Order, Any, False),
    ],
)
def test_types_contradict_each_other(value: Any, annotated: Any, expected: bool) -> None:
    assert contradicts(value, annotated) is expected
