"""Errors of decoders: their texts have the place, and no part of the value."""

from __future__ import annotations

import enum
import traceback
from typing import Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.formats.avro_reader import plain_converter
from awoke.payloads.formats.unquoted import may_quote, unquoting, without_value
from awoke.payloads.registry.schema import Part, Schema
from tests.support.formats import decoder_for
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Line

SECRET = "hunter2 hunter2"
VALUES: tuple[str, Part] = ("orders", "value")


class Kind(enum.Enum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Cat(msgspec.Struct, tag="cat"):
    id: int


class Dog(msgspec.Struct, tag="dog"):
    id: int


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    id: int = 0


class Holder(msgspec.Struct):
    kinds: dict[str, list[Kind]] = {}
    pet: Cat | Dog | None = None
    number: Number | None = None
    word: Literal["a", "b"] = "a"


class Plain(msgspec.Struct):
    id: int
    at: UUID | None = None
    names: dict[str, tuple[float, ...]] = {}


class CatModel(pydantic.BaseModel):
    kind: Literal["cat"]


class DogModel(pydantic.BaseModel):
    kind: Literal["dog"]


class Model(pydantic.BaseModel):
    model_config = {"extra": "forbid"}
    pet: CatModel | DogModel | None = pydantic.Field(None, discriminator="kind")
    counts: dict[str, int] = {}
    id: UUID | None = None
    kind: Kind | None = None
    url: pydantic.HttpUrl | None = None
    word: str = pydantic.Field("a", alias="aWord")


def error_of(decode: Any, data: bytes, *more: Any) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the texts are compared.
        decode(data, *more)
    error: BaseException = caught.value
    return error


def assert_unquoted(error: BaseException) -> str:
    """Checks that no error of the chain has the value, and returns the text."""
    assert SECRET not in "".join(traceback.format_exception(error))
    assert (error.__cause__, error.__context__) == (None, None)
    return str(error)


@pytest.mark.parametrize(
    ("value_type", "document", "text"),
    [
        (Kind, SECRET, "Invalid enum value"),
        (Holder, {"kinds": {SECRET: ["a", SECRET]}}, "Invalid enum value - at `$.kinds[...][1]`"),
        (Holder, {"pet": {"type": SECRET}}, "Invalid value - at `$.pet.type`"),
        (Holder, {"number": 4111}, "Invalid enum value - at `$.number`"),
        (Holder, {"word": SECRET}, "Invalid enum value - at `$.word`"),
        (dict[Kind, int], {SECRET: 1}, "Invalid enum value - at `key` in `$`"),
        (Kind, f"x' - at `$.{SECRET}`", "Invalid enum value"),
        (Strict, {SECRET: 1}, "Object has unknown fields"),
        (list[Strict], [{SECRET: 1}], "Object has unknown fields - at `$[0]`"),
        (list[Strict], [{"nane": 1}], "Object contains unknown field `nane` - at `$[0]`"),
        (Plain, {"id": SECRET}, "Expected `int`, got `str` - at `$.id`"),
        (Plain, {"id": 1, "at": SECRET}, "Invalid UUID - at `$.at`"),
    ],
)
@pytest.mark.parametrize("kind", ["json", "msgpack", "avro", "json schema"])
def test_msgspec_s_errors_have_the_place_only(value_type: Any, document: Any, text: str, kind: str) -> None:
    if kind == "json":
        error = error_of(decoder_for(value_type), msgspec.json.encode(document))
    elif kind == "msgpack":
        error = error_of(awoke.msgpack(value_type).decoder(*VALUES, KnownSchemas()), msgspec.msgpack.encode(document))
    elif kind == "json schema":
        form, known = awoke.json_schema(value_type, schema={}), KnownSchemas(Schema("{}", "JSON"))
        error = error_of(form.decoder(*VALUES, known), b"\0\0\0\0\1" + msgspec.json.encode(document), [])
    else:
        error = error_of(plain_converter(value_type), document)
    assert assert_unquoted(error) == text


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"pet": {"kind": SECRET}}, "The tag is none of those that are expected - at `$.pet`"),
        ({"counts": {SECRET: "x"}}, "unable to parse string as an integer - at `$.counts.[...]`"),
        ({"counts": {"alice": "x"}}, "unable to parse string as an integer - at `$.counts.[...]`"),
        ({SECRET: 1}, "Extra inputs are not permitted - at `$.[...]`"),
        ({"aWort": 1}, "Extra inputs are not permitted - at `$.aWort`"),
        ({"id": SECRET}, "Input should be a valid UUID - at `$.id`"),
        ({"kind": SECRET}, "Input should be 'a' - at `$.kind`"),
        ({"url": SECRET}, " - at `$.url`"),
        ({"aWord": 7}, "Input should be a valid string - at `$.aWord`"),
    ],
)
def test_pydantic_s_errors_have_the_place_only(document: Any, text: str) -> None:
    said = assert_unquoted(error_of(decoder_for(Model), msgspec.json.encode(document)))
    assert said.endswith(text)
    assert "alice" not in said


@pytest.mark.parametrize(
    ("schema", "own", "data"),
    [
        ('{"type":"enum","name":"K","symbols":["hunter2"]}', '{"type":"enum","name":"K","symbols":["a"]}', b"\0"),
        ('{"type":"enum","name":"K","symbols":["a"]}', None, b"\x08"),
        ('{"type":"string","logicalType":"uuid"}', None, b"\x1e" + SECRET.encode()),
        ('"string"', None, b"\x1e" + SECRET.encode()[:-1] + b"\xff"),
        ('"string"', '"long"', b"\x1e" + SECRET.encode()),
    ],
    ids=["symbol", "index", "uuid", "text", "type"],
)
def test_fastavro_s_errors_are_named_and_not_quoted(schema: str, own: str | None, data: bytes) -> None:
    form = awoke.avro(schema=own) if own else awoke.avro()
    decode = form.decoder(*VALUES, KnownSchemas(Schema(schema)))
    said = assert_unquoted(error_of(decode, b"\0\0\0\0\1" + data, []))
    assert "hunter2" not in said
    assert said.startswith(("fastavro can't read the record: ", "the schemas of writer and reader do not fit"))


def test_jsonschema_s_and_protobuf_s_errors_are_not_quoted() -> None:
    decode = awoke.json_schema().decoder(*VALUES, KnownSchemas(Schema('{"const": 1}', "JSON")))
    assert "breaks the rule 'const'" in assert_unquoted(error_of(decode, b'\0\0\0\0\1"' + SECRET.encode() + b'"', []))
    assert SECRET not in str(error_of(decoder_for(Line), b"\x0a\xff" + SECRET.encode()))


def test_a_class_of_another_library_is_not_quoted() -> None:
    class Foreign:
        def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name.
            return b""

        @classmethod
        def FromString(cls, data: bytes) -> Foreign:  # noqa: N802 - protobuf's name.
            raise KeyError(data)

    assert assert_unquoted(error_of(decoder_for(Foreign), SECRET.encode())).endswith("Foreign: KeyError")


def test_types_whose_errors_quote_nothing_keep_their_decoder() -> None:
    def decode(data: bytes) -> None: ...

    assert unquoting(decode, Plain) is decode
    assert [may_quote(each) for each in (Plain, int, dict[str, Any], Holder, Strict, list[Kind])] == [
        *3 * [False],
        *3 * [True],
    ]


def test_a_text_of_other_words_stays() -> None:
    assert without_value("my own words about 7") == "my own words about 7"
