"""Arguments and results of methods: read and written as their annotations say, as JSON or in a format."""

from __future__ import annotations

import functools
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.rpc import Internal, InvalidArgument
from awoke.rpc.responder.method_values import Arguments, MethodForms, check_result
from awoke.rpc.responder.methods import Method, Rpc
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Line, Note


class Money(msgspec.Struct):
    amount: float


class Plain: ...


class Article(pydantic.BaseModel):
    sku: str
    quantity: pydantic.PositiveInt = 1


def quote(sku: str, quantity: int = 1, price: Money | None = None) -> None: ...
def optional(note: str = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013
def anything(value) -> None: ...  # type: ignore[no-untyped-def]
def nothing() -> None: ...
def place(order: Article, orders: list[Article] = []) -> None: ...  # noqa: B006


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
        (place, b'[{"sku":"A1"}]', {"order": Article(sku="A1"), "orders": []}),
        (
            place,
            b'{"order":{"sku":"A"},"orders":[{"sku":"B"}]}',
            {"order": Article(sku="A"), "orders": [Article(sku="B")]},
        ),
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
    [(Money, False), (Any, False), (None, False), (Iterator[Money], True), (AsyncIterator[Article], True), (Any, True)],
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


class Order(msgspec.Struct):
    id: int


class Price(msgspec.Struct):
    amount: float


ORDERS, PRICES = awoke.msgpack(Order), awoke.msgpack(Price)


def by_options(order: Order) -> Price:
    return Price(order.id)


def by_nothing(order):  # type: ignore[no-untyped-def]
    return Price(order.id)


def by_annotations(order: Annotated[Order, ORDERS]) -> Annotated[Price, PRICES]:
    return Price(order.id)


def several(order: Annotated[Order, ORDERS]) -> Iterator[Annotated[Price, PRICES]]:
    yield Price(order.id)


def of_protobuf(line: Line) -> Line:
    return line


def two(order: Order, quantity: int) -> Price:
    return Price(order.id * quantity)


def two_of_protobuf(line: Line, quantity: int) -> None: ...
def none() -> None: ...


def method_of(function: Any, **options: Any) -> Method:
    rpc = Rpc("shop")
    rpc.method(**options)(function)
    rpc.prepare(KnownSchemas())
    return rpc.methods[function.__name__]


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (by_options, {"argument": ORDERS, "returns": PRICES}),
        (by_nothing, {"argument": ORDERS, "returns": PRICES}),
        (by_annotations, {}),
        (several, {}),
    ],
)
def test_formats_are_said_by_options_or_by_annotations(function: Any, options: Any) -> None:
    method = method_of(function, **options)
    assert (method.argument_form, method.result_form) == (ORDERS, PRICES)
    assert method.arguments(b"\x81\xa2id\x07") == {"order": Order(7)}
    assert method.written(Price(2)) == msgspec.msgpack.encode(Price(2))


def test_an_option_goes_before_an_annotation() -> None:
    method = method_of(by_annotations, argument=awoke.json_schema(Order))
    assert (method.describe()["argument_format"], method.result_form) == ("JsonSchema", PRICES)


def test_a_class_of_protobuf_s_is_a_format_by_itself() -> None:
    method = method_of(of_protobuf)
    assert (method.argument_form, method.result_form) == (Line, Line)
    assert method.arguments(b"\n\x01a") == {"line": Line(sku="a")}
    assert method.written(Line(sku="a")) == b"\n\x01a"


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (two, {"argument": ORDERS}, "argument= is the format of the only parameter, and there are 2"),
        (none, {"argument": ORDERS}, "argument= is the format of the only parameter, and there are 0"),
        (two_of_protobuf, {}, r"'line' is in a format \(Protobuf\): it must be the only parameter"),
        (by_options, {"argument": PRICES}, "argument= is a format of .*Price.*, and the annotation says .*Order"),
        (by_options, {"returns": ORDERS}, "returns= is a format of .*Order.*, and the annotation says .*Price"),
        (of_protobuf, {"argument": Note}, "argument= is a format of .*Note.*, and the annotation says .*Line"),
        (by_options, {"argument": Order}, "argument=.* is no format"),
        (by_options, {"returns": Order}, "returns=.* is no format"),
    ],
)
def test_a_format_that_does_not_fit_is_refused_where_it_is_written(function: Any, options: Any, words: str) -> None:
    with pytest.raises(awoke.ConfigError, match=words):
        Rpc("shop").method(**options)(function)


def test_wrong_bytes_are_a_wrong_argument() -> None:
    with pytest.raises(InvalidArgument, match="by_annotations: it can't be read as MessagePack: ") as caught:
        method_of(by_annotations).arguments(b'{"id": 7}')
    assert caught.value.details == {"method": "by_annotations"}


def test_a_result_that_does_not_fit_is_an_error_of_the_method() -> None:
    method = method_of(by_annotations)
    with pytest.raises(Internal, match="the result can't be written as MessagePack: a value of type object"):
        method.written(object())
    with pytest.raises(Internal, match="None is no MessagePack"):
        method.written(None)

    async def late() -> None: ...

    coroutine = late()
    with pytest.raises(awoke.HandlerDidNotRun):
        method.written(coroutine)
    coroutine.close()


def test_schemas_are_those_of_the_method_s_place() -> None:
    schemas = KnownSchemas()
    forms = MethodForms("price", awoke.avro(Order), awoke.avro(Price))
    forms.prepare({"order": Order}, Price)
    forms.open("shop", schemas)
    assert forms.write(Price(1))[:5] == b"\0\0\0\0\1"
    forms.check_loaded()
    assert set(schemas.subjects) == {"shop.rpc.replies.price-value"}


def test_it_is_known_before_a_result_if_its_schema_is_loaded() -> None:
    class Missing(KnownSchemas):
        def for_writing(self, *wanted: Any) -> Any:
            raise SchemaNeeded("not yet", lambda: None)

    forms = MethodForms("price", None, awoke.avro(Price))
    forms.prepare({}, Price)
    forms.open("shop", Missing())
    with pytest.raises(SchemaNeeded):
        forms.check_loaded()
    assert Schemas.none().counters() == {}


def test_a_result_without_a_format_is_json() -> None:
    def quote() -> object: ...

    async def later() -> int:
        return 1

    method = Method(quote, "quote", False, None, None, None)
    assert method.written({"amount": 7}) == b'{"amount":7}'
    with pytest.raises(Internal, match="the result can't be written as JSON"):
        method.written(object())
    with pytest.raises(awoke.HandlerDidNotRun, match="quote"):
        method.written(later())
