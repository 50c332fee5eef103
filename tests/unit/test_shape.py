"""The shape of the code: what has met its goal stays so."""

from __future__ import annotations

from tests.shape import CHANGING, Measure, changes, first_number, measures, table

NOT_YET = {
    "lines of Python of the product",
    "lines of tests",
}
"""The measures whose goal is not met. It may only shrink."""


def test_what_has_met_its_goal_keeps_it() -> None:
    found = {each.name: each for each in measures()}
    assert {name: each.places for name, each in found.items() if not each.is_met and name not in NOT_YET} == {}
    assert [name for name in sorted(NOT_YET) if found[name].is_met] == [], "these are met now: take them off NOT_YET"


def test_each_addition_of_the_page_is_in_the_table() -> None:
    sections = {
        line.removeprefix("## ").lower() for line in CHANGING.read_text().splitlines() if line.startswith("## ")
    }
    counted = {each.name.removeprefix("files: ").lower() for each in changes()}
    assert sections <= counted, "docs/internals/changing.md has a section without its count"
    text = table()
    assert all(each.name in text for each in changes())


def test_an_unknown_count_meets_no_goal() -> None:
    assert first_number("not counted yet") is None
    assert first_number("2 (the class and its test)") == 2
    assert not Measure("files", None, 1).is_met
    assert Measure("files", 1, 1).is_met
