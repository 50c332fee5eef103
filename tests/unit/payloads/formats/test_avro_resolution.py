"""What a reader can't read of a writer in Avro: each rule, the paths of messages, and fastavro as a judge."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from awoke.payloads.formats.avro_resolution import AvroSchema, incompatibilities
from awoke.testing.registry.parsing import parse_avro
from tests.support.avro_documents import array, enum, field, fixed, mapping, record


def tree(*more: Any) -> dict[str, Any]:
    return record(field("left", ["null", "Tree"]), field("right", ["null", "Tree"]), *more, name="Tree")


A = field("a", "int")


def reasons(reader: Any, writer: Any) -> list[str]:
    """Returns the reasons of schemas that fastavro has parsed; documents that it has not have as many."""
    found = incompatibilities(parse_avro(reader), parse_avro(writer))
    assert len(incompatibilities(AvroSchema.of(reader), AvroSchema.of(writer))) == len(found)
    return found


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        *[("int", other) for other in ("int", "long", "float", "double")],
        *[("long", other) for other in ("long", "float", "double")],
        *[("float", other) for other in ("float", "double")],
        ("string", "bytes"),
        ("bytes", "string"),
        (record(A), record(A, field("b", "string", default=""))),
        (record(A, field("b", "string")), record(A)),
        (record(A, field("b", "int")), record(field("b", "int"), A)),
        (record(field("old", "int")), record(field("new", "long", aliases=["old"]))),
        (record(A), record(A, name="S", aliases=["R"])),
        (record(A, namespace="x"), record(A, namespace="y")),
        (record(A, namespace="x"), record(A, name="S", namespace="y", aliases=["x.R"])),
        (record(A), record(A, type="error")),
        (enum("X"), enum("X", "Y")),
        (enum("X", "Y"), enum("X", default="X")),
        (fixed(4), fixed(4)),
        (array("int"), array("long")),
        (mapping("int"), mapping("double")),
        ("int", ["null", "long"]),
        (["null", "int"], ["long", "null"]),
        (["int"], "int"),
        ([record(A), fixed(4)], ["null", fixed(4), record(A)]),
        (tree(), tree(field("value", "int", default=0))),
        (field("a", "int") | {"type": "long", "logicalType": "timestamp-millis"}, "long"),
    ],
)
def test_a_reader_reads_a_compatible_writer(writer: Any, reader: Any) -> None:
    assert reasons(reader, writer) == []


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        ("long", "int", "/: the reader expects `int`, the writer may send `long`"),
        ("double", "float", "/: the reader expects `float`, the writer may send `double`"),
        ("boolean", "int", "/: the reader expects `int`, the writer may send `boolean`"),
        (
            record(A, field("b", "int")),
            record(A, field("b", "int"), field("note", "string")),
            "/fields/2: the reader needs the field `note`, which the writer does not have; give it a default",
        ),
        (
            record(field("a", "string")),
            record(A),
            "/fields/0/type: the reader expects `int`, the writer may send `string`",
        ),
        (
            record(A),
            record(A, name="S", namespace="shop"),
            "/: the reader expects `record shop.S`, the writer may send `record R`; give it the alias `R`",
        ),
        (
            enum("X", "Y", "Z"),
            enum("X"),
            "/symbols: the reader's enum `E` lacks `Y`, `Z`, which the writer may send;"
            " keep the symbols, or give the enum a default",
        ),
        (fixed(4), fixed(8), "/size: the reader expects 8 bytes, the writer sends 4"),
        (array("string"), array("int"), "/items: the reader expects `int`, the writer may send `string`"),
        (mapping("string"), mapping("int"), "/values: the reader expects `int`, the writer may send `string`"),
        (["null", "int"], "int", "/: the reader expects `int`, the writer may send `null`"),
        ("string", ["null", "int"], "/: the writer may send `string`, and the reader's union has only `null`, `int`"),
        ("int", [], "/: the writer may send `int`, and the reader's union has only "),
        (
            record(field("r", ["null", record(A, name="I")])),
            record(field("r", ["null", record(A, field("b", "int"), name="I")])),
            "/fields/0/type/1/fields/1: the reader needs the field `b`, which the writer does not have;"
            " give it a default",
        ),
        (
            tree(),
            tree(field("value", "int")),
            "/fields/2: the reader needs the field `value`, which the writer does not have; give it a default",
        ),
        (record(A), mapping("int"), "/: the reader expects `map`, the writer may send `record R`"),
    ],
)
def test_a_reason_names_the_path_and_both_sides(writer: Any, reader: Any, expected: str) -> None:
    assert reasons(reader, writer) == [expected]


def test_each_reason_is_told_once() -> None:
    inner = record(A, name="I")
    writer = record(field("x", inner), field("y", "I"))
    reader = record(field("x", record(A, field("b", "int"), name="I")), field("y", "I"))
    assert len(reasons(reader, writer)) == 1


@pytest.mark.parametrize("name", ["Line", "shop.Line"])
def test_a_document_names_its_types_within_their_namespace(name: str) -> None:
    def order(kind: str) -> Any:
        line = record(field("sku", kind), name="Line")
        return record(field("first", line), field("others", array(name)), name="Order", namespace="shop")

    schemas = AvroSchema.of(order("string")), AvroSchema.of(order("int"))
    assert incompatibilities(*schemas) == [
        "/fields/0/type/fields/0/type: the reader expects `string`, the writer may send `int`"
    ]


def test_types_of_references_are_compared() -> None:
    whole = record(field("i", "I"))
    writer, reader = parse_avro(whole, [record(A, name="I")]), parse_avro(whole, [record(field("a", "long"), name="I")])
    assert incompatibilities(reader, writer) == []
    assert incompatibilities(writer, reader) == [
        "/fields/0/type/fields/0/type: the reader expects `int`, the writer may send `long`"
    ]


KINDS = st.recursive(
    st.sampled_from(["null", "boolean", "int", "long", "float", "double", "string", "bytes"]),
    lambda kinds: st.one_of(kinds.map(array), kinds.map(mapping)),
    max_leaves=2,
)
FIELDS = st.lists(st.tuples(st.sampled_from("abc"), KINDS), max_size=3, unique_by=lambda each: each[0])


@given(st.data())
def test_fastavro_reads_all_data_of_a_compatible_writer(data: st.DataObject) -> None:
    """The rules must not call compatible what a reader can't read; fastavro is the judge."""
    writer, reader = (record(*(field(*each) for each in data.draw(FIELDS))) for _ in range(2))
    if reasons(reader, writer):
        return
    value = {each["name"]: data.draw(values(each["type"])) for each in writer["fields"]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(writer), value)
    out.seek(0)
    found = fastavro.schemaless_reader(out, fastavro.parse_schema(writer), fastavro.parse_schema(reader))
    assert isinstance(found, dict)
    assert found.keys() == {each["name"] for each in reader["fields"]}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Returns values of a type."""
    if isinstance(kind, dict):
        inner = values(kind.get("items", kind.get("values")))
        return st.lists(inner, max_size=2) if kind["type"] == "array" else st.dictionaries(st.text(max_size=2), inner)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "string": st.text(max_size=3),
        "bytes": st.text(max_size=3).map(str.encode),
    }
    return simple[kind]
