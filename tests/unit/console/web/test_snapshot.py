"""The state at one time: silent processes are not live."""

from __future__ import annotations

from tests.unit.console.web.fakes import FakeLive, report


def test_a_silent_process_is_known_and_not_live() -> None:
    now = FakeLive([report("a"), report("b", at_ms=1)]).snapshot()
    assert (sorted(now.reports), sorted(now.live)) == (["a", "b"], ["a"])
