"""Avro: bytes as Confluent's serializers write them, resolution of schemas, several records, and what can't be read."""

from __future__ import annotations

import datetime
import enum
import io
import json
from typing import Any

import fastavro
import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.registry import Reference, Schema, record_name, topic_record_name
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import SchemaNeeded
from tests.support.known_schemas import KnownSchemas

VALUES: tuple[str, Part] = ("orders", "value")


class Line(msgspec.Struct):
    sku: str
    count: int = 1


class Order(msgspec.Struct):
    id: int
    lines: list[Line]
    note: str | None = None


class Cancelled(msgspec.Struct):
    id: int


class Model(pydantic.BaseModel):
    id: int
    at: datetime.datetime
    note: str | None = None


ORDER = Order(7, [Line("a"), Line("b", 2)], "fragile")

V1 = Schema(
    json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [{"name": "id", "type": "int"}, {"name": "old", "type": "string"}],
        }
    )
)


def written(schema: Schema, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(schema.text)), value)
    return stream.getvalue()


def decoded(form: awoke.Format, schemas: KnownSchemas, data: bytes, headers: Any = ()) -> Any:
    decode: Any = form.decoder(*VALUES, schemas)
    return decode(data, list(headers))


def test_a_struct_goes_there_and_back() -> None:
    schemas, form = KnownSchemas(), awoke.avro(Order)
    data, headers = form.encoder(*VALUES, schemas)(ORDER)
    assert (data[:5], headers) == (b"\0\0\0\0\1", ())
    assert decoded(form, schemas, data) == ORDER
    assert schemas.subjects == ["orders-value"]


def test_a_model_of_pydantic_goes_there_and_back() -> None:
    schemas, form = KnownSchemas(), awoke.avro(Model)
    order = Model(id=7, at=datetime.datetime(2026, 11, 23, 9, 30, tzinfo=datetime.UTC))
    assert decoded(form, schemas, form.encoder(*VALUES, schemas)(order)[0]) == order


def test_dicts_are_written_and_read_by_the_registry_s_schema() -> None:
    schemas, form = KnownSchemas(V1), awoke.avro()
    encoded = form.encoder(*VALUES, schemas)({"id": 1, "old": "x"})
    assert encoded[0] == b"\0\0\0\0\1" + written(V1, {"id": 1, "old": "x"})
    assert decoded(form, schemas, encoded[0]) == {"id": 1, "old": "x"}


def test_bytes_of_java_are_read() -> None:
    """As Confluent's Java serializer wrote them: magic byte, id 1, then id 150 as a zigzag varint and the text."""
    data = bytes.fromhex("00 00000001 ac02 06 6f6c64")
    assert decoded(awoke.avro(), KnownSchemas(V1), data) == {"id": 150, "old": "old"}


def test_a_header_names_the_schema_and_leaves_the_payload_bare() -> None:
    schemas, form = KnownSchemas(), awoke.avro(Cancelled, wire="header")
    data, headers = form.encoder(*VALUES, schemas)(Cancelled(7))
    ((name, value),) = headers
    assert (name, len(value), value[0], data) == ("__value_schema_id", 17, 1, b"\x0e")
    assert decoded(form, schemas, data, headers) == Cancelled(7)
    assert decoded(awoke.avro(Cancelled), schemas, data, [("trace", b"1"), *headers]) == Cancelled(7)


def test_a_registry_without_guids_is_an_error_for_headers() -> None:
    encode = awoke.avro(Cancelled, wire="header").encoder(*VALUES, KnownSchemas(has_guids=False))
    with pytest.raises(awoke.EncodeError, match="wire='prefix'"):
        encode(Cancelled(7))


def test_fields_of_one_side_only_are_left_out_or_get_their_default() -> None:
    data = b"\0\0\0\0\1" + written(V1, {"id": 7, "old": "gone"})

    class Order(msgspec.Struct):
        id: int
        note: str = "new"

    assert decoded(awoke.avro(Order), KnownSchemas(V1), data) == Order(7, "new")


def test_a_field_that_nobody_has_written_and_without_default_is_an_error() -> None:
    class Order(msgspec.Struct):
        id: int
        needed: str

    data = b"\0\0\0\0\1" + written(V1, {"id": 7, "old": "gone"})
    with pytest.raises(Exception, match="needed"):
        decoded(awoke.avro(Order), KnownSchemas(V1), data)


def test_a_topic_with_several_records_is_read_by_their_names() -> None:
    form, schemas = awoke.avro(Order | Cancelled), KnownSchemas()
    encode = form.encoder(*VALUES, schemas)
    schemas.known = [form._own[each].schema for each in (Order, Cancelled)]  # type: ignore[misc]
    assert [decoded(form, schemas, encode(each)[0]) for each in (ORDER, Cancelled(7))] == [ORDER, Cancelled(7)]
    with pytest.raises(awoke.EncodeError, match="Line is none of Cancelled, Order"):
        encode(Line("a"))
    schemas.known = [Schema('{"type": "record", "name": "shop.Refund", "fields": []}')]
    with pytest.raises(ValueError, match=r"'shop\.Refund', which is none of Cancelled, Order"):
        decoded(form, schemas, b"\0\0\0\0\1")


def test_subjects_are_named_by_the_record_where_that_is_wanted() -> None:
    for strategy, subject in ((record_name, "shop.Order"), (topic_record_name, "orders-shop.Order")):
        schemas = KnownSchemas()
        awoke.avro(Order, namespace="shop", subject=strategy).encoder(*VALUES, schemas)(ORDER)
        assert schemas.subjects == [subject]


def test_a_schema_may_refer_to_another() -> None:
    line = Schema('{"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}')
    order = Schema(
        '{"type": "record", "name": "Order", "fields": [{"name": "line", "type": "Line"}]}',
        "AVRO",
        (Reference("Line", "line-value", 1),),
    )
    schemas = KnownSchemas(order)
    schemas.referred = {order: {"Line": line}}
    encoded = awoke.avro().encoder(*VALUES, schemas)({"line": {"sku": "a"}})
    assert encoded[0] == b"\0\0\0\0\1\x02a"
    assert decoded(awoke.avro(), schemas, encoded[0]) == {"line": {"sku": "a"}}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "begin with nothing"),
        (b"{}", "begin with 7b 7d"),
        (b"\0\0\0\0\1\x0e", "end within the record"),
        (b"\0\0\0", "begin with 00 00 00"),
    ],
)
def test_bytes_that_are_none_of_it_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decoded(awoke.avro(), KnownSchemas(V1), data)


def test_a_schema_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 1 of the registry is JSON, not AVRO"):
        decoded(awoke.avro(), KnownSchemas(Schema("{}", "JSON")), b"\0\0\0\0\1")


def test_a_schema_that_is_not_loaded_is_asked_for() -> None:
    with pytest.raises(SchemaNeeded):
        decoded(awoke.avro(), KnownSchemas(), b"\0\0\0\0\7\1")


class Colour(enum.Enum):
    RED = 1


class Plain:
    pass


@pytest.mark.parametrize("kind", [Colour, Plain, dict[int, str], Order | Plain])
def test_a_type_without_an_avro_schema_is_one_clear_error(kind: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=r"awoke\.avro"):
        awoke.avro(kind)


def test_a_schema_that_is_no_avro_is_one_clear_error() -> None:
    for schema in ('{"type": "recrod"}', "{"):
        with pytest.raises(awoke.ConfigError, match="avro"):
            awoke.avro(schema=schema)
    with pytest.raises(awoke.ConfigError, match="of one type"):
        awoke.avro(Order | Cancelled, schema='"string"')


def test_a_field_that_the_latest_version_lacks_is_refused_and_not_left_out() -> None:
    latest = Schema('{"type": "record", "name": "Cancelled", "fields": [{"name": "id", "type": "long"}]}')

    class Cancelled(msgspec.Struct):
        id: int
        note: str = ""

    encode = awoke.avro(Cancelled).encoder(*VALUES, KnownSchemas(latest))
    with pytest.raises(awoke.EncodeError, match="note"):
        encode(Cancelled(7, "secret"))


def test_a_generic_type_is_no_union() -> None:
    schemas, form = KnownSchemas(), awoke.avro(list[Cancelled])
    assert decoded(form, schemas, form.encoder(*VALUES, schemas)([Cancelled(7)])[0]) == [Cancelled(7)]
    mapping = awoke.avro(dict[str, Any])
    assert decoded(mapping, KnownSchemas(V1), b"\0\0\0\0\1\x02\x02x") == {"id": 1, "old": "x"}


def test_a_value_that_does_not_fit_the_registered_schema_is_refused() -> None:
    with pytest.raises(Exception, match="old"):
        awoke.avro().encoder(*VALUES, KnownSchemas(V1))({"id": 1})
