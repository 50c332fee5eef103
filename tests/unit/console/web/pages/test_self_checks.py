"""The checks of the console itself: each fails for its own reason."""

from __future__ import annotations

import ast
from pathlib import Path

from awoke.console.web import application
from awoke.console.web.pages.self_checks import checks_of
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import FakeLive, console, report


def failed(live: FakeLive) -> set[str]:
    return {each.name for each in checks_of(live.snapshot(), "shop") if each.state == "failed"}


def test_a_healthy_app_fails_no_check() -> None:
    assert failed(FakeLive([report(versions={"awoke": "1"})])) == set()


def test_each_check_can_fail() -> None:
    fields = {"errors_dropped": 1, "partitions_total": 9, "unhealthy_because": ["a worker hangs"]}
    early = report("c", at_ms=wall_ms() + 99_000, versions={"awoke": "2"})
    live = FakeLive([report("a", versions={"awoke": "1"}, **fields), report("b", at_ms=1), early, report("d", major=9)])
    live.state.unreadable = 1
    assert failed(live) == {
        *("reports in time", "newer processes", "one version", "clocks", "readable records", "complete reports"),
        *("complete errors", "health"),
    }
    assert failed(FakeLive()) == {"reports"}


PARTS = Path(application.__file__).parent / "templates" / "parts.html"


def test_each_state_with_a_mark_is_shown() -> None:
    line = next(each for each in PARTS.read_text().splitlines() if "set MARKS" in each)
    marks = ast.literal_eval(line[line.index("{", 2) : line.rindex("}", 0, -2) + 1])
    assert "running" in marks
    with console() as client:
        page = client.get("/style").text
    assert [each for each in marks if f"</span> {each}</span>" not in page] == []
