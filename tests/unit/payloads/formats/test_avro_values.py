"""What Avro holds of a value: the branch of a union that is the value's own, exact scalars, or a refusal."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import io
import json
import os
import time
import uuid
from typing import Any

import fastavro
import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.registry import Reference, Schema
from awoke.payloads.registry.schema import Part
from tests.support.known_schemas import KnownSchemas

VALUES: tuple[str, Part] = ("orders", "value")
NOON = datetime.datetime(2026, 11, 28, 12, 0, 0, 5)
ID = {"name": "id", "type": "long"}
PLACED = {"type": "record", "name": "Placed", "namespace": "shop", "fields": [ID]}
CANCELLED = {"type": "record", "name": "Cancelled", "namespace": "shop", "fields": [ID]}


@dataclasses.dataclass
class Placed:
    id: int


@dataclasses.dataclass
class Cancelled:
    id: int


class Late(Cancelled):
    pass


class Struct(msgspec.Struct):
    what: Placed | Cancelled
    more: list[Placed | Cancelled] = []
    by_name: dict[str, Placed | Cancelled | None] = {}
    last: Placed | Cancelled | None = None


@dataclasses.dataclass
class Linked:
    what: Placed | Cancelled
    next: Linked | None = None


class PlacedModel(pydantic.BaseModel):
    id: int


class CancelledModel(pydantic.BaseModel):
    id: int


class Model(pydantic.BaseModel):
    what: PlacedModel | CancelledModel
    more: list[PlacedModel | CancelledModel] = []


def decoded(form: awoke.Format, schemas: KnownSchemas, data: bytes) -> Any:
    decode: Any = form.decoder(*VALUES, schemas)
    return decode(data, [])


def sent(form: awoke.Format, value: Any, *known: Schema) -> Any:
    """Returns what is read of a value that was sent."""
    schemas = KnownSchemas(*known)
    return decoded(form, schemas, form.encoder(*VALUES, schemas)(value)[0])


def by_schema(schema: Any, value: Any) -> Any:
    return sent(awoke.avro(schema=json.dumps(schema)), value)


@pytest.mark.parametrize(
    "value",
    [
        Struct(Cancelled(1)),
        Struct(Placed(1), [Cancelled(2), Placed(3)], {"a": Cancelled(4), "b": None}, Cancelled(5)),
        Linked(Cancelled(1), Linked(Placed(2), Linked(Cancelled(3)))),
        Model(what=CancelledModel(id=1), more=[PlacedModel(id=2), CancelledModel(id=3)]),
    ],
    ids=["field", "list, map, optional", "recursive", "pydantic"],
)
def test_a_record_of_a_union_is_read_as_the_class_that_was_sent(value: Any) -> None:
    assert sent(awoke.avro(type(value)), value) == value


def test_a_union_in_a_collection_keeps_its_records() -> None:
    assert sent(awoke.avro(list[Placed | Cancelled]), [Cancelled(1), Placed(2)]) == [Cancelled(1), Placed(2)]
    assert sent(awoke.avro(dict[str, Placed | Cancelled]), {"a": Cancelled(1)}) == {"a": Cancelled(1)}


def test_the_registry_s_order_of_a_union_does_not_matter() -> None:
    fields = [{"name": "what", "type": [PLACED, CANCELLED]}]
    latest = Schema(json.dumps({"type": "record", "name": "Known", "namespace": "shop", "fields": fields}))
    fields[0]["type"] = [CANCELLED, PLACED]
    turned = Schema(json.dumps({"type": "record", "name": "Known", "namespace": "shop", "fields": fields}))

    known: Any = msgspec.defstruct("Known", [("what", Placed | Cancelled)])
    for schema in (latest, turned):
        assert sent(awoke.avro(known), known(Cancelled(7)), schema) == known(Cancelled(7))


def test_records_by_reference_keep_their_names() -> None:
    event = Schema(
        '{"type": "record", "name": "Event", "fields": [{"name": "what", "type": ["shop.Placed", "shop.Cancelled"]}]}',
        "AVRO",
        (Reference("shop.Placed", "placed", 1), Reference("shop.Cancelled", "cancelled", 1)),
    )
    known: Any = msgspec.defstruct("Event", [("what", Placed | Cancelled)])
    schemas, form = KnownSchemas(event), awoke.avro(known, namespace="shop")
    schemas.referred = {
        event: {"shop.Placed": Schema(json.dumps(PLACED)), "shop.Cancelled": Schema(json.dumps(CANCELLED))}
    }
    data = form.encoder(*VALUES, schemas)(known(Cancelled(7)))[0]
    assert data[5:] == b"\x02\x0e"
    assert decoded(form, schemas, data) == known(Cancelled(7))


def test_a_message_from_before_there_was_a_union_is_read() -> None:
    older = Schema(json.dumps({"type": "record", "name": "Event", "fields": [{"name": "what", "type": PLACED}]}))
    known: Any = msgspec.defstruct("Event", [("what", Placed | Cancelled), ("note", str, "none")])
    assert decoded(awoke.avro(known), KnownSchemas(older), b"\0\0\0\0\1\x0e") == known(Placed(7))


def test_dicts_of_a_union_go_there_and_back_with_their_names() -> None:
    schema = {"type": "record", "name": "Event", "fields": [{"name": "what", "type": [PLACED, CANCELLED]}]}
    assert by_schema(schema, {"what": ("shop.Cancelled", {"id": 7})}) == {"what": ("shop.Cancelled", {"id": 7})}
    assert by_schema(schema, {"what": {"-type": "shop.Cancelled", "id": 7}}) == {"what": ("shop.Cancelled", {"id": 7})}
    with pytest.raises(awoke.EncodeError, match=r"several records of the union take it.* - at `\$\.what`"):
        by_schema(schema, {"what": {"id": 7}})


def test_an_enum_of_a_union_by_reference_has_no_name() -> None:
    size = {"type": "enum", "name": "Size", "symbols": ["A"]}
    fields = [{"name": "size", "type": size}, {"name": "more", "type": ["null", "Size"]}]
    fields.append({"name": "what", "type": [PLACED, CANCELLED]})
    value = {"size": "A", "more": "A", "what": ("shop.Placed", {"id": 7})}
    assert by_schema({"type": "record", "name": "Event", "fields": fields}, value) == value


@pytest.mark.parametrize("value", [Cancelled(7), Late(7), Struct(Cancelled(1))])
def test_a_value_of_another_class_is_refused_although_its_fields_fit(value: Any) -> None:
    with pytest.raises(
        awoke.EncodeError, match=f"takes a record 'Placed', which is not the one of {type(value).__name__}"
    ):
        sent(awoke.avro(Placed), value)
    if type(value) is not Cancelled:
        with pytest.raises(awoke.EncodeError, match=f"no type of the union is that of {type(value).__name__}"):
            sent(awoke.avro(Struct), Struct(value))


def test_the_place_of_what_does_not_fit_is_said_and_not_the_value() -> None:
    with pytest.raises(awoke.EncodeError, match=r"^takes an integer, not str - at `\$\.more\[1\]\.id`") as caught:
        sent(awoke.avro(Struct), Struct(Placed(1), [Placed(1), Cancelled("secret")]))  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The machine's zone is not UTC."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    time.tzset()


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


MICROS, LOCAL = logical("long", "timestamp-micros"), logical("long", "local-timestamp-micros")
MILLIS = logical("long", "timestamp-millis")
MONEY = logical("bytes", "decimal", precision=6, scale=2)
FIXED_MONEY = {**MONEY, "type": "fixed", "name": "Money", "size": 2, "precision": 4}
EAST = datetime.timezone(datetime.timedelta(hours=4))


@pytest.mark.usefixtures("far_away")
def test_a_naive_datetime_is_no_moment_and_an_aware_one_no_local_time() -> None:
    for schema in (MICROS, MILLIS):
        with pytest.raises(awoke.EncodeError, match="without a time zone is no moment"):
            by_schema(schema, NOON)
    with pytest.raises(awoke.EncodeError, match="a local timestamp has no time zone"):
        by_schema(LOCAL, NOON.replace(tzinfo=EAST))
    assert by_schema(LOCAL, NOON) == NOON
    assert by_schema(MICROS, NOON.replace(tzinfo=EAST)) == NOON.replace(tzinfo=EAST)


D = decimal.Decimal
REFUSED: list[tuple[Any, Any]] = [
    ("long", 7.9),
    ("long", True),
    ("long", 2**63),
    ("int", 2**31),
    ("double", 2**53 + 1),
    ("double", D("0.1")),
    ("float", 1e300),
    ("boolean", 7),
    ("boolean", None),
    ("null", 7),
    ("string", b"x"),
    ("string", "\ud800"),
    ("bytes", "x"),
    ({"type": "array", "items": "string"}, "abc"),
    ({"type": "array", "items": "string"}, {"a": 1}),
    ({"type": "map", "values": "long"}, {1: 2}),
    ({"type": "enum", "name": "Size", "symbols": ["SMALL"]}, "LARGE"),
    ({"type": "fixed", "name": "Two", "size": 2}, b"abc"),
    (PLACED, {"id": 1, "note": "x"}),
    (PLACED, {}),
    (PLACED, [1]),
    (logical("int", "date"), NOON),
    (logical("int", "time-millis"), NOON.time()),
    (logical("long", "time-micros"), NOON.time().replace(tzinfo=datetime.UTC)),
    (MILLIS, NOON.replace(tzinfo=datetime.UTC)),
    (MONEY, D("1.555")),
    (MONEY, D("12345.00")),
    (MONEY, D("NaN")),
    (MONEY, D("1E+1000000")),
    (MONEY, 1.5),
    (FIXED_MONEY, D("500")),
    (logical("string", "uuid"), "no UUID"),
    (["null", "boolean"], 7),
    ([MICROS, "string"], NOON),
]


@pytest.mark.parametrize(("schema", "value"), REFUSED, ids=str)
def test_what_a_schema_can_not_hold_is_refused(schema: Any, value: Any) -> None:
    with pytest.raises(awoke.EncodeError):
        by_schema(schema, value)


HELD: list[tuple[Any, Any]] = [
    *((kind, number) for kind in ("int", "long") for number in (0, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31))),
    ("long", 2**63 - 1),
    ("long", -(2**63)),
    ("double", 0.1),
    ("double", 7),
    ("double", float("inf")),
    ("float", 0.5),
    ({"type": "array", "items": "long"}, []),
    ({"type": "map", "values": ["null", "long"]}, {"a": None, "b": 1}),
    ({"type": "fixed", "name": "Two", "size": 2}, b"ab"),
    ({**PLACED, "fields": [{**ID, "default": 7}]}, {"id": 7}),
    (logical("int", "date"), NOON.date()),
    (logical("int", "time-millis"), datetime.time(12, 0, 0, 5000)),
    (logical("long", "time-micros"), NOON.time()),
    (MILLIS, datetime.datetime(1960, 1, 1, 12, 0, 0, 7000, tzinfo=datetime.UTC)),
    *(
        (MONEY, D(text))
        for text in ("1.50", "-1.5", "1.500", "9999.99", "-9999.99", "1E+3", "0", "-0.00", "1.28", "-1.28")
    ),
    *((FIXED_MONEY, D(text)) for text in ("1.50", "-0.01", "0", "-0.00", "99.99")),
    (logical("string", "uuid"), uuid.UUID(int=7)),
    (["long", "double"], 1.0),
    (["double", "long"], 2**53 + 1),
    (["null", PLACED], {"id": 7}),
    ([LOCAL, "string"], "x"),
    (["string", {"type": "enum", "name": "Size", "symbols": ["A"]}], "A"),
]


@pytest.mark.parametrize(("schema", "value"), HELD, ids=str)
def test_what_a_schema_holds_is_read_as_it_was_and_is_what_fastavro_writes(schema: Any, value: Any) -> None:
    read = by_schema(schema, value)
    assert read == value
    assert type(read) is type(value) or isinstance(value, int)
    if isinstance(value, D) and (not value or value.as_tuple().exponent != -2):
        return  # fastavro writes a negative zero wrong, and refuses digits that are zero.
    parsed, theirs, schemas = fastavro.parse_schema(schema), io.BytesIO(), KnownSchemas()
    fastavro.schemaless_writer(theirs, parsed, value)
    ours = awoke.avro(schema=json.dumps(schema)).encoder(*VALUES, schemas)(value)[0][5:]
    assert fastavro.schemaless_reader(io.BytesIO(ours), parsed, None) == value
    if not isinstance(value, D) and schema != ["double", "long"]:
        assert ours == theirs.getvalue()


class State(enum.Enum):
    IN_WORK = "in work"


class Level(enum.IntEnum):
    HIGH = 7


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


@pytest.mark.parametrize("value", [State.IN_WORK, Level.HIGH])
def test_an_enum_whose_values_are_no_names_is_written_as_its_values_are(value: Any) -> None:
    kind = msgspec.defstruct("Holder", [("it", type(value)), ("maybe", type(value) | None, None)])
    assert sent(awoke.avro(kind), kind(value, value)) == kind(value, value)


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (Mixed, "the values of Mixed are neither strings nor integers only"),
        (decimal.Decimal, "Avro's decimals need their digits"),
        (list[int] | set[int], "can't have two kinds of array"),
        (datetime.timedelta, "no type for timedelta"),
    ],
)
def test_a_type_that_avro_can_not_hold_is_refused_with_a_reason(hint: Any, why: str) -> None:
    with pytest.raises(awoke.ConfigError, match=why):
        awoke.avro(pydantic.create_model("Holder", it=(hint, ...)))
