"""Protobuf messages that are written without generated classes, and the fields that do not fit."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from awoke.cli.encoding.protobuf_values import protobuf_writer
from awoke.errors import EncodeError
from awoke.payloads.decoding import protobuf_sources
from awoke.payloads.formats.protobuf import own_schema
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import SHOP_TEXT, Amount, Order

SHOP = own_schema(Order.DESCRIPTOR.file)
SCHEMAS = KnownSchemas()
SCHEMAS.referred[SHOP] = {"money.proto": own_schema(Amount.DESCRIPTOR.file)}
FIELDS = {"id": "7", "lines": [{"sku": "A1"}], "price": {"cents": 150}}
PLAIN = """
syntax = "proto3";
import "google/protobuf/duration.proto";
message Plain {
  enum State { OPEN = 0; PAID = 1; }
  int32 number = 1; bytes seal = 2; State state = 3; bool is_new = 4;
  map<int32, string> names = 5; google.protobuf.Duration within = 6;
  oneof contact { string mail = 7; string phone = 8; }
  repeated int64 counts = 9; float weight = 10;
}
"""


def write(schema: Schema, fields: Any, place: tuple[int, ...] = (1,), name: str = "shop.Order") -> bytes:
    return protobuf_writer(RegisteredSchema(schema, 6), SCHEMAS, lambda places: (place, name))(fields)


def test_a_message_is_written_with_its_place_in_the_schema() -> None:
    data = write(SHOP, FIELDS)
    assert data[:7] == b"\0\0\0\0\6\2\2"
    assert Order.FromString(data[7:]) == Order(id=7, lines=[{"sku": "A1"}], price=Amount(cents=150))


def test_a_source_is_compiled() -> None:
    source = Schema(SHOP_TEXT, "PROTOBUF")
    SCHEMAS.referred[source] = SCHEMAS.referred[SHOP]
    assert write(source, FIELDS) == write(SHOP, FIELDS)


def test_a_source_can_not_be_used_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_sources, "find_compiler", lambda: None)
    with pytest.raises(ValueError, match=r"it is registered as \.proto source; .* pip install 'awoke\[protoc\]'"):
        write(Schema(PLAIN, "PROTOBUF"), {})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"idd": 7}, "there is no field 'idd'; the fields are id, lines, note, price"),
        ({"id": "secret"}, "field 'id' takes int64, not text"),
        ({"id": 1.5}, "field 'id' takes int64, not a number with a fraction"),
        ({"lines": {"sku": "A1"}}, "field 'lines' takes array of the message shop.Line, not an object"),
        ({"lines": [{}, {"sku": 7}]}, r"field 'lines\[1\].sku' takes string, not a number"),
        ({"lines": [None]}, r"field 'lines\[0\]' takes the message shop.Line, not null"),
        ({"price": {"cents": 1 << 63}}, "field 'price.cents' is a number beyond the range of int64"),
        ({"note": "secret"}, "field 'note' takes the message shop.Order.Note, not text"),
        ("secret", "it takes the message shop.Order, not text"),
    ],
)
def test_the_first_field_that_does_not_fit_is_named(fields: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        write(SHOP, fields)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"number": -1 << 31}, None),
        ({"number": 1 << 31}, "field 'number' is a number beyond the range of int32"),
        ({"seal": "/w=="}, None),
        ({"seal": 7}, "field 'seal' takes bytes as base64, not a number"),
        ({"state": "PAID"}, None),
        ({"state": "secret"}, "field 'state' takes one of OPEN, PAID, not text"),
        ({"isNew": True, "within": "60s", "names": {"1": "a"}, "counts": [1]}, None),
        ({"isNew": "secret"}, "field 'isNew' takes bool, not text"),
        ({"within": "secret"}, "field 'within' takes the message google.protobuf.Duration, not text"),
        ({"names": []}, "field 'names' takes map, not an array"),
        ({"names": {"1": 7}}, r"field 'names\[…\]' takes string, not a number"),
        ({"names": {"1": None}}, r"field 'names\[…\]' takes string, not null"),
        ({"names": {"secret": "a"}}, "field 'names' has a key that is no int32"),
        ({"mail": "a", "phone": "b"}, "it has two fields of which only one may be set"),
        ({"counts": [1, "secret"]}, r"field 'counts\[1\]' takes int64, not text"),
        ({"weight": "secret"}, "field 'weight' takes float, not text"),
    ],
)
def test_every_kind_of_field_is_checked(fields: Any, why: str | None) -> None:
    schema = Schema(PLAIN, "PROTOBUF")
    if why is None:
        assert write(schema, fields, (0,), "Plain")[:6] == b"\0\0\0\0\6\0"
        return
    with pytest.raises(ValueError, match=f"^{why}$"):
        write(schema, fields, (0,), "Plain")


def test_a_required_field_that_is_missing_is_named() -> None:
    file = FileDescriptorProto(name="old.proto", syntax="proto2")
    file.message_type.add(name="Old").field.add(name="id", number=1, type=3, label=2)
    schema = Schema(base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")
    with pytest.raises(EncodeError, match="missing required fields: id"):
        write(schema, {}, (0,), "Old")
