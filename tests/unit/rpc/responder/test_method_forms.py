"""The formats of a method: by options, by annotations, and what contradicts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.rpc import Internal, InvalidArgument
from awoke.rpc.responder.method_forms import MethodForms
from awoke.rpc.responder.methods import Method, Rpc
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Line, Note


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
