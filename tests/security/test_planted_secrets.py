"""A secret stands in each kind of type and in each place of it, and no output of a console or a command shows it."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

import awoke
from awoke.console.explorer.parts import DecodedParts
from awoke.console.secret_names import names_of, topics_of
from awoke.console.web.code import Code
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.secret_fields import masked
from awoke.settings import load

CANARY = "canary-4711"
Card = Annotated[str, awoke.Secret]
Item = TypeVar("Item")


class Struct(msgspec.Struct):
    card: Card
    n: int = 1


class Tagged(msgspec.Struct, tag="t", rename="camel"):
    card_number: Card


class Array(msgspec.Struct, array_like=True):
    n: int
    card: Card


class TaggedArray(msgspec.Struct, array_like=True, tag="t"):
    card: Card


@dataclasses.dataclass
class Data:
    card: Card
    n: int = 1


class Named(NamedTuple):
    n: int
    card: Card


class Typed(TypedDict):
    card: Card


class Model(pydantic.BaseModel):
    card: Card
    n: int = 1


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    card: Card = pydantic.Field(validation_alias="Card", serialization_alias="theCard")


class WithSecretStr(pydantic.BaseModel):
    card: Card
    password: pydantic.SecretStr


class Root(pydantic.RootModel[list[Card]]):
    pass


class RootOfModel(pydantic.RootModel[Model]):
    pass


class Serialized(pydantic.BaseModel):
    card: Card

    @pydantic.model_serializer
    def write(self) -> dict[str, Any]:
        return {"other": self.card}


class Computed(pydantic.BaseModel):
    card: Card

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def shown(self) -> str:
        return f"card {self.card}"


class FieldSerialized(pydantic.BaseModel):
    card: Card
    copies: list[str] = []

    @pydantic.field_serializer("copies")
    def write(self, copies: list[str]) -> list[str]:
        return [self.card]


class Box(msgspec.Struct, Generic[Item]):
    item: Item


class Tree(msgspec.Struct):
    card: Card
    inner: list[Tree] = []


class Late(msgspec.Struct):
    card: "Card | None" = None  # noqa: UP037


KINDS: list[tuple[Any, Any]] = [
    (Struct, Struct(CANARY)),
    (Tagged, Tagged(CANARY)),
    (Array, Array(1, CANARY)),
    (TaggedArray, TaggedArray(CANARY)),
    (Data, Data(CANARY)),
    (Named, Named(1, CANARY)),
    (Typed, {"card": CANARY}),
    (Model, Model(card=CANARY)),
    (Aliased, Aliased(card=CANARY)),
    (WithSecretStr, WithSecretStr(card=CANARY, password=pydantic.SecretStr(CANARY))),
    (Root, Root([CANARY])),
    (RootOfModel, RootOfModel(Model(card=CANARY))),
    (Serialized, Serialized(card=CANARY)),
    (Computed, Computed(card=CANARY)),
    (FieldSerialized, FieldSerialized(card=CANARY)),
    (Box[Card], Box(CANARY)),
    (Box[Named], Box(Named(1, CANARY))),
    (Tree, Tree("x", [Tree(CANARY)])),
    (Late, Late(CANARY)),
    (tuple[int, Card], (1, CANARY)),
    (tuple[Card, ...], (CANARY,)),
    (list[Card], [CANARY]),
    (set[Card], {CANARY}),
    (Sequence[Card], [CANARY]),
    (dict[str, Card], {"a": CANARY}),
    (Mapping[str, Struct], {"a": Struct(CANARY)}),
    (dict[Card, int], {CANARY: 1}),
    (Struct | None, Struct(CANARY)),
    (list[Struct | str], [CANARY]),
    (Annotated[Struct, awoke.Secret], Struct(CANARY)),
]
PLACES: list[tuple[str, Any]] = [
    ("alone", lambda kind, value: (kind, value)),
    ("in a list", lambda kind, value: (list[kind], [value])),  # type: ignore[valid-type]
    ("in a dict", lambda kind, value: (dict[str, kind], {"x": value})),  # type: ignore[valid-type]
    ("in a tuple", lambda kind, value: (tuple[int, kind], (1, value))),  # type: ignore[valid-type]
    ("in a struct", lambda kind, value: (msgspec.defstruct("Outer", [("x", kind)]), ...)),
    ("in a dataclass", lambda kind, value: (dataclasses.make_dataclass("Outer", [("x", kind)]), ...)),
    ("in a named tuple", lambda kind, value: (NamedTuple("Outer", [("x", kind)]), ...)),
    ("in a model", lambda kind, value: (pydantic.create_model("Outer", x=(kind, ...)), ...)),
]


def cases() -> Iterator[Any]:
    for kind, value in KINDS:
        for name, place in PLACES:
            try:
                outer, whole = place(kind, value)
            except pydantic.PydanticUserError:
                continue  # A model has no structs.
            yield pytest.param(outer, value, whole, id=f"{getattr(kind, '__name__', kind)} {name}")


@pytest.mark.parametrize(("kind", "value", "whole"), list(cases()))
def test_no_output_shows_a_secret(kind: Any, value: Any, whole: Any) -> None:
    try:
        made = (
            (kind(x=value) if isinstance(kind, type) and kind.__name__ == "Outer" else kind(value))
            if (whole is ...)
            else whole
        )
        app = awoke.App("app")

        @app.on("cards", value=kind)
        def handle(message: Any) -> None: ...

        data = BY_TYPE.encode(made)
    except (awoke.ConfigError, awoke.EncodeError, TypeError, pydantic.PydanticUserError) as refused:
        pytest.skip(f"the type can't be sent or read: {refused}")
    names = names_of(app)
    assert names is not None, "the app tells its secret fields"
    assert CANARY not in str(names)
    code, settings = Code.of(app), load({}).values
    told = topics_of([], gone=names, problem=None)
    shown = list[str]()
    assert code.secrets is not None
    for routes, secrets in ((code.decoders, code.secrets), ({}, told)):
        with DecodedParts(settings, routes, secrets, reveals=True) as parts:
            content = parts.content("cards", "value", data, [])
            shown.append(msgspec.json.encode(content).decode())
    shown.append(repr(masked(kind, msgspec.to_builtins(msgspec.json.decode(data)))))
    decoded = app.routes["cards"].value_format
    shown.append(str(typing.cast(Any, decoded).description()))
    assert not [each for each in shown if CANARY in each]


def test_values_without_a_mark_are_shown() -> None:
    class Plain(pydantic.BaseModel):
        n: int
        items: list[tuple[str, int]]

    app = awoke.App("app")

    @app.on("plain")
    def handle(message: awoke.Message[Plain]) -> None: ...

    code = Code.of(app)
    assert code.secrets is not None
    with DecodedParts(load({}).values, code.decoders, code.secrets, reveals=True) as parts:
        content = parts.content("plain", "value", b'{"n":1,"items":[["a",2]]}', [])
    assert '"a"' in (content.text or "")
