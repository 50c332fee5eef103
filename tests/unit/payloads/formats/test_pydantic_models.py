"""Models of pydantic's: which types they are in, and how they are read and written."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import pydantic
import pytest

from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.json import encode
from awoke.payloads.formats.pydantic_models import is_model, mentions_model, takes_none, to_json
from tests.support.formats import decoder_for
from tests.unit.payloads.formats.test_json_types import Cat, Data, Dog, Model, Order, PydanticData, WithModel

Value = TypeVar("Value")


class Aliased(pydantic.BaseModel):
    order_id: int = pydantic.Field(alias="orderId")


class Box(pydantic.BaseModel, Generic[Value]):
    content: Value


@pytest.mark.parametrize(("kind", "expected"), [(Model, True), (PydanticData, True), (Box[int], True), (Data, False)])
def test_a_class_of_pydantics_is_told_from_others(kind: Any, expected: bool) -> None:
    assert is_model(kind) is expected
    assert not is_model(list[Model])


@pytest.mark.parametrize(
    "kind",
    [
        Model,
        Model | None,
        list[Model],
        dict[str, list[Cat | Dog]],
        Box[int],
        list[Box[int]],
        pydantic.PositiveInt,
        Annotated[str, pydantic.StringConstraints(max_length=3)],
        Annotated[list[Model], "checked"],
    ],
)
def test_a_type_with_a_model_somewhere_is_pydantics(kind: Any) -> None:
    assert mentions_model(kind)


@pytest.mark.parametrize("kind", [int, Order, list[Order], Data, Annotated[int, msgspec.Meta(gt=0)], Any, "Model"])
def test_a_type_without_a_model_is_not(kind: Any) -> None:
    assert not mentions_model(kind)


def test_without_pydantic_nothing_is_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pydantic")
    assert not is_model(Model)
    assert not mentions_model(list[Model])


def test_models_are_read_as_pydantic_reads_them() -> None:
    read: Any = decoder_for(Model)
    assert read(b'{"id": "7", "at": "2026-01-02T03:04:05Z"}') == Model.model_validate(
        {"id": 7, "at": "2026-01-02T03:04:05Z"}
    )
    both: Any = decoder_for(Annotated[Cat | Dog, pydantic.Field(discriminator="kind")])
    assert both(b'{"kind": "dog"}') == Dog(kind="dog")
    within: Any = decoder_for(WithModel)
    assert within(b'{"model": {"id": 1}, "more": [{"id": 2}]}') == WithModel(Model(id=1), [Model(id=2)])
    positive: Any = decoder_for(pydantic.PositiveInt)
    with pytest.raises(msgspec.ValidationError, match="greater than 0"):
        positive(b"-1")


def test_a_model_that_takes_none_gets_tombstones() -> None:
    maybe: Any = decoder_for(Model | None)
    assert (maybe(None), maybe(b'{"id": 1}')) == (None, Model(id=1))
    always: Any = decoder_for(Model)
    with pytest.raises((TypeError, msgspec.ValidationError)):
        always(None)


def test_what_is_wrong_with_a_value_is_said_without_the_value() -> None:
    read: Any = decoder_for(list[Model])
    with pytest.raises(msgspec.ValidationError, match=r"valid integer.* - at `\$\.1\.id`") as refused:
        read(b'[{"id": 1}, {"id": "secret"}]')
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Model(id=1), b'{"id":1,"at":null}'),
        ([Model(id=1)], b'[{"id":1,"at":null}]'),
        ({"order": Cat(kind="cat")}, b'{"order":{"kind":"cat"}}'),
        (WithModel(Model(id=1)), b'{"model":{"id":1,"at":null},"more":[]}'),
        (PydanticData(1), b'{"id":1}'),
    ],
)
def test_models_are_written_as_pydantic_writes_them(value: object, expected: bytes) -> None:
    assert encode(value) == expected


def test_a_model_is_read_as_it_was_written() -> None:
    read: Any = decoder_for(Aliased)
    assert read(encode(Aliased(orderId=7))) == Aliased(orderId=7)


WITHOUT_PYDANTIC = """
import sys
sys.modules.update(BLOCKED)
import msgspec, awoke
from awoke.payloads.formats.json import encode

class Order(msgspec.Struct):
    id: int

def echo(order: Order) -> Order:
    return order

app = awoke.App("app")
app.on("orders", output="out")(echo)
app.rpc.method(echo)
assert encode(Order(1)) == b'{"id":1}'
assert app.routes["orders"].value_format.decoder("orders", "value", app.schemas)(b'{"id":1}') == Order(1)
assert sys.modules.get("pydantic") is None
"""


@pytest.mark.parametrize("blocked", ["{}", "{'pydantic': None}"])
def test_pydantic_is_neither_needed_nor_imported(blocked: str) -> None:
    code = WITHOUT_PYDANTIC.replace("BLOCKED", blocked)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_error_says_where_in_the_whole_the_value_lies() -> None:
    read = pydantic_models.decoder_for(list[Model], "$.order")
    with pytest.raises(msgspec.ValidationError) as refused:
        read(b'[{"id": "secret"}, {"at": "secret"}]')
    text = str(refused.value)
    assert "secret" not in text
    assert [part.rpartition(" - at ")[2] for part in text.split("; ")] == [
        "`$.order.0.id`",
        "`$.order.1.id`",
        "`$.order.1.at`",
    ]


class Plain:
    """A class that pydantic knows nothing of."""


def test_a_type_that_pydantic_can_not_read_is_refused_in_one_sentence() -> None:
    with pytest.raises(TypeError) as refused:
        pydantic_models.decoder_for(list[Plain])
    assert "Plain" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    ("kind", "expected"), [(Model | None, True), (Model, False), (list[Model], False), (Cat | Dog | None, True)]
)
def test_a_type_takes_none_if_none_is_one_of_its_values(kind: Any, expected: bool) -> None:
    assert takes_none(kind) is expected


class Holds(pydantic.BaseModel, arbitrary_types_allowed=True):
    inner: Any


def test_a_model_is_written_under_its_aliases_and_not_with_what_json_can_not_hold() -> None:
    assert to_json(Aliased(orderId=7)) == b'{"orderId":7}'
    with pytest.raises(ValueError, match="Plain"):
        to_json(Holds(inner=Plain()))
