"""Schemas that a reader's Avro schema can't read, beside fastavro, which reads them or refuses."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from awoke.operate.asyncapi.avro_diff import refused_by_avro


def record(*fields: dict[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


ID = {"name": "id", "type": "int"}
ENUM = {"type": "enum", "name": "State", "symbols": ["new", "paid"]}


@pytest.mark.parametrize(
    ("reader", "writer", "value", "refused"),
    [
        (record(ID), record(ID), {"id": 1}, []),
        (record({"name": "id", "type": "long"}), record(ID), {"id": 1}, []),
        (record({"name": "id", "type": "string"}), record(ID), {"id": 1}, ["$.id is int, not string"]),
        (record(ID), record(), {}, ["$.id may be missing"]),
        (record({**ID, "default": 1}), record(), {}, []),
        (record(), record(ID), {"id": 1}, []),
        (record({"name": "key", "aliases": ["id"], "type": "int"}), record(ID), {"id": 1}, []),
        (record({"name": "id", "type": ["null", "int"]}), record(ID), {"id": 1}, []),
        (record(ID), record({"name": "id", "type": ["null", "int"]}), {"id": None}, ["$.id is null, not int"]),
        (["null", "string"], "int", 1, ["$ may be int"]),
        ({**ENUM, "symbols": ["new"]}, ENUM, "paid", ["$ may be paid"]),
        ({**ENUM, "symbols": ["new"], "default": "new"}, ENUM, "paid", []),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, ["a"], ["$[] is string, not int"]),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}, {"a": 1}, []),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            b"abc",
            ["$ has 3 bytes, not 2"],
        ),
    ],
)
def test_what_is_refused_is_what_fastavro_can_not_read(
    reader: Any, writer: Any, value: Any, refused: list[str]
) -> None:
    assert list(refused_by_avro(reader, writer)) == refused
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(writer), value)
    stream.seek(0)
    try:
        fastavro.schemaless_reader(stream, fastavro.parse_schema(writer), fastavro.parse_schema(reader))
    except Exception:
        assert refused
    else:
        assert not refused


def test_a_record_that_contains_itself_is_compared() -> None:
    node = record({"name": "next", "type": ["null", "Order"]})
    assert list(refused_by_avro(node, node)) == []
