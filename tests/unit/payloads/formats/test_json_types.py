"""Types that JSON can't be read as, or that can't be written as JSON, are refused before a message has them."""

from __future__ import annotations

import collections
import dataclasses
import enum
import pathlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

import awoke
from awoke import rpc
from awoke.payloads.formats.json import json_decoder
from awoke.payloads.formats.json_types import check_readable, check_writable


class Plain:
    """A class that msgspec knows nothing of."""


class Order(msgspec.Struct):
    id: int


class WithPlain(msgspec.Struct):
    id: int
    inner: list[Plain] = []


class Frozen(msgspec.Struct, frozen=True):
    id: int


class Recursive(msgspec.Struct):
    children: list[Recursive] = []


class Model(pydantic.BaseModel):
    id: int
    at: datetime | None = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class WithModel(msgspec.Struct):
    model: Model
    more: list[Model] = []


@pydantic.dataclasses.dataclass
class PydanticData:
    id: pydantic.PositiveInt


@dataclasses.dataclass
class Data:
    id: int


class Typed(TypedDict):
    id: int


class Named(NamedTuple):
    id: int


class Color(enum.Enum):
    RED = "red"


READABLE: list[Any] = [
    int,
    Any,
    object,
    dict,
    list[int],
    dict[str, Any],
    dict[int, Decimal],
    dict[uuid.UUID, Color],
    Mapping[str, int],
    Sequence[Order],
    Iterable[int],
    set[int],
    set[Frozen],
    Literal["a", 1],
    Order | None,
    Recursive,
    Data,
    Typed,
    Named,
    Color,
    datetime,
    timedelta,
    msgspec.Raw,
    Annotated[int, msgspec.Meta(gt=0)],
    Model,
    Model | None,
    list[Model],
    dict[str, Model],
    Cat | Dog,
    Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
    pydantic.PositiveInt,
    PydanticData,
    WithModel,
    list[WithModel],
]


@pytest.mark.parametrize("kind", READABLE)
def test_a_type_that_json_can_be_read_as_is_taken(kind: Any) -> None:
    check_readable(kind)
    check_writable(kind)
    json_decoder(kind)


UNREADABLE: list[tuple[Any, str]] = [
    (Plain, "Plain"),
    (list[Plain], "Plain"),
    (Plain | None, "Plain"),
    (dict[str, Plain], "Plain"),
    (WithPlain, "WithPlain.inner: .*Plain"),
    (complex, "complex"),
    (pathlib.Path, "Path"),
    (Iterator[int], "Iterator"),
    (collections.deque, "deque"),
    (awoke.Message, "Message"),
    (set[Order], "set whose members"),
    (set[list[int]], "set whose members"),
    (dict[tuple[int, int], int], "dict whose keys"),
    (dict[Order, int], "dict whose keys"),
    (Order | WithPlain, "union contains multiple Struct types"),
    ("Order", "'Order'"),
    (Order(1), r"Order\(id=1\)"),
    (list[Model | Plain], "Plain"),
    (Model | Order, "Order"),
]


@pytest.mark.parametrize(("kind", "words"), UNREADABLE)
def test_a_type_that_json_can_not_be_read_as_is_refused_with_its_name(kind: Any, words: str) -> None:
    app = awoke.App("app")
    with pytest.raises(awoke.ConfigError, match=f"(?s)route 'orders': values can't be read as .*{words}") as refused:
        app.on("orders", value=kind)(print)
    assert refused.value.property == "value"
    with pytest.raises(awoke.ConfigError, match="bytes, str, a type that msgspec reads from JSON"):
        app.on("orders", value=kind)(print)


def test_an_annotation_that_json_can_not_be_read_as_is_refused() -> None:
    def handle(message: awoke.Message[Plain]) -> None: ...

    with pytest.raises(awoke.ConfigError, match="values can't be read as Plain"):
        awoke.App("app").on("orders")(handle)


def to_plain(message: awoke.Message[bytes]) -> Plain:
    raise NotImplementedError


def to_plains(message: awoke.Message[bytes]) -> list[Plain] | None:
    raise NotImplementedError


def to_iterator(message: awoke.Message[bytes]) -> Iterator[int]:
    raise NotImplementedError


def to_awaitable(message: awoke.Message[bytes]) -> Awaitable[int]:
    raise NotImplementedError


@pytest.mark.parametrize("function", [to_plain, to_plains, to_iterator, to_awaitable])
def test_a_result_that_can_not_be_written_is_refused_where_it_is_sent(function: Any) -> None:
    app = awoke.App("app")
    with pytest.raises(awoke.ConfigError, match=f"{function.__name__} returns .*, which can't be sent") as refused:
        app.on("orders", output="out")(function)
    assert refused.value.property == "output"
    app.on("orders")(function)


def to_text(message: awoke.Message[bytes]) -> str | bytes | None:
    raise NotImplementedError


def to_either(message: awoke.Message[bytes]) -> Order | WithModel:
    raise NotImplementedError


def to_model(message: awoke.Message[bytes]) -> Model | None:
    raise NotImplementedError


def to_unknown(message: awoke.Message[bytes]) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821
def to_anything(message: awoke.Message[bytes]): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize("function", [to_text, to_either, to_model, to_unknown, to_anything, print])
def test_any_other_result_is_sent(function: Any) -> None:
    awoke.App("app").on("orders", output="out")(function)


def takes_plain(order: Plain) -> None: ...
def takes_plains(orders: list[Plain] | None = None) -> None: ...
def gives_plain() -> Plain:
    raise NotImplementedError


def gives_iterator() -> Iterator[int]:
    raise NotImplementedError


async def gives_awaitable() -> Awaitable[int]:
    raise NotImplementedError


def streams_plain() -> Iterator[Plain]:
    yield Plain()


async def streams_plain_async() -> AsyncIterator[Plain]:
    yield Plain()


@pytest.mark.parametrize(
    "function",
    [takes_plain, takes_plains, gives_plain, gives_iterator, gives_awaitable, streams_plain, streams_plain_async],
)
def test_a_remote_method_of_a_type_that_is_no_json_is_refused_when_it_is_made(function: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=r"rpc method .* can't be"):
        awoke.App("shop").rpc.method(function)


def streams_models() -> Iterator[Model]:
    yield Model(id=1)


def takes_models(order: Model, more: list[Model] | None = None, pet: Cat | Dog | None = None, count: int = 1) -> Model:
    return order


def method(function: Any) -> Any:
    """A method, as a service has it."""
    app = awoke.App("shop")
    app.rpc.method(function)
    (found,) = app.rpc.methods.values()
    return found


def test_a_remote_method_takes_models() -> None:
    method(streams_models)
    arguments = method(takes_models).arguments
    expected = {"order": Model(id=1), "more": [Model(id=2)], "pet": Dog(kind="dog"), "count": 3}
    assert arguments(b'{"order": {"id": 1}, "more": [{"id": 2}], "pet": {"kind": "dog"}, "count": 3}') == expected
    assert arguments(b'[{"id": 1}, [{"id": 2}], {"kind": "dog"}, 3]') == expected
    assert arguments(b'{"order": {"id": "1"}}') == {"order": Model(id=1), "more": None, "pet": None, "count": 1}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"order": {"id": "secret"}}', r"valid integer.* - at `\$\.order\.id`"),
        (b"{}", "missing required field `order`"),
        (b'{"order": {"id": 1}, "count": "x"}', r"Expected `int`, got `str` - at `\$\.count`"),
        (b'[{"id": 1}, null, null, 1, 5]', "takes 4 arguments, 5 were given"),
        (b"[", "truncated"),
    ],
)
def test_an_argument_that_is_none_is_named(body: bytes, words: str) -> None:
    with pytest.raises(rpc.InvalidArgument, match=words) as refused:
        method(takes_models).arguments(body)
    assert "secret" not in str(refused.value)


def test_a_model_that_is_not_defined_yet_is_refused() -> None:
    class Early(pydantic.BaseModel):
        later: Later  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(awoke.ConfigError, match=r"Later|defined"):
        awoke.App("app").on("orders", value=Early)(print)
