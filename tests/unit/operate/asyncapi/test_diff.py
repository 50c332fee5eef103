"""Changes of an app's interface: those that break others, by the direction of their messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest

import awoke
from awoke.operate.asyncapi import changes, document_of

Define = Callable[[awoke.App], object]


def reading(value: Any) -> Define:
    return lambda app: app.on("orders", value=value)(lambda message: None)


def sending(value: Any) -> Define:
    def define(app: awoke.App) -> None:
        def handle(message: Any) -> Any: ...

        handle.__annotations__["return"] = value
        app.on("in", output="out")(handle)

    return define


def calling(**hints: Any) -> Define:
    def define(app: awoke.App) -> None:
        def method(sku: Any = None) -> Any: ...

        method.__annotations__.update(hints)
        app.rpc.method(method)

    return define


def breaking(old: Define, new: Define) -> list[str]:
    documents = []
    for define in (old, new):
        app = awoke.App("shop")
        define(app)
        documents.append(document_of(app))
    return [each.text for each in changes(*documents) if each.is_breaking]


def struct(*fields: Any, name: str = "Order") -> Any:
    return msgspec.defstruct(name, fields)


PLAIN = struct(("id", int))
WITH_DEFAULT = struct(("id", int), ("note", str, ""))
WITH_MORE = struct(("id", int), ("note", str))

LINE, LONGER_LINE = struct(("count", int), name="Line"), struct(("count", int), ("sku", str), name="Line")


def holder(line: Any) -> Any:
    """Returns a type with a line, or none."""
    return struct(("line", line | None))


def test_nothing_changes_without_a_change() -> None:
    assert breaking(reading(PLAIN), reading(PLAIN)) == []


@pytest.mark.parametrize(
    ("old", "new", "received", "sent"),
    [
        (PLAIN, WITH_DEFAULT, [], []),
        (PLAIN, WITH_MORE, ["$.note may be missing"], []),
        (WITH_MORE, PLAIN, [], ["$.note may be missing"]),
        (WITH_MORE, WITH_DEFAULT, [], ["$.note may be missing"]),
        (PLAIN, struct(("id", str)), ["$.id may be integer, not string"], ["$.id may be string, not integer"]),
        (PLAIN, struct(("id", float)), [], ["$.id may be number, not integer"]),
        (PLAIN, struct(("id", int | None)), [], ["$.id may be null"]),
        (PLAIN, struct(("id", int), name="Renamed"), [], []),
        (
            struct(("state", Literal["new", "paid"])),
            struct(("state", Literal["new"])),
            ["$.state may be paid"],
            [],
        ),
        (holder(LINE), holder(LONGER_LINE), ["$.line may be Line"], []),
    ],
)
def test_a_change_of_a_type_breaks_one_side(old: Any, new: Any, received: list[str], sent: list[str]) -> None:
    assert breaking(reading(old), reading(new)) == [f"it no longer accepts: {each}" for each in received]
    assert breaking(sending(old), sending(new)) == [f"others may not accept: {each}" for each in sent]


def test_a_bound_that_is_narrower_breaks_who_sends() -> None:
    old = struct(("id", int))
    new = msgspec.defstruct("Order", [("id", Annotated[int, msgspec.Meta(ge=1)])])
    assert breaking(reading(old), reading(new)) == ["it no longer accepts: $.id: minimum is 1 and not None"]
    assert breaking(reading(new), reading(old)) == []


def test_a_route_that_is_gone_breaks_and_a_new_one_does_not() -> None:
    assert breaking(reading(PLAIN), sending(PLAIN)) == ["the operation is gone"]
    assert breaking(lambda app: None, reading(PLAIN)) == []


def test_another_content_type_breaks() -> None:
    texts = breaking(reading(PLAIN), reading(awoke.msgpack(PLAIN)))
    assert texts == ["its content type was application/json, and is application/msgpack"]


def test_arguments_and_results_of_methods_are_compared_in_their_directions() -> None:
    assert breaking(calling(sku=str, **{"return": PLAIN}), calling(sku=str, **{"return": WITH_MORE})) == []
    assert breaking(calling(sku=str, **{"return": WITH_MORE}), calling(sku=str, **{"return": PLAIN})) == [
        "others may not accept: $.note may be missing"
    ]
    (text,) = breaking(calling(sku=int), calling(sku=Literal["a"]))
    assert "no longer accepts" in text


class Node(msgspec.Struct):
    next: Node | None = None
    children: list[Node] = []


def test_a_type_that_contains_itself_is_compared() -> None:
    assert breaking(reading(Node), reading(Node)) == []
    assert breaking(sending(Node), sending(Node)) == []


def test_avro_is_compared_by_its_own_rules() -> None:
    old, new = awoke.avro(PLAIN), awoke.avro(WITH_MORE)
    needed = "/fields/1: the reader needs the field `note`, which the writer does not have; give it a default"
    assert breaking(reading(old), reading(new)) == [f"it no longer accepts: {needed}"]
    assert breaking(reading(old), reading(awoke.avro(WITH_DEFAULT))) == []
