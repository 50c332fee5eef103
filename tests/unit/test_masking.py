"""Secret fields of types, and documents in which they are masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

import awoke
from awoke.masking import PATHS_MAX, Masks, masked, restored, secret_paths, unmarked

Number = NewType("Number", Annotated[str, awoke.Secret])
Item = TypeVar("Item")


class Card(msgspec.Struct, rename="camel"):
    card_number: Annotated[str, awoke.Secret]
    owner: str = ""


class Packed(msgspec.Struct, array_like=True, tag=True):
    item: str
    number: Annotated[str, awoke.Secret()]


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []
    pin: Annotated[int, awoke.Secret] = 0


class Plain(msgspec.Struct):
    name: str
    children: list[Plain] = []


class Of(msgspec.Struct, Generic[Item]):
    item: Item


@dataclass
class Order:
    card: Card | None
    cards: list[Card]
    by_name: Mapping[str, Card]
    pair: tuple[str, Card]


class Typed(TypedDict):
    pin: NotRequired[Annotated[str, awoke.Secret]]
    item: str


class Named(NamedTuple):
    item: str
    pin: Annotated[str, awoke.Secret]


class Model(pydantic.BaseModel):
    pin: Annotated[str, awoke.Secret] = pydantic.Field(alias="PIN")
    password: pydantic.SecretStr
    item: str


@dataclass
class Unresolved:
    pin: Annotated[Nowhere, awoke.Secret]  # type: ignore[name-defined]  # noqa: F821
    item: str


CARD = {("card_number",), ("cardNumber",)}


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        (None, set()),
        (bytes, set()),
        (Any, set()),
        (dict[str, Any], set()),
        (Plain, set()),
        (Annotated[str, awoke.Secret], {()}),
        (Annotated[str, "other"], set()),
        (Number, {()}),
        (Card, CARD),
        (Card | None, CARD),
        (Annotated[Card, awoke.Secret], {()}),
        (list[Card], {("*", *path) for path in CARD}),
        (dict[Annotated[str, awoke.Secret], int], {()}),
        (Packed, {("2",)}),
        (Tree, {("pin",), ("children", "*")}),
        (Of[Card], {("item", *path) for path in CARD}),
        (Typed, {("pin",)}),
        (Named, {("pin",), ("1",)}),
        (Model, {("pin",), ("PIN",), ("password",)}),
        (Unresolved, {("pin",)}),
        (
            Order,
            {(*head, *path) for head in [("card",), ("cards", "*"), ("by_name", "*"), ("pair", "1")] for path in CARD},
        ),
    ],
)
def test_secret_fields_are_found_by_the_types(kind: Any, paths: set[tuple[str, ...]]) -> None:
    assert set(secret_paths(kind)) == paths


def test_a_type_with_too_many_secrets_is_one() -> None:
    kind = msgspec.defstruct("Many", [(f"f{at}", Annotated[str, awoke.Secret]) for at in range(PATHS_MAX + 1)])
    assert secret_paths(kind) == ((),)


@pytest.mark.parametrize(
    ("document", "paths", "shown"),
    [
        ({"a": 1, "b": 2}, [("a",)], {"a": "[secret]", "b": 2}),
        ({"a": None, "b": {"a": 1}}, [("a",)], {"a": None, "b": {"a": 1}}),
        ({"a": {"b": [1]}}, [("a",)], {"a": "[secret]"}),
        ({"c": [{"n": 1}, {"m": 2}]}, [("c", "*", "n")], {"c": [{"n": "[secret]"}, {"m": 2}]}),
        ({"c": {"x": {"n": 1}}}, [("c", "*", "n")], {"c": {"x": {"n": "[secret]"}}}),
        (["a", "b"], [("1",)], ["a", "[secret]"]),
        ("x", [()], "[secret]"),
        ({"a": 1}, [], {"a": 1}),
        # Of another shape than the type: what may be the secret is masked.
        ({"card": "4111"}, [("card", "number")], {"card": "[secret]"}),
        ([{"n": 1, "m": 2}], [("n",)], [{"n": "[secret]", "m": 2}]),
    ],
)
def test_fields_of_documents_are_masked(document: Any, paths: list[tuple[str, ...]], shown: Any) -> None:
    assert masked(document, paths) == shown


def test_masked_fields_of_an_edited_document_keep_what_they_had() -> None:
    paths = [("card", "number"), ("cards", "*", "number")]
    original = {"item": "tea", "card": {"number": "4111"}, "cards": [{"number": "1"}, {"number": "2"}]}
    edited = masked(original, paths) | {"item": "coffee"}
    assert restored(edited, original, paths) == original | {"item": "coffee"}
    assert restored({"card": {"number": "5"}}, original, paths) == {"card": {"number": "5"}}
    for wrong in ({"cards": [{}, {}, {"number": "[secret]"}]}, {"card": {"number": "[secret]", "more": 1}}):
        with pytest.raises(awoke.ConfigError, match=r"is masked, and the original has none"):
            restored(wrong, {"item": "tea"}, paths)


def test_masks_of_two_routes_are_one() -> None:
    both = Masks(value=(("a",),)) | Masks(value=(("a",), ("b",)), key=((),))
    assert both == Masks((("a",), ("b",)), ((),))
    assert both
    assert not Masks()


def test_text_that_is_secret_is_still_text() -> None:
    assert unmarked(Annotated[str, awoke.Secret]) is str
    app = awoke.App("shop")

    @app.on("orders")
    def handle(message: awoke.Message[bytes, Annotated[str, awoke.Secret]]) -> None: ...

    route = next(iter(app.groups.values())).routes["orders"]
    assert route.masks == Masks(key=((),))
    assert route.decoding.key is not None
    assert route.decoding.key(b"ann") == "ann"
