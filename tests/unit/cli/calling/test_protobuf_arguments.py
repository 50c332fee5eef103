"""The Protobuf message that a method takes."""

from __future__ import annotations

import pytest

from awoke.cli.calling.protobuf_arguments import chosen
from awoke.payloads.formats.protobuf_schemas import Indexes


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
