"""Schemas as text: their kinds, wrong files, references, the form for people, and differences."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import timestamp_pb2

from awoke.cli.schema_texts import Side, difference, pretty, reference_of, references_in, schema_in
from awoke.errors import AwokeError, ConfigError
from awoke.payloads.registry.schema import Reference, Schema


@pytest.mark.parametrize(
    ("name", "option", "kind"),
    [
        ("order.avsc", None, "AVRO"),
        ("order.JSON", None, "JSON"),
        ("order.proto", None, "PROTOBUF"),
        ("order.json", "avro", "AVRO"),
        ("order", "protobuf", "PROTOBUF"),
    ],
)
def test_the_kind_is_that_of_the_option_or_of_the_suffix(name: str, option: Any, kind: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text('"string"')
    assert schema_in(file, option) == Schema('"string"', kind)


def test_a_file_of_an_unknown_kind_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"order\.txt: say --kind: the name ends with none of \.avsc, \.json, \.proto"
    ):
        schema_in(tmp_path / "order.txt", None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"type": ', "no JSON: Expecting value: line 1 column 10"),
        (b"", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'"\xff"', "no UTF-8 at byte 1"),
    ],
)
def test_a_file_that_is_no_json_is_an_error_with_its_place(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_bytes(content)
    with pytest.raises(AwokeError, match=rf"order\.avsc: {said}"):
        schema_in(file, None)


def test_a_file_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AwokeError, match=r"none\.avsc: No such file or directory"):
        schema_in(tmp_path / "none.avsc", None)
    with pytest.raises(AwokeError, match="Is a directory"):
        schema_in(tmp_path, "avro")


def test_a_mark_of_byte_order_is_no_part_of_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_bytes(b'\xef\xbb\xbf"string"')
    assert schema_in(file, None).text == '"string"'


@pytest.mark.parametrize(
    ("word", "reference"),
    [
        ("shop.Customer=customers-value:2", Reference("shop.Customer", "customers-value", 2)),
        ("http://host/?a=b=:.shop:customers:12", Reference("http://host/?a=b", ":.shop:customers", 12)),
    ],
)
def test_a_reference_is_written_as_it_is_read(word: str, reference: Reference) -> None:
    assert reference_of(word) == reference
    assert references_in(Schema("", "JSON", (reference,))) == [word]


@pytest.mark.parametrize("word", ["", "name", "name=subject", "name=subject:0", "name=subject:latest", "=s:1", "n=:1"])
def test_a_reference_of_another_form_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="--reference takes NAME=SUBJECT:VERSION"):
        reference_of(word)


def test_json_is_indented_and_stays_in_its_order() -> None:
    assert pretty(Schema('{"b": 1.50, "a": []}')) == '{\n  "b": 1.50,\n  "a": []\n}'
    assert pretty(Schema("no json", "JSON")) == "no json"


def test_the_source_of_a_protobuf_file_stays_as_it_is_and_a_description_becomes_text() -> None:
    assert pretty(Schema("message  Order {}", "PROTOBUF")) == "message  Order {}"
    description = base64.b64encode(timestamp_pb2.DESCRIPTOR.serialized_pb).decode()
    assert pretty(Schema(description, "PROTOBUF")).startswith('name: "google/protobuf/timestamp.proto"\n')
    assert pretty(Schema("abcd", "PROTOBUF")) == "abcd", "base64, but no description"


def test_schemas_that_differ_in_blanks_only_have_no_difference() -> None:
    assert difference(Side("old", Schema('{"a":1}'), 1), Side("new", Schema('{ "a": 1 }\n'))) == []


def test_a_difference_names_both_sides() -> None:
    assert difference(Side("old", Schema("[1]"), 1), Side("new", Schema("[2]"))) == [
        "--- old",
        "+++ new",
        "@@ -1,3 +1,3 @@",
        " [",
        "-  1",
        "+  2",
        " ]",
    ]


def test_references_are_compared_where_both_sides_have_them() -> None:
    old, new = Schema("[]"), Schema("[]", references=(Reference("shop.Customer", "customers-value", 2),))
    assert "+reference shop.Customer=customers-value:2" in difference(Side("old", old, 1), Side("new", new, 2))
    assert difference(Side("old", old, 1), Side("file", new)) == []
