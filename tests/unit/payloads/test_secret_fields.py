"""Secret fields: where a type may have them, and that none is left in the document."""

from __future__ import annotations

import dataclasses
import sys
from typing import Annotated, Any, Generic, NamedTuple, NewType, NotRequired, Optional, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.secret_fields import PATHS_MAX, has_secrets, masked, paths_of, unmarked
from awoke.payloads.secret_paths import SecretPaths
from awoke.text.secrets import HIDDEN
from tests.support.formats import decoder_for

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


T = TypeVar("T")


class Envelope(msgspec.Struct, Generic[T]):
    data: list[T]
    last: T | None = None


class OfPlain(Envelope[Plain]): ...


class Wrapped(pydantic.BaseModel, Generic[T]):
    data: T
    pin: Annotated[str, awoke.Secret] = pydantic.Field("", validation_alias=pydantic.AliasPath("more", "pin"))


class Row(NamedTuple):
    name: str
    pin: Pin


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
        (Listed, ["Listed", "a", 7], HIDDEN),
        (Model, {"cardNumber": "S"}, {"cardNumber": HIDDEN}),
        (Model, {"number": "S"}, {"number": HIDDEN}),
        (Plain, {"pin": "S", "name": "a"}, {"pin": HIDDEN, "name": "a"}),
        (Typed, {"number": "S"}, {"number": HIDDEN}),
        (Annotated[dict[str, Any], awoke.Secret], {"a": "S"}, HIDDEN),
        (dict[Pin, int], {"S": 1}, HIDDEN),
        (tuple[str, Pin], ["a", "S"], HIDDEN),
        (Row, ["a", "S"], HIDDEN),
        (Envelope[Plain], {"data": [{"pin": "S"}]}, {"data": [{"pin": HIDDEN}]}),
        (Envelope[Plain], {"last": {"pin": "S"}}, {"last": {"pin": HIDDEN}}),
        (OfPlain, {"last": {"pin": "S"}}, {"last": {"pin": HIDDEN}}),
        (awoke.CloudEvent[Plain], {"data": {"pin": "S"}}, {"data": {"pin": HIDDEN}}),
        (Wrapped[Plain], {"data": {"pin": "S"}}, {"data": {"pin": HIDDEN}}),
        (Wrapped[int], {"pin": "S", "more": {"pin": "S"}}, {"pin": HIDDEN, "more": {"pin": HIDDEN}}),
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


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        (Card, SecretPaths(["/cardNumber"], ["/card_number"], [("/before", "")])),
        (list[Plain], SecretPaths(["/*/pin"])),
        (Plain | int, SecretPaths([], ["/pin"])),
        (Typed, SecretPaths([], ["/number"])),
        (Listed, SecretPaths([""])),
        (Pin, SecretPaths([""])),
        (Open, SecretPaths()),
    ],
)
def test_a_type_has_the_paths_of_its_secrets(kind: Any, paths: SecretPaths) -> None:
    assert paths_of(kind) == paths


def test_a_type_with_too_many_paths_is_secret_as_a_whole() -> None:
    wide = msgspec.defstruct("Wide", [(f"f{number}", Pin) for number in range(PATHS_MAX + 1)])
    assert paths_of(wide) == SecretPaths([""])


class Deep(msgspec.Struct, Generic[T]):
    value: T
    more: Deep[list[T]] | None = None


def test_a_type_without_end_is_secret_from_a_depth_on() -> None:
    document: Any = {"value": {"pin": "S"}}
    assert masked(Deep[Plain], document) == {"value": {"pin": HIDDEN}}
    for _ in range(50):
        document = {"value": 1, "more": document}
    assert "'S'" not in str(masked(Deep[Plain], document))


def test_a_text_that_is_marked_is_still_text() -> None:
    decode = decoder_for(Annotated[str, awoke.Secret])
    assert decode is not None
    assert decode(b"ann") == "ann"
    assert decoder_for(Annotated[bytes, awoke.Secret]) is None
    assert unmarked(Annotated[str, "other"]) == Annotated[str, "other"]


LATE = """
class Own:
    number: Annotated[str, awoke.Secret]

@dataclasses.dataclass
class Data:
    number: Annotated[str, awoke.Secret]

class Typed(TypedDict):
    number: Annotated[str, awoke.Secret]

class Row(NamedTuple):
    number: Annotated[str, awoke.Secret]

class Struct(msgspec.Struct):
    number: Annotated[str, awoke.Secret]

class Model(pydantic.BaseModel):
    number: Annotated[str, awoke.Secret]
"""
"""Types of a module without `from __future__ import annotations`."""


@pytest.mark.parametrize("name", ["Own", "Data", "Typed", "Row", "Struct", "Model"])
def test_secrets_are_found_in_annotations_that_are_no_text(name: str) -> None:
    names = {**globals(), "__name__": __name__}
    exec(compile(LATE, "late", "exec", dont_inherit=True), names)
    assert has_secrets(names[name])


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python evaluates annotations at once before 3.14")
def test_an_annotation_that_can_not_be_evaluated_later_hides_all_fields() -> None:
    names = {**globals(), "__name__": __name__}
    exec(compile("class Own:\n    number: Missing\n    name: str", "late", "exec", dont_inherit=True), names)
    assert paths_of(names["Own"]) == SecretPaths((), ("/number", "/name"), ())
