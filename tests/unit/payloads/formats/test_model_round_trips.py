"""Models of pydantic's that write one shape and read another: refused, proved by each value, or declared one-way."""

from __future__ import annotations

from typing import Any

import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.formats.json import encode
from awoke.payloads.formats.json_schema import schema_of
from awoke.payloads.formats.model_round_trips import round_trip
from awoke.payloads.registry.schema import Part
from tests.support.formats import decoder_for
from tests.support.known_schemas import KnownSchemas

VALUES: tuple[str, Part] = ("orders", "value")


class Written(pydantic.BaseModel):
    id: int = pydantic.Field(default=1, serialization_alias="orderId")


class ReadAs(pydantic.BaseModel):
    id: int = pydantic.Field(default=1, validation_alias="orderId")


class Turned(pydantic.BaseModel):
    a: int = pydantic.Field(default=1, validation_alias=pydantic.AliasChoices("b", "a"))
    b: int = 2


class Deep(pydantic.BaseModel):
    a: int = pydantic.Field(default=1, validation_alias=pydantic.AliasPath("b", 0))


class Excluded(pydantic.BaseModel):
    a: int = pydantic.Field(default=1, exclude=True)


class Strict(pydantic.BaseModel, extra="forbid"):
    id: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.id


class Secret(pydantic.BaseModel):
    password: pydantic.SecretStr


class Outer(pydantic.BaseModel):
    inner: list[Written]


@pydantic.dataclasses.dataclass
class Data:
    id: int = pydantic.Field(default=1, serialization_alias="orderId")


NEVER: list[Any] = [
    Written(),
    ReadAs(),
    Turned(),
    Deep(),
    Excluded(),
    Strict(id=7),
    Secret(password=pydantic.SecretStr("x")),
    Outer(inner=[Written()]),
    Data(7),
]


@pytest.mark.parametrize("value", NEVER, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("make", [awoke.json, awoke.json_schema, awoke.avro])
def test_a_model_that_never_reads_what_it_writes_is_refused_unless_it_does_only_one(make: Any, value: Any) -> None:
    kind = type(value)
    with pytest.raises(awoke.ConfigError, match=r"written|computed"):
        make(kind)
    with pytest.raises(awoke.EncodeError, match=r"written|computed"):
        encode(value)
    if make is awoke.avro and kind is Secret:
        return  # Avro has no type for it.
    schemas, one_way = KnownSchemas(), make(kind, direction="write")
    assert one_way.encoder(*VALUES, schemas)(value)[0]
    with pytest.raises(TypeError, match="direction='write', and reads nothing"):
        one_way.decoder(*VALUES, schemas)
    with pytest.raises(awoke.EncodeError, match="direction='read', and writes nothing"):
        make(kind, direction="read").encoder(*VALUES, schemas)(value)


def test_a_route_reads_a_model_that_is_only_read_and_does_not_return_it() -> None:
    read: Any = decoder_for(ReadAs)
    assert read(b'{"orderId": 7}') == ReadAs.model_validate({"orderId": 7})
    app = awoke.App("shop")

    def handle(order: int) -> ReadAs:
        return ReadAs()

    with pytest.raises(awoke.ConfigError, match=r"ReadAs\.id is written as 'id' and read as 'orderId'"):
        app.on("orders", value=int, output="others")(handle)


class Plain(pydantic.BaseModel):
    id: int = pydantic.Field(alias="orderId")
    note: str | None = None


class Generated(pydantic.BaseModel, alias_generator=lambda name: name.upper(), extra="forbid"):
    order_id: int


class Chosen(pydantic.BaseModel):
    a: int = pydantic.Field(default=1, validation_alias=pydantic.AliasChoices("a", "b"))


class Computed(pydantic.BaseModel):
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


class Opened(pydantic.BaseModel):
    password: pydantic.SecretStr
    _seen: int = pydantic.PrivateAttr(default_factory=iter(range(1000)).__next__)

    @pydantic.field_serializer("password")
    def opened(self, value: pydantic.SecretStr) -> str:
        return value.get_secret_value()


RIGHT: list[Any] = [
    Plain(orderId=7),
    Generated(ORDER_ID=7),  # type: ignore[call-arg]
    Chosen(),
    Computed(id=7),
    Serialized(id=7),
    Opened(password=pydantic.SecretStr("x")),
]


@pytest.mark.parametrize("value", RIGHT, ids=lambda value: type(value).__name__)
def test_a_model_that_reads_what_it_writes_goes_there_and_back(value: Any) -> None:
    kind, schemas = type(value), KnownSchemas()
    read: Any = decoder_for(kind)
    assert read(encode(value)).model_dump() == value.model_dump()
    form = awoke.json_schema(kind)
    decode: Any = form.decoder(*VALUES, schemas)
    assert decode(form.encoder(*VALUES, schemas)(value)[0], []).model_dump() == value.model_dump()


@pytest.mark.parametrize("value", RIGHT[:4], ids=lambda value: type(value).__name__)
def test_avro_has_the_names_that_the_model_writes(value: Any) -> None:
    schemas, form = KnownSchemas(), awoke.avro(type(value))
    decode: Any = form.decoder(*VALUES, schemas)
    assert decode(form.encoder(*VALUES, schemas)(value)[0], []) == value
    written = msgspec.json.decode(value.model_dump_json(by_alias=True))
    assert {each["name"] for each in msgspec.json.decode(schemas.known[0].text)["fields"]} == written.keys()


def test_a_schema_describes_what_is_written_unless_the_type_is_only_read() -> None:
    assert schema_of(Serialized)["properties"]["id"]["type"] == "string"
    assert "double" in schema_of(Computed)["required"]
    assert schema_of(ReadAs, "read")["properties"].keys() == {"orderId"}
    assert schema_of(ReadAs, "write")["properties"].keys() == {"id"}


class Base(pydantic.BaseModel):
    id: int


class Derived(Base):
    more: int


class Holder(pydantic.BaseModel):
    it: Base


class Doubling(pydantic.BaseModel):
    id: int

    @pydantic.field_validator("id")
    @classmethod
    def double(cls, value: int) -> int:
        return 2 * value


class Bought(pydantic.BaseModel):
    id: int


class Returned(pydantic.BaseModel):
    id: int


class Either(pydantic.BaseModel):
    it: Bought | Returned


@pytest.mark.parametrize(
    "value",
    [Holder(it=Derived(id=1, more=2)), Doubling(id=1), Either(it=Returned(id=1))],
    ids=lambda v: type(v).__name__,
)
def test_a_value_that_would_be_read_as_another_is_refused_when_it_is_sent(value: Any) -> None:
    with pytest.raises(awoke.EncodeError, match="would be read as another value"):
        encode(value)
    assert encode(Holder(it=Base(id=1))) == b'{"it":{"id":1}}'
    assert encode(Doubling(id=0)) == b'{"id":0}'
    assert encode(Either(it=Bought(id=1))) == b'{"it":{"id":1}}'


def test_a_union_of_models_that_can_not_be_told_apart_is_refused() -> None:
    for make in (awoke.json, awoke.json_schema):
        with pytest.raises(awoke.ConfigError, match="a Bought may be read as a Returned"):
            make(Bought | Returned)
    with pytest.raises(TypeError, match="a Bought may be read as a Returned"):
        decoder_for(list[Bought | Returned])
    assert decoder_for(Bought | Plain | Generated)


def test_a_plain_model_is_not_read_again() -> None:
    """What costs time is known: only what depends on the value is read again."""
    assert round_trip(Plain).is_sure
    assert not round_trip(Doubling).is_sure
    assert not round_trip(Serialized).is_sure


def test_messagepack_refuses_models_when_it_is_made() -> None:
    for kind in (Plain, list[Plain], msgspec.defstruct("Holder", [("it", Plain)])):
        with pytest.raises(awoke.ConfigError, match="Plain is pydantic's, which writes no MessagePack"):
            awoke.msgpack(kind)
