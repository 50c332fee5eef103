"""The style guide shows each state that the pages have a mark for."""

from __future__ import annotations

import ast
from pathlib import Path

from awoke.console.web import application
from tests.unit.console.web.fakes import console

PARTS = Path(application.__file__).parent / "templates" / "parts.html"


def test_each_state_with_a_mark_is_shown() -> None:
    line = next(each for each in PARTS.read_text().splitlines() if "set MARKS" in each)
    marks = ast.literal_eval(line[line.index("{", 2) : line.rindex("}", 0, -2) + 1])
    assert "running" in marks
    with console() as client:
        page = client.get("/style").text
    assert [each for each in marks if f"</span> {each}</span>" not in page] == []
