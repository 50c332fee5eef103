"""Secret fields: where a type may have them, and that none is left in the document."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NewType, NotRequired, Optional, TypedDict

import msgspec
import pydantic
import pytest

import awoke
from awoke.codecs.codec import decoder_for
from awoke.secret_fields import has_secrets, masked, unmarked
from awoke.secrets import HIDDEN

Pin = NewType("Pin", Annotated[str, awoke.Secret])


class Card(msgspec.Struct, rename="camel"):
    owner: str
    card_number: Annotated[str, awoke.Secret]
    before: Optional[Card] = None  # noqa: UP045  A name in quotes.


class Listed(msgspec.Struct, array_like=True, tag=True):
    owner: str
    number: Annotated[int, awoke.Secret()]
    more: str = ""


class Model(pydantic.BaseModel):
    number: Annotated[str, awoke.Secret] = pydantic.Field(alias="cardNumber")


@dataclasses.dataclass
class Plain:
    pin: Pin
    name: str = ""


class Typed(TypedDict):
    number: NotRequired[Annotated[str, awoke.Secret]]


class Unresolved(msgspec.Struct):
    other: NotThere  # type: ignore[name-defined]  # noqa: F821


class Open(msgspec.Struct):
    owner: str
    before: Open | None = None


@pytest.mark.parametrize(
    ("kind", "document", "shown"),
    [
        (Card, {"owner": "a", "cardNumber": "S"}, {"owner": "a", "cardNumber": HIDDEN}),
        (
            Card,
            {"cardNumber": "S", "before": {"cardNumber": "S"}},
            {"cardNumber": HIDDEN, "before": {"cardNumber": HIDDEN}},
        ),
        (Card | None, None, None),
        (list[Card], [{"cardNumber": "S"}], [{"cardNumber": HIDDEN}]),
        (tuple[Card, ...], [{"cardNumber": "S"}], [{"cardNumber": HIDDEN}]),
        (dict[str, Card | int], {"a": {"cardNumber": "S"}, "b": 1}, {"a": {"cardNumber": HIDDEN}, "b": 1}),
        (Open | Card, {"owner": "a", "cardNumber": "S"}, {"owner": "a", "cardNumber": HIDDEN}),
        (Listed, ["Listed", "a", 7], ["Listed", "a", HIDDEN]),
        (Model, {"cardNumber": "S"}, {"cardNumber": HIDDEN}),
        (Model, {"number": "S"}, {"number": HIDDEN}),
        (Plain, {"pin": "S", "name": "a"}, {"pin": HIDDEN, "name": "a"}),
        (Typed, {"number": "S"}, {"number": HIDDEN}),
        (Annotated[dict[str, Any], awoke.Secret], {"a": "S"}, HIDDEN),
        (Unresolved, {"other": "S"}, {"other": HIDDEN}),
    ],
)
def test_secrets_are_masked_wherever_a_type_has_them(kind: Any, document: Any, shown: Any) -> None:
    assert has_secrets(kind)
    assert masked(kind, document) == shown


@pytest.mark.parametrize("kind", [Open, int, None, Any, dict[str, Open], list[int | str]])
def test_other_types_have_no_secrets(kind: Any) -> None:
    assert not has_secrets(kind)
    assert masked(kind, {"a": ["b"]}) == {"a": ["b"]}


def test_a_text_that_is_marked_is_still_text() -> None:
    decode = decoder_for(Annotated[str, awoke.Secret])
    assert decode is not None
    assert decode(b"ann") == "ann"
    assert decoder_for(Annotated[bytes, awoke.Secret]) is None
    assert unmarked(Annotated[str, "other"]) == Annotated[str, "other"]
