"""The places of messages in protobuf schemas, as text and as description."""

from __future__ import annotations

import base64

import pytest

from awoke.payloads.formats.protobuf_schemas import places
from tests.support.protobuf_classes import SHOP_TEXT, Order

PLACES = {(0,): "shop.Line", (1,): "shop.Order", (1, 0): "shop.Order.Note"}


def test_text_and_description_give_the_same_places() -> None:
    assert places(SHOP_TEXT) == PLACES
    assert places(base64.b64encode(Order.DESCRIPTOR.file.serialized_pb).decode()) == PLACES


def test_a_schema_without_a_package_names_its_messages_alone() -> None:
    assert places('syntax = "proto3"; message Order { map<string, int32> counts = 1; } message Line {}') == {
        (0,): "Order",
        (1,): "Line",
    }


def test_a_field_named_package_is_no_declaration() -> None:
    assert places("message Order { string package = 1; } package shop; message Line {}") == {
        (0,): "shop.Order",
        (1,): "shop.Line",
    }
    assert places("message Order { string package = 1; }") == {(0,): "Order"}


def test_a_comment_may_have_any_letter() -> None:
    assert places("// Größe\nmessage Order {}") == {(0,): "Order"}


@pytest.mark.parametrize("text", ["message Order {} }", base64.b64encode(b"\x07junk").decode()])
def test_a_schema_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="schema"):
        places(text)
