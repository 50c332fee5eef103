"""Protobuf messages without generated classes: from the descriptions or the sources that a registry has."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from awoke.payloads.decoding import protobuf_sources
from awoke.payloads.decoding.protobuf_messages import add_known, placed, pool_with, protobuf_reader
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.registry.wire_format import Framed

INT64, STRING, MESSAGE = 3, 9, 11


def described(file: FileDescriptorProto) -> Schema:
    """Returns a file as a registry has it."""
    return Schema(base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")


def place_file() -> FileDescriptorProto:
    """Returns the file of a message that another one imports."""
    file = FileDescriptorProto(name="place.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Place").field.add(name="city", number=1, type=STRING, label=1)
    return file


def stock_file() -> FileDescriptorProto:
    """Returns a file with two messages; the second one imports another file, and one that comes with protobuf."""
    imports = ["place.proto", "google/protobuf/struct.proto", "google/protobuf/type.proto"]
    file = FileDescriptorProto(name="stock.proto", package="shop", syntax="proto3", dependency=imports)
    file.message_type.add(name="Other")
    message = file.message_type.add(name="Stock")
    message.field.add(name="item_id", number=1, type=INT64, label=1)
    message.field.add(name="place", number=2, type=MESSAGE, label=1, type_name=".shop.Place")
    return file


class KnownSchemas(Schemas):
    """Schemas that refer to these."""

    def __init__(self, *references: Schema) -> None:
        self._known = {str(place): each for place, each in enumerate(references)}

    def references(self, schema: Schema) -> dict[str, Schema]:
        return self._known


PAYLOAD = b"\x08\x05\x12\x06\x0a\x04Rome"


@pytest.mark.parametrize(
    "framed",
    [Framed(6, b"\x02\x02" + PAYLOAD), Framed("a-guid", PAYLOAD, b"\x02\x02")],
    ids=["by prefix", "by header"],
)
def test_a_message_is_read_by_its_description(framed: Framed) -> None:
    read = protobuf_reader(RegisteredSchema(described(stock_file()), 6), KnownSchemas(described(place_file())))
    assert read(framed) == {"item_id": "5", "place": {"city": "Rome"}}


def test_a_message_that_the_schema_does_not_have_is_named_by_its_place() -> None:
    read = protobuf_reader(RegisteredSchema(described(place_file()), 6), KnownSchemas())
    with pytest.raises(ValueError, match=r"schema 6 of the registry has no message at \[3\]"):
        read(Framed(6, b"\x02\x06"))


STOCK = """
syntax = "proto3";
package shop;
import "place.proto";
import "google/protobuf/struct.proto";
message Other {}
message Stock { int64 item_id = 1; Place place = 2; google.protobuf.Value more = 3; }
"""
PLACE = 'syntax = "proto3"; package shop; message Place { string city = 1; }'


class NamedSchemas(Schemas):
    """Schemas that refer to these, by the names of their files."""

    def __init__(self, **references: Schema) -> None:
        self._known = {f"{name}.proto": each for name, each in references.items()}

    def references(self, schema: Schema) -> dict[str, Schema]:
        return self._known


@pytest.mark.parametrize("place", [Schema(PLACE, "PROTOBUF"), described(place_file())], ids=["source", "description"])
@pytest.mark.parametrize("stock", [Schema(STOCK, "PROTOBUF"), described(stock_file())], ids=["source", "description"])
def test_a_message_is_read_by_sources_and_descriptions(stock: Schema, place: Schema) -> None:
    read = protobuf_reader(RegisteredSchema(stock, 6), NamedSchemas(place=place))
    assert read(Framed(6, b"\x02\x02" + PAYLOAD)) == {"item_id": "5", "place": {"city": "Rome"}}


def source_reader(text: str) -> Any:
    return protobuf_reader(RegisteredSchema(Schema(text, "PROTOBUF"), 6), KnownSchemas())


SOURCE = r"it is the Protobuf message shop\.Stock of schema 6, which is registered as \.proto source"


def test_a_message_whose_schema_is_source_is_named_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_sources, "DISTRIBUTION", "awoke-has-no-such-package")
    with pytest.raises(ValueError, match=SOURCE + r"; to decode it, .*: pip install 'awoke\[protoc\]'$"):
        source_reader("package shop; message Stock {}")(Framed(6, b"\x00"))


def test_a_source_is_compiled_once_though_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    run, runs = protobuf_sources.run, 0

    def counted(*arguments: Any) -> bytes:
        nonlocal runs
        runs += 1
        return run(*arguments)

    monkeypatch.setattr(protobuf_sources, "run", counted)
    read = source_reader("package shop; message Stock { Nothing a = 1; }")
    for _ in range(2):
        with pytest.raises(ValueError, match=SOURCE + r" and does not compile: the schema\.proto:1:31: Expected "):
            read(Framed(6, b"\x00"))
    assert runs == 1


def test_a_file_that_protobuf_for_python_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match=r"imports 'google/protobuf/nothing\.proto', which protobuf for Python"):
        add_known(pool_with([]), "google/protobuf/nothing.proto", set())


@pytest.mark.parametrize(
    ("framed", "found"),
    [
        (Framed(6, b"\x00ab"), ([0], b"ab")),
        (Framed("a-guid", b"ab", b""), ([0], b"ab")),
        (Framed("a-guid", b"ab", b"\x00"), ([0], b"ab")),
        (Framed(6, b"\x04\x02\x00ab"), ([1, 0], b"ab")),
    ],
)
def test_the_place_of_a_message_is_before_its_bytes_or_in_the_header(framed: Framed, found: Any) -> None:
    assert placed(framed) == found
