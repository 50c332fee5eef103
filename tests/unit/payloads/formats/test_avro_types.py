"""Avro schemas of Python types, which fastavro reads and writes."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import typing
import uuid
from typing import Any

import attrs
import fastavro
import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.formats.avro_reader import plain_converter
from awoke.payloads.formats.avro_resolution import AvroSchema
from awoke.payloads.formats.avro_types import named_classes, schema_of
from awoke.payloads.formats.avro_writer import writer_for

NOW = datetime.datetime(2026, 11, 23, 9, 30, 0, 5, tzinfo=datetime.UTC)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Struct(msgspec.Struct):
    number: int
    share: float
    name: str
    raw: bytes
    size: Size
    at: datetime.datetime
    day: datetime.date
    code: uuid.UUID
    tags: list[str] = []
    counts: dict[str, int] = {}
    note: str | None = None
    is_paid: bool = False


@dataclasses.dataclass
class Data:
    number: int
    inner: typing.Optional[Data] = None  # noqa: UP045 - it names itself.


@attrs.define
class Attrs:
    number: int


class Typed(typing.TypedDict):
    left: int
    right: str


class Model(pydantic.BaseModel):
    number: int
    inner: Data | None = None
    name: str = pydantic.Field("none", alias="fullName")


STRUCT = Struct(1, 0.5, "a", b"\0\xff", Size.LARGE, NOW, NOW.date(), uuid.UUID(int=5), ["x"], {"y": 2})


@pytest.mark.parametrize(
    "value", [STRUCT, Data(1, Data(2)), Attrs(3), Model(number=5, fullName="c")], ids=lambda v: type(v).__name__
)
def test_values_go_there_and_back(value: Any) -> None:
    assert plain_converter(type(value))(there_and_back(type(value), value)) == value


def test_a_typed_dict_goes_there_and_back() -> None:
    assert there_and_back(Typed, Typed(left=1, right="b")) == {"left": 1, "right": "b"}


def there_and_back(kind: Any, value: Any) -> Any:
    """Returns what fastavro reads of a value that was written by the schema of its type."""
    names: dict[str, Any] = {}
    schema, out = fastavro.parse_schema(schema_of(kind), named_schemas=names), bytearray()
    writer_for(AvroSchema(schema, names), named_classes(kind))(out, value)
    return fastavro.schemaless_reader(io.BytesIO(out), schema, None)


def test_the_schema_is_the_one_that_a_person_would_write() -> None:
    class Order(msgspec.Struct):
        id: int
        size: Size
        note: str | None = None
        gift: str | None = "no"

    assert schema_of(Order, "shop") == {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "size",
                "type": {"type": "enum", "name": "Size", "namespace": "shop", "symbols": ["small", "large"]},
            },
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "gift", "type": ["string", "null"], "default": "no"},
        ],
    }


def test_parts_without_an_avro_type_are_named() -> None:
    class Order(msgspec.Struct):
        pair: tuple[int, str]

    with pytest.raises(TypeError, match=r"Order\.pair: Avro has no type for Tuple"):
        schema_of(Order)


def test_two_classes_of_one_name_are_refused() -> None:
    def other() -> type:
        class Attrs(msgspec.Struct):
            text: str

        return Attrs

    kind = msgspec.defstruct("Both", [("one", Attrs), ("two", other())])
    with pytest.raises(TypeError, match="two classes are named Attrs"):
        schema_of(kind)


def test_two_classes_of_one_name_are_refused_in_a_union() -> None:
    one, other = (msgspec.defstruct("Order", [("id", int)], module=module) for module in ("shop", "store"))
    with pytest.raises(awoke.ConfigError, match=r"records of one name \(Order, Order\).*other names"):
        awoke.avro(one | other)
