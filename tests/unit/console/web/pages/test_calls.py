"""Calls: the processes of a method are one row, and what callers say of themselves is harmless."""

from __future__ import annotations

from typing import Any

from awoke.console.views import CallAtWork, CallerCounts, Calls, CallTimes, MethodCalls, Report
from awoke.console.web.pages.calls import at_work_of, callers_of, methods_of, rejections_of
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import HOSTILE, FakeLive, console, report


def method(name: str, p95: float | None, **outcomes: int) -> MethodCalls:
    times = CallTimes(p50=p95, p95=p95)
    return MethodCalls(method=name, outcomes=outcomes, queue_ms=times, run_ms=times, reply_ms=times)


def calls(*methods: MethodCalls, **fields: Any) -> Calls:
    given: dict[str, Any] = {"at_work": [], "running": 0, "waiting": 0, "expired": 0, "rejected": {}, **fields}
    return Calls(methods=list(methods), **given)


def at_work(until_ms: int, name: str = "quote", caller: str = "shop") -> CallAtWork:
    return CallAtWork(method=name, caller=caller, partition=1, offset=7, until_ms=until_ms, is_cancelled=False)


def all_reports() -> list[Report]:
    """Returns reports of now: older ones are those of silent processes."""
    return [
        report("a", calls=calls(method("quote", 2.0, ok=3, internal=1), rejected={"queue_full": 2}, expired=1)),
        report("b", calls=calls(method("quote", 9.0, ok=1, cached=1), method("", None, unimplemented=4))),
        report("c", callers=[CallerCounts(service="prices", open=2, events={"begun": 5})]),
        report("d", callers=[CallerCounts(service="prices", open=1, events={"begun": 2, "late": 1})]),
    ]


def test_the_processes_of_a_method_are_one_row_with_the_times_of_the_slowest() -> None:
    found = {each.method: each for each in methods_of(all_reports())}
    quote = found["quote"]
    assert (quote.calls, quote.errors, quote.nodes) == (6, 1, ["a", "b"])
    assert quote.outcomes == {"ok": 4, "internal": 1, "cached": 1}
    assert quote.run_ms.p95 == 9.0
    assert (found[""].errors, found[""].run_ms.p95) == (4, None)


def test_rejections_are_counted_by_reason_with_those_that_expired() -> None:
    assert [(each.reason, each.count) for each in rejections_of(all_reports())] == [("queue_full", 2), ("expired", 1)]


def test_the_calls_of_all_processes_to_a_service_are_one_row() -> None:
    (found,) = callers_of(all_reports())
    assert (found.service, found.open, found.nodes, found.events) == ("prices", 3, 2, {"begun": 7, "late": 1})


def test_the_call_with_the_nearest_deadline_comes_first() -> None:
    reports = [
        report("a", calls=calls(at_work=[at_work(30), at_work(10)])),
        report("b", calls=calls(at_work=[at_work(20)])),
    ]
    assert [each.call.until_ms for each in at_work_of(reports)] == [10, 20, 30]


def test_the_page_shows_all_of_them_and_is_harmless() -> None:
    hostile = calls(method(HOSTILE, 3.0, ok=1), at_work=[at_work(wall_ms() + 3_000_000, HOSTILE, HOSTILE)], running=1)
    with console(FakeLive([*all_reports(), report("e", calls=hostile)])) as client:
        page = client.get("/calls").text
        slowest = client.get("/calls?sort=run&order=desc&format=json").json()
    assert "queue full" in page
    assert "prices" in page
    assert "in 50 min" in page
    assert "<script>alert" not in page
    assert [each["method"] for each in slowest["methods"]["rows"]] == ["quote", HOSTILE, ""]


def test_a_process_of_an_app_without_methods_has_no_calls() -> None:
    with console(FakeLive([report("a")])) as client:
        assert "No process has answered a call." in client.get("/calls").text
