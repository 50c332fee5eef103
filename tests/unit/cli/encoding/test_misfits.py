"""The texts of errors about values that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.cli.encoding.misfits import inside, misfit, place, unknown_field


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("secret", "text"),
        (True, "true or false"),
        (None, "null"),
        ({"secret": 1}, "an object"),
        (["secret"], "an array"),
        (1.5, "a number with a fraction"),
        (7, "a number"),
    ],
)
def test_a_value_is_named_by_its_type(value: Any, given: str) -> None:
    assert str(misfit(value, "the record Order", "a.b")) == f"field 'a.b' takes the record Order, not {given}"


def test_an_unknown_field_is_shown_if_its_name_looks_like_one() -> None:
    assert str(unknown_field("idd", "a", ["id", "b"])) == "there is no field 'a.idd'; the fields are id, b"
    assert str(unknown_field("\x1b[1m", "", [])) == "it has a field that is not known; the fields are none"


def test_a_place_begins_at_the_value_itself() -> None:
    assert (place(""), place("a[0]"), inside("", "b"), inside("a[0]", "b")) == ("it", "field 'a[0]'", "b", "a[0].b")
