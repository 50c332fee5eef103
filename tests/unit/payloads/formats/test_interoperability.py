"""The table of docs/schemas.md: which kinds of types go through which formats, to and from which libraries."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import io
import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import attrs
import fastavro
import msgspec
import pydantic
import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp

import awoke
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import decoder_of, encoder_of, format_of
from awoke.payloads.registry.schema import Part as PartName
from tests.support.generated_messages import BITS, UNSIGNED, Part, order_of
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Amount, Line, Note, Order

DOCUMENT = Path(__file__).parents[4] / "docs" / "schemas.md"
BEGIN, END = "<!-- The table of interoperability: tests write it. -->\n\n", "\n<!-- End of the table. -->"
BEGIN_OF_MESSAGES = "<!-- The table of protobuf: tests write it. -->\n\n"
VALUES: tuple[str, PartName] = ("orders", "value")
AT = SerializationContext("orders", MessageField.VALUE)
KEPT = (bytes, datetime.datetime, datetime.date, datetime.time, uuid.UUID, decimal.Decimal)
NOON = datetime.datetime(2026, 11, 28, 12, 0, 0, 5, tzinfo=datetime.UTC)
Item = TypeVar("Item")


class Size(enum.Enum):
    SMALL = "small"


class State(enum.Enum):
    IN_WORK = "in work"


class Level(enum.IntEnum):
    HIGH = 7


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Struct(msgspec.Struct):
    id: int
    price: float = 0.5
    note: str | None = None


@dataclasses.dataclass
class Data:
    id: int


@attrs.define
class Attrs:
    id: int


class Model(pydantic.BaseModel):
    id: int
    note: str | None = None


class Aliased(pydantic.BaseModel):
    id: int = pydantic.Field(alias="orderId")


class Tree(msgspec.Struct):
    name: str
    more: list[Tree] = []


class Box(msgspec.Struct, Generic[Item]):
    content: Item


class Placed(msgspec.Struct, tag=True):
    id: int


class Cancelled(msgspec.Struct, tag=True):
    id: int


class Event(msgspec.Struct):
    what: Placed | Cancelled
    more: list[Placed | Cancelled] = []
    last: Placed | Cancelled | None = None


@dataclasses.dataclass
class Sent:
    id: int


@dataclasses.dataclass
class Lost:
    id: int


@dataclasses.dataclass
class Parcel:
    what: Sent | Lost


class Bought(pydantic.BaseModel):
    id: int


class Returned(pydantic.BaseModel):
    id: int


class Purchase(pydantic.BaseModel):
    what: Bought | Returned


class Tagged(pydantic.BaseModel):
    kind: Literal["tagged"] = "tagged"
    id: int


class Other(pydantic.BaseModel):
    kind: Literal["other"] = "other"
    id: int


class Written(pydantic.BaseModel):
    id: int = pydantic.Field(default=1, serialization_alias="orderId")


class ReadAs(pydantic.BaseModel):
    id: int = pydantic.Field(default=1, validation_alias="orderId")


class Computed(pydantic.BaseModel):
    id: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.id


class Strict(pydantic.BaseModel, extra="forbid"):
    id: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.id


class Serialized(pydantic.BaseModel):
    id: int

    @pydantic.field_serializer("id")
    def as_text(self, value: int) -> str:
        return str(value)


class Secret(pydantic.BaseModel):
    password: pydantic.SecretStr


class Excluded(pydantic.BaseModel):
    id: int = pydantic.Field(default=1, exclude=True)


class Doubling(pydantic.BaseModel):
    id: int

    @pydantic.field_validator("id")
    @classmethod
    def double(cls, value: int) -> int:
        return 2 * value


@dataclasses.dataclass
class Grown:
    id: int

    def __post_init__(self) -> None:
        self.id += 1


@dataclasses.dataclass
class Checked:
    id: int

    def __post_init__(self) -> None:
        assert self.id > 0


@dataclasses.dataclass
class Left:
    id: int
    state: int = dataclasses.field(default=3, init=False)


def changed(value: Left) -> Left:
    value.state = 9
    return value


@attrs.define
class Private:
    _id: int


class Holder(msgspec.Struct, Generic[Item]):
    """Has a value of each type, so that the types are parts of a record."""

    value: Item


def held(hint: Any) -> Any:
    return msgspec.defstruct("Holder", [("value", hint)])


class Row(NamedTuple):
    """A kind of types, one type, and one value."""

    kind: str
    hint: Any
    value: Any


def of(kind: str, hint: Any, value: Any) -> Row:
    """Returns a row for a field of a record."""
    holder = held(hint)
    return Row(kind, holder, holder(value))


Money = Annotated[decimal.Decimal, msgspec.Meta(extra={"precision": 8, "scale": 2})]
Local = Annotated[datetime.datetime, msgspec.Meta(tz=False)]
ROWS = [
    Row("msgspec.Struct", Struct, Struct(7, 2.5, "x")),
    Row("dataclass", Data, Data(7)),
    Row("attrs", Attrs, Attrs(7)),
    Row("pydantic model", Model, Model(id=7, note="x")),
    Row("pydantic: one alias for both directions", Aliased, Aliased(orderId=7)),
    Row("pydantic: tagged union", Tagged | Other, Other(id=7)),
    Row("list of records", list[Struct], [Struct(1), Struct(2, note="x")]),
    Row("recursive", Tree, Tree("a", [Tree("b", [Tree("c")])])),
    Row("generic", Box[int], Box(7)),
    Row("union of records", Placed | Cancelled, Cancelled(7)),
    Row("union of records in fields", Event, Event(Cancelled(1), [Placed(2), Cancelled(3)], Cancelled(4))),
    Row("union without tags in a field", Parcel, Parcel(Lost(7))),
    Row("pydantic: union without tags in a field", Purchase, Purchase(what=Returned(id=7))),
    Row("pydantic: union without tags", Bought | Returned, Returned(id=7)),
    of("integer of 64 bits", int, -(2**63)),
    of("integer of more bits", int, 2**70),
    of("float", float, 0.1),
    of("NaN, infinity", float, float("inf")),
    of("bytes", bytes, b"\0\xff"),
    of("datetime with a time zone", datetime.datetime, NOON),
    of("datetime without one", datetime.datetime, NOON.replace(tzinfo=None)),
    of("datetime without one, declared so", Local, NOON.replace(tzinfo=None)),
    of("date", datetime.date, NOON.date()),
    of("time", datetime.time, NOON.time()),
    of("timedelta", datetime.timedelta, datetime.timedelta(1, 2, 3)),
    of("UUID", uuid.UUID, uuid.UUID(int=7)),
    of("decimal with digits declared", Money, decimal.Decimal("1.50")),
    of("decimal", decimal.Decimal, decimal.Decimal("1.50")),
    of("enum of names", Size, Size.SMALL),
    of("enum of other strings", State, State.IN_WORK),
    of("enum of integers", Level, Level.HIGH),
    of("enum of both", Mixed, Mixed.ONE),
    of("literal", Literal["a", "b"], "b"),
    of("dict with keys that are integers", dict[int, str], {1: "a"}),
    of("set", set[int], {1, 2}),
    of("tuple of two types", tuple[int, str], (1, "a")),
    Row("pydantic: alias for writing only", Written, Written(id=7)),
    Row("pydantic: alias for reading only", ReadAs, ReadAs.model_validate({"orderId": 7})),
    Row("pydantic: computed field", Computed, Computed(id=7)),
    Row("pydantic: computed field, extra fields forbidden", Strict, Strict(id=7)),
    Row("pydantic: serializer to another type", Serialized, Serialized(id=7)),
    Row("pydantic: `SecretStr`", Secret, Secret(password=pydantic.SecretStr("x"))),
    Row("pydantic: excluded field", Excluded, Excluded(id=7)),
    Row("pydantic: validator that changes the value again", Doubling, Doubling.model_construct(id=7)),
    Row("`__post_init__` that checks the value", Checked, Checked(7)),
    Row("`__post_init__` that changes the value again", Grown, Grown(7)),
    Row("list of such", list[Grown], [Grown(7)]),
    Row("dataclass: field that is no argument, changed", Left, changed(Left(7))),
    Row("attrs: field with an underscore", Private, Private(7)),
]


class Message(NamedTuple):
    """A value in a format of awoke's."""

    data: bytes
    decode: Callable[[bytes], Any]
    schema: str


def sent(make: Callable[[Any], Any], row: Row) -> Message | None:
    """Returns a value as it is sent; None if that is refused."""
    schemas = KnownSchemas()
    try:
        said = make(row.hint)
        encode: Any = encoder_of(said, *VALUES, BY_TYPE, schemas)
        decoder: Any = decoder_of(format_of(said, BY_TYPE), *VALUES, schemas)
        data = BY_TYPE.encode(row.value) if encode is None else encode(row.value)[0]
    except (TypeError, awoke.EncodeError, awoke.ConfigError):
        return None
    reads_headers = format_of(said, BY_TYPE).reads_headers
    decode = (lambda payload: decoder(payload, [])) if reads_headers else decoder
    assert decode(data) == row.value, f"{row.kind}: {decode(data)!r} was read"
    return Message(data, decode, schemas.known[0].text if schemas.known else "")


def datum(value: Any, for_json: bool = False) -> Any:
    """Returns a value as dicts, lists and plain values, by its own library; with the names of records for fastavro."""
    if isinstance(value, pydantic.BaseModel):
        found = {name: datum(part, for_json) for name, part in value}
        if for_json:
            return value.model_dump(mode="json", by_alias=True)
        found |= {name: getattr(value, name) for name in type(value).model_computed_fields}
        aliases = {name: field.serialization_alias or name for name, field in type(value).model_fields.items()}
        return {"-type": type(value).__name__, **{aliases.get(name, name): part for name, part in found.items()}}
    if for_json:
        return json.loads(msgspec.json.encode(value))
    if isinstance(value, msgspec.Struct):
        return {
            "-type": type(value).__name__,
            **{name: datum(getattr(value, name)) for name in value.__struct_fields__},
        }
    if dataclasses.is_dataclass(value) or hasattr(value, "__attrs_attrs__"):
        names = [each.name for each in getattr(value, "__attrs_attrs__", ())] or list(vars(value))
        return {"-type": type(value).__name__, **{name: datum(getattr(value, name)) for name in names}}
    if isinstance(value, (list, set)):
        return [datum(each) for each in value]
    return value.value if isinstance(value, enum.Enum) else value


def without_names(value: Any) -> Any:
    """Returns what `datum` has made without the names of records."""
    if isinstance(value, dict):
        return {name: without_names(each) for name, each in value.items() if name != "-type"}
    return [without_names(each) for each in value] if isinstance(value, list) else value


def directions(to_theirs: bool, from_theirs: bool) -> str:
    """Returns a cell: both directions, or what their library does not do."""
    return {(True, True): "both", (True, False): "read", (False, True): "written"}.get((to_theirs, from_theirs), "no")


def holds(check: Callable[[], bool]) -> bool:
    """Tells whether a library does something; an error of its own means that it does not."""
    try:
        return check()
    except Exception:
        return False


def client(kind: str, schema: str) -> SchemaRegistryClient:
    """Returns confluent-kafka's registry in the process, with one schema of id 1."""
    registry = SchemaRegistryClient.new_client({"url": f"mock://{uuid.uuid4()}"})
    assert registry.register_schema("orders-value", TheirSchema(schema, kind)) == 1
    return registry


def with_pydantic(row: Row) -> str:
    found = sent(lambda hint: hint, row)
    adapter: Any = pydantic.TypeAdapter(row.hint) if isinstance(row.value, pydantic.BaseModel) else None
    if found is None or adapter is None:
        return "refused" if found is None else "–"
    return directions(
        holds(lambda: adapter.validate_json(found.data) == row.value),
        holds(lambda: found.decode(adapter.dump_json(row.value, by_alias=True)) == row.value),
    )


def with_json_schema(row: Row) -> str:
    found = sent(awoke.json_schema, row)
    if found is None:
        return "refused"
    registry, plain = client("JSON", found.schema), datum(row.value, True)
    write = JSONSerializer(found.schema, registry, lambda value, _: value)
    read = JSONDeserializer(found.schema, schema_registry_client=registry)
    return directions(
        holds(lambda: read(found.data, AT) == plain), holds(lambda: found.decode(write(plain, AT)) == row.value)
    )


def with_fastavro(row: Row) -> str:
    found = sent(awoke.avro, row)
    if found is None:
        return "refused"
    schema, plain = fastavro.parse_schema(json.loads(found.schema)), datum(row.value)

    def written() -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, plain)
        return found.data[:5] + stream.getvalue()

    return directions(
        holds(
            lambda: bool(fastavro.schemaless_reader(io.BytesIO(found.data[5:]), schema, None) == without_names(plain))
        ),
        holds(lambda: found.decode(written()) == row.value),
    )


def with_confluent_avro(row: Row) -> str:
    found = sent(awoke.avro, row)
    if found is None:
        return "refused"
    registry, plain = client("AVRO", found.schema), datum(row.value)
    write, read = AvroSerializer(registry, found.schema), AvroDeserializer(registry)
    return directions(
        holds(lambda: bool(read(found.data, AT) == without_names(plain))),
        holds(lambda: found.decode(write(plain, AT)) == row.value),
    )


def alone(make: Callable[[Any], Any]) -> Callable[[Row], str]:
    return lambda row: "refused" if sent(make, row) is None else "both"


COLUMNS: dict[str, Callable[[Row], str]] = {
    "JSON": alone(lambda hint: hint),
    "JSON, pydantic": with_pydantic,
    "MessagePack": alone(awoke.msgpack),
    "JSON Schema": alone(awoke.json_schema),
    "JSON Schema, confluent-kafka": with_json_schema,
    "Avro": alone(awoke.avro),
    "Avro, fastavro": with_fastavro,
    "Avro, confluent-kafka": with_confluent_avro,
}


def lines() -> Iterator[str]:
    """Yields the lines of the table."""
    yield "| Type | " + " | ".join(COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 1) + "|"
    for row in ROWS:
        yield f"| {row.kind} | " + " | ".join(column(row) for column in COLUMNS.values()) + " |"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_table_of_the_documentation_is_what_is_so() -> None:
    """Write it anew: `python -m tests.unit.payloads.formats.test_interoperability`."""
    committed = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    assert committed.splitlines() == list(lines())


def message(*parts: Part, syntax: Any = "proto3", **values: Any) -> Any:
    """Returns a message `Order` with these fields and values."""
    return order_of(*parts, syntax=syntax)(**values)


def with_time() -> Any:
    found = message(Part("at", ".google.protobuf.Timestamp"), Part("lasts", ".google.protobuf.Duration"))
    found.at.FromDatetime(NOON)
    found.lasts.FromSeconds(-7)
    return found


def with_any() -> Any:
    found = message(Part("any", ".google.protobuf.Any"), Part("free", ".google.protobuf.Struct"))
    found.any.Pack(Timestamp(seconds=7))
    found.free.update({"a": [1, None, {"b": True}]})
    return found


def with_unknown_fields() -> Any:
    return message(Part("a", "int64"), a=1).FromString(
        message(Part("a", "int64"), Part("b", "string"), b="x").SerializeToString()
    )


def with_recursion() -> Any:
    found = message(Part("more", "Order", "repeated"), Part("line", "Line"))
    found.more.add().more.add().line.next.next.sku = "x"
    return found


NUMBERS = [Part(kind, kind) for kind in (*BITS, *UNSIGNED)]
EXTREMES = {kind: -(1 << bits) for kind, bits in BITS.items()} | {
    kind: (1 << bits) - 1 for kind, bits in UNSIGNED.items()
}
MESSAGES = [
    ("integers of each type", message(*NUMBERS, **EXTREMES)),
    ("float, double", message(Part("a", "float"), Part("b", "double"), a=0.5, b=0.1)),
    ("infinity", message(Part("a", "float"), Part("b", "double"), a=float("-inf"), b=float("inf"))),
    (
        "bool, string, bytes",
        message(Part("a", "bool"), Part("b", "string"), Part("c", "bytes"), a=True, b="\u00fc", c=b"\xff"),
    ),
    ("enum", message(Part("a", "Color"), a=2)),
    ("enum: number without a name", message(Part("a", "Color"), a=77)),
    ("optional field with its default", message(Part("a", "int64", "optional"), a=0)),
    ("message without values", message(Part("a", "int64"))),
    ("repeated", message(Part("a", "int64", "repeated"), Part("b", "string", "repeated"), a=[1, 2], b=["", "x"])),
    ("map", message(Part("a", "map<string,int64>"), Part("b", "map<int32,string>"), a={"x": 1}, b={-1: "y"})),
    ("oneof", message(Part("a", "int64", "one"), Part("b", "string", "one"), b="")),
    ("message in a field", Order(id=7, note=Note(text="x"), lines=[Line(sku="b")])),
    ("message of another file", Order(price=Amount(cents=5))),
    ("message inside of another", Note(text="x")),
    ("recursive", with_recursion()),
    ("`Timestamp`, `Duration`", with_time()),
    ("`Any`, `Struct`", with_any()),
    (
        "wrappers",
        message(
            Part("a", ".google.protobuf.Int64Value"), Part("b", ".google.protobuf.StringValue"), a={"value": 0}, b={}
        ),
    ),
    ("proto2: required field", message(Part("a", "int64", "required"), syntax="proto2", a=0)),
    ("proto2: required field that is missing", message(Part("a", "int64", "required"), syntax="proto2")),
    ("unknown fields", with_unknown_fields()),
]


def of_message(make: Callable[[Any], Any], value: Any, check: Callable[[Message], str]) -> str:
    found = sent(make, Row("", type(value), value))
    return "refused" if found is None else check(found)


def with_google(value: Any) -> str:
    kind: Any = type(value)
    return of_message(
        lambda hint: hint,
        value,
        lambda found: directions(
            holds(lambda: bool(kind.FromString(found.data) == value)),
            holds(lambda: bool(found.decode(value.SerializeToString()) == value)),
        ),
    )


def with_confluent_protobuf(value: Any) -> str:
    kind: Any = type(value)
    registry = SchemaRegistryClient.new_client({"url": f"mock://{uuid.uuid4()}"})
    write = ProtobufSerializer(kind, registry, {"use.deprecated.format": False})
    read = ProtobufDeserializer(kind, {"use.deprecated.format": False}, registry)

    def check(found: Message) -> str:
        theirs: Any = write(value, AT)  # It registers the schema, which has another id than ours.
        assert found.data[5:6] == theirs[5:6]
        return directions(
            holds(lambda: bool(read(theirs[:5] + found.data[5:], AT) == value)),
            holds(lambda: bool(found.decode(found.data[:5] + theirs[5:]) == value)),
        )

    return of_message(awoke.protobuf, value, check)


OF_MESSAGES: dict[str, Callable[[Any], str]] = {
    "class alone": lambda value: of_message(lambda hint: hint, value, lambda _: "both"),
    "class alone, google.protobuf": with_google,
    "`awoke.protobuf`": lambda value: of_message(awoke.protobuf, value, lambda _: "both"),
    "`awoke.protobuf`, confluent-kafka": with_confluent_protobuf,
}


def lines_of_messages() -> Iterator[str]:
    """Yields the lines of the table of protobuf."""
    yield "| Protobuf | " + " | ".join(OF_MESSAGES) + " |"
    yield "|---" * (len(OF_MESSAGES) + 1) + "|"
    for kind, value in MESSAGES:
        yield f"| {kind} | " + " | ".join(column(value) for column in OF_MESSAGES.values()) + " |"


def test_the_table_of_protobuf_is_what_is_so() -> None:
    committed = DOCUMENT.read_text().partition(BEGIN_OF_MESSAGES)[2].partition(END)[0]
    assert committed.splitlines() == list(lines_of_messages())


if __name__ == "__main__":
    for begin, made in ((BEGIN, lines), (BEGIN_OF_MESSAGES, lines_of_messages)):
        before, _, rest = DOCUMENT.read_text().partition(begin)
        DOCUMENT.write_text(before + begin + "\n".join(made()) + END + rest.partition(END)[2])
