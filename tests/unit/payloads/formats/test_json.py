"""Values as JSON: written and read by msgspec, and by pydantic where a model is."""

from __future__ import annotations

import dataclasses
import pathlib
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.formats import json
from awoke.payloads.formats.json import encode, json_decoder, read, result_decoder, writer_of
from tests.unit.payloads.formats.test_json_types import Data, Model, Order, Plain, WithModel, WithPlain


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, b"null"),
        ({"a": [1, 0.5, True]}, b'{"a":[1,0.5,true]}'),
        ("caf\u00e9", '"caf\u00e9"'.encode()),
        (Order(7), b'{"id":7}'),
        (Data(7), b'{"id":7}'),
        (datetime(2026, 1, 2, tzinfo=UTC), b'"2026-01-02T00:00:00Z"'),
        (Decimal("0.10"), b'"0.10"'),
        (msgspec.Raw(b"[ 1 ]"), b"[ 1 ]"),
        ([Model(id=1), Order(2)], b'[{"id":1,"at":null},{"id":2}]'),
    ],
)
def test_a_value_is_written_as_json(value: object, written: bytes) -> None:
    assert encode(value) == written


def test_what_can_not_be_written_is_named() -> None:
    class Holds(pydantic.BaseModel, arbitrary_types_allowed=True):
        inner: Any

    for value in (Plain(), [Plain()], Holds(inner=Plain())):
        with pytest.raises(awoke.EncodeError, match="Plain"):
            encode(value)


@pytest.mark.parametrize("value", ["lone \ud800", {(1, 2): 3}, pathlib.Path("/")])
def test_a_value_that_is_no_json_is_refused_with_its_type(value: object) -> None:
    with pytest.raises(awoke.EncodeError, match=f"a value of type {type(value).__qualname__} can't be written"):
        encode(value)


@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        (int, b"7", 7),
        (Order, b'{"id": 7, "more": 1}', Order(7)),
        (list[Model], b'[{"id": "7"}]', [Model(id=7)]),
        (WithModel, b'{"model": {"id": "7"}}', WithModel(Model(id=7))),
        (Any, b'{"id": 7}', {"id": 7}),
    ],
)
def test_json_is_read_as_a_type(kind: Any, body: bytes, value: object) -> None:
    assert json_decoder(kind)(body) == read(body, kind) == value


@pytest.mark.parametrize(
    ("kind", "body"),
    [(int, b'"7"'), (Order, b"{}"), (Model, b"{}"), (WithModel, b'{"model": {}}'), (list[Model], b"["), (Any, b"")],
)
def test_other_json_is_an_error_of_msgspec_whoever_reads_it(kind: Any, body: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        json_decoder(kind)(body)


def test_a_type_that_is_no_json_is_refused_before_a_value_comes() -> None:
    with pytest.raises(TypeError, match="Plain"):
        json_decoder(WithPlain)
    with pytest.raises(awoke.ConfigError, match=r"^returns=<class '.*Plain'>: ") as refused:
        result_decoder(Plain)
    assert refused.value.property == "returns"


def test_the_decoder_of_a_result_is_made_once() -> None:
    assert result_decoder(list[Order]) is result_decoder(list[Order])


@pydantic.dataclasses.dataclass
class Doubled:
    id: int

    @pydantic.field_serializer("id")
    def double(self, value: int) -> int:
        return 2 * value


def test_a_dataclass_of_pydantics_is_written_by_pydantic() -> None:
    assert writer_of(Doubled, True)(Doubled(1)) == b'{"id":2}'
    with pytest.raises(awoke.EncodeError, match="would be read as another value"):
        encode(Doubled(1))


class Positive(pydantic.BaseModel):
    amount: pydantic.PositiveInt


@dataclasses.dataclass
class Payment:
    by: Positive
    at: datetime | None = None


def test_a_model_inside_a_type_of_msgspecs_is_checked_by_pydantic() -> None:
    decode = json_decoder(Payment)
    assert decode(b'{"by": {"amount": "3"}}') == Payment(Positive(amount=3))
    with pytest.raises(msgspec.ValidationError, match="greater than 0"):
        decode(b'{"by": {"amount": -3}}')


def test_a_value_that_is_no_model_is_left_to_msgspec() -> None:
    assert json.read_model(Order, {"id": 7}) == {"id": 7}
