"""The errors for values of JSON that do not fit a schema. They name the field, and have no part of the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JSON_NAMES = {
    str: "text",
    bool: "true or false",
    type(None): "null",
    dict: "an object",
    list: "an array",
    float: "a number with a fraction",
}


def misfit(value: Any, wanted: str, at: str) -> ValueError:
    """Returns the error for a value of another type than the wanted one; `at` is its place."""
    return ValueError(f"{place(at)} takes {wanted}, not {JSON_NAMES.get(type(value), 'a number')}")


def unknown_field(name: str, at: str, fields: Sequence[str]) -> ValueError:
    """Returns the error for a field that a record does not have. Its name is shown if it looks like one."""
    known = f"the fields are {', '.join(fields) or 'none'}"
    if name.isascii() and name.isidentifier():
        return ValueError(f"there is no field {inside(at, name)!r}; {known}")
    return ValueError(f"{place(at)} has a field that is not known; {known}")


def place(at: str) -> str:
    """Returns the subject of a sentence about a place."""
    return f"field {at!r}" if at else "it"


def inside(at: str, name: str) -> str:
    """Returns the place of a field in the record at a place."""
    return f"{at}.{name}" if at else name
