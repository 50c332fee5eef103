"""A request as a page sees it: numbers within bounds, tables sorted, filtered and cut."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.console.web.grants import Grant
from awoke.console.web.page import ROWS, Asked, Wrong
from awoke.settings import load
from tests.unit.console.web.fakes import FakeLive


def asked(**query: str) -> Asked:
    return Asked("shop", load({}).values, Grant(), {}, query, {}, FakeLive())


def table(**query: str) -> Any:
    return asked(**query).rows(range(250), "number", {"number": lambda each: each}, text=str)


def test_a_table_is_cut_into_pages() -> None:
    first, last = table(), table(at="200")
    assert (len(first.rows), first.before, first.after, first.total) == (ROWS, None, 100, 250)
    assert (len(last.rows), last.before, last.after) == (50, 100, None)


def test_a_table_is_sorted_and_filtered() -> None:
    assert table(sort="number", order="desc").rows[:2] == [249, 248]
    assert table(q="24").rows == [24, 124, 224, *range(240, 250)]
    assert table(sort="nothing").rows[0] == 0


def test_what_is_not_known_comes_last() -> None:
    rows = asked().rows([None, 2, 1], "lag", {"lag": lambda each: each})
    assert rows.rows == [1, 2, None]


def test_a_number_has_bounds() -> None:
    assert asked(at="-5").integer("at", 0) == 0
    assert asked().integer("at", 7) == 7
    with pytest.raises(Wrong, match="no number"):
        asked(at="x").integer("at", 0)
