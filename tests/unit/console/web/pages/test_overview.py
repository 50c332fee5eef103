"""The first page: numbers of all processes, and the last five minutes."""

from __future__ import annotations

from awoke._clock import wall_ms
from awoke.console.views import History, Partition, Sample
from awoke.console.web.pages.overview import STEP_MS, added
from tests.unit.console.web.fakes import FakeLive, console, report


def test_the_first_page_adds_up_the_processes() -> None:
    at = Partition(group="shop", topic="orders", partition=0, in_flight=4, paused_because="a rule")
    with console(FakeLive([report("a", at), report("b", at, failures=3), report("c", at_ms=1)])) as client:
        page = client.get("/?format=json").json()
    names = ("processes", "silent", "in_flight", "paused", "failures", "lag")
    assert {name: page[name] for name in names} == {
        "processes": 2,
        "silent": 1,
        "in_flight": 8,
        "paused": 2,
        "failures": 3,
        "lag": None,
    }
    assert [each["kind"] for each in page["reasons"]] == ["paused", "paused"]


def test_samples_of_all_processes_are_added_without_the_incomplete_ones() -> None:
    now_ms = wall_ms() // STEP_MS * STEP_MS
    history = History(of_5_s=[Sample(now_ms - ago * STEP_MS, 10, 1, 5, 100) for ago in (90, 3, 0)])
    found = added([report("a", history=history), report("b", history=history)], now_ms)
    assert list(found.values()) == [Sample(0, 20, 2, 10, 200)]
