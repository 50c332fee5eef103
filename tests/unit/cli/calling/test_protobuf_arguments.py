"""Protobuf messages that are written without generated classes."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.cli.calling.protobuf_arguments import chosen, written
from awoke.codecs.protobuf import own_schema
from awoke.codecs.protobuf_schemas import Indexes
from awoke.registry.schema import RegisteredSchema, Schema
from tests.support.protobuf_classes import SHOP_TEXT, Amount, Order
from tests.unit.cli.decoding.test_protobuf_messages import KnownSchemas

SHOP = RegisteredSchema(own_schema(Order.DESCRIPTOR.file), 6)
KNOWN = KnownSchemas(own_schema(Amount.DESCRIPTOR.file))
SIGNATURE = "price(order: shop_pb2.Order) -> shop_pb2.Price"


def test_a_message_is_written_with_the_place_of_the_type_that_the_signature_names() -> None:
    fields = {"id": 7, "lines": [{"sku": "A1"}], "price": {"cents": 150}}
    data, headers = written(fields, SHOP, KNOWN, SIGNATURE)
    assert (data[:7], headers) == (b"\0\0\0\0\6\2\2", ())
    assert Order.FromString(data[7:]) == Order(id=7, lines=[{"sku": "A1"}], price=Amount(cents=150))


@pytest.mark.parametrize(
    ("fields", "why"), [({"idd": 7}, "no field named .idd."), ({"id": "seven"}, "Failed to parse id field")]
)
def test_a_field_that_does_not_fit_is_named_on_one_line(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        written(fields, SHOP, KNOWN, SIGNATURE)
    assert "\n" not in str(refused.value)


def test_source_can_not_be_written() -> None:
    source = RegisteredSchema(Schema(SHOP_TEXT, "PROTOBUF"), 6)
    with pytest.raises(ValueError, match=r"registered as \.proto source, and awoke has no compiler"):
        written({}, source, KNOWN, SIGNATURE)


@pytest.mark.parametrize(
    "signature", ["f(order: Order)", "f(order: a.b.Order | None)", "f( order: Order = ...) -> Line"]
)
def test_the_message_is_the_one_that_the_signature_names(signature: str) -> None:
    places: dict[Indexes, str] = {(0,): "shop.Line", (1,): "shop.Order"}
    assert chosen(places, signature) == ((1,), "shop.Order")


def test_the_only_message_needs_no_name() -> None:
    assert chosen({(0,): "Line"}, "f(line)") == ((0,), "Line")


@pytest.mark.parametrize("signature", ["", "f(order)", "f(order: Any) -> Line"])
def test_one_of_several_messages_must_be_named(signature: str) -> None:
    with pytest.raises(ValueError, match=r"has the messages shop\.Line, Order, and .* call the method in Python"):
        chosen({(0,): "shop.Line", (1,): "Order"}, signature)
