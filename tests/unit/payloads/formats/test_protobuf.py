"""Protobuf with a registry: the bytes of its wire format, and messages that are another's."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

import awoke
from awoke.payloads.formats.protobuf import imports
from awoke.payloads.registry import Schema
from awoke.payloads.registry.schema import Part
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import FIELD, SHOP_TEXT, Amount, Line, Note, Order

VALUES: tuple[str, Part] = ("orders", "value")
SHOP = Schema(SHOP_TEXT, "PROTOBUF")


def decoded(kind: Any, schemas: KnownSchemas, data: bytes, headers: Any = ()) -> Any:
    decode: Any = awoke.protobuf(kind).decoder(*VALUES, schemas)
    return decode(data, list(headers))


@pytest.mark.parametrize(
    ("message", "begin"),
    [
        (Line(sku="a"), b"\0\0\0\0\1\0"),
        (Order(id=7, lines=[Line(sku="b")], price=Amount(cents=5)), b"\0\0\0\0\1\2\2"),
        (Note(text="c"), b"\0\0\0\0\1\4\2\0"),
    ],
    ids=["first", "second", "nested"],
)
@pytest.mark.parametrize("known", [(), (SHOP,)], ids=["own schema", "the registry's text"])
def test_a_message_goes_there_and_back(message: Any, begin: bytes, known: Any) -> None:
    schemas, kind = KnownSchemas(*known), type(message)
    data, headers = awoke.protobuf(kind).encoder(*VALUES, schemas)(message)
    assert (data, headers) == (begin + message.SerializeToString(), ())
    assert decoded(kind, schemas, data) == message


def test_a_header_has_the_place_of_the_message_too() -> None:
    schemas = KnownSchemas(SHOP)
    data, headers = awoke.protobuf(Note, wire="header").encoder(*VALUES, schemas)(Note(text="c"))
    ((name, value),) = headers
    assert (name, value[:1], value[17:], data) == ("__value_schema_id", b"\1", b"\4\2\0", b"\n\x01c")
    assert decoded(Note, schemas, data, headers) == Note(text="c")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0\0\0\0\1\0\n\x01a", "the message is a shop.Line, not a shop.Order"),
        (b"\0\0\0\0\1\2\x10", "is a message that its schema does not have"),
        (b"\0\0\0\0\1\2", "end within the message's place"),
        (b"\0\0\0\0\1\xfe\xff\xff\xff\x0f", "has 2147483647 levels"),
    ],
)
def test_another_message_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decoded(Order, KnownSchemas(SHOP), data)


def test_a_schema_without_the_message_is_an_error_of_the_sender() -> None:
    empty = Schema('syntax = "proto3"; message Other {}', "PROTOBUF")
    with pytest.raises(awoke.EncodeError, match=r"subject 'orders-value' has no message shop\.Line"):
        awoke.protobuf(Line).encoder(*VALUES, KnownSchemas(empty))(Line(sku="a"))
    with pytest.raises(awoke.EncodeError, match="is no Line"):
        awoke.protobuf(Line).encoder(*VALUES, KnownSchemas(SHOP))(Order())


def registered_as(**kinds: str) -> Schema:
    """Returns a schema of `shop.Line` that has these types of fields, `repeated` by a star."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    line = file.message_type.add(name="Line")
    for number, (name, kind) in enumerate(kinds.items(), 1):
        label = FIELD.LABEL_REPEATED if kind.endswith("*") else FIELD.LABEL_OPTIONAL
        line.field.add(name=name, number=number, type=FIELD.Type.Value(f"TYPE_{kind.rstrip('*')}"), label=label)
    return Schema(base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")


@pytest.mark.parametrize(
    ("kinds", "is_right"),
    [
        ({"sku": "STRING", "more": "INT64"}, True),
        ({"code": "BYTES"}, True),
        ({}, True),
        ({"sku": "INT64"}, False),
        ({"sku": "STRING*"}, False),
    ],
)
def test_a_message_is_not_written_for_a_schema_that_reads_another_value(kinds: Any, is_right: bool) -> None:
    encode = awoke.protobuf(Line).encoder(*VALUES, KnownSchemas(registered_as(**kinds)))
    if is_right:
        assert encode(Line(sku="a"))[0].endswith(Line(sku="a").SerializeToString())
    else:
        with pytest.raises(
            awoke.EncodeError, match=r"reads the field shop\.Line\.sku as another type than Line writes"
        ):
            encode(Line(sku="a"))


def test_imported_files_are_schemas_of_their_own() -> None:
    (money,) = imports(Order.DESCRIPTOR.file)
    assert (money.name, money.schema.kind, money.imports) == ("money.proto", "PROTOBUF", ())


def test_a_type_that_protobuf_did_not_make_is_one_clear_error() -> None:
    for kind in (int, None, Line | Order):
        with pytest.raises(awoke.ConfigError, match=r"awoke\.protobuf"):
            awoke.protobuf(kind)
