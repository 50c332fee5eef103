"""Examples of events: one of each class, made from the types of its fields."""

from __future__ import annotations

import typing
from typing import Any

import msgspec

from awoke.observe.events import Event

EXAMPLES: dict[Any, Any] = {
    str: "text",
    int: 3,
    float: 1.5,
    bool: True,
    BaseException: ValueError("no good"),
    list[str]: ["text"],
    list[tuple[str, int]]: [("orders", 0)],
    list[tuple[str, int, int]]: [("orders", 0, 7)],
}
"""A value of each type that the fields of awoke's events have."""


def example_of(event: type[Event], **fields: Any) -> Event:
    """Returns an event of a class, with these fields and an example for each other one."""
    others = {each.name: example_value(each.type) for each in msgspec.structs.fields(event)}
    return event(**{**others, **fields})


def example_value(kind: Any) -> Any:
    """Returns a value of a field's type; of an optional one, it is not None."""
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    return EXAMPLES[next(each for each in typing.get_args(kind) if each is not type(None))]
