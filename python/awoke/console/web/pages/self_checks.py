"""The checks of the console itself, whether what it shows can be relied on, and the style guide that they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from awoke.console.stuck import unheard
from awoke.console.topics import ConsoleTopics
from awoke.console.views import Reason
from awoke.console.web.page import Asked, Page, Rows
from awoke.console.web.snapshot import Snapshot
from awoke.waiting.clock import wall_ms

CLOCK_MS = 5_000
"""A report from the future by more than this shows wrong clocks."""


class SelfCheck(msgspec.Struct, kw_only=True):
    """One check."""

    name: str
    state: str
    """`passed`, `failed` or `unknown`."""
    text: str
    advice: str = ""


class ChecksPage(msgspec.Struct, kw_only=True):
    """All checks."""

    checks: list[SelfCheck]
    failed: int


def self_checks(asked: Asked) -> ChecksPage:
    """Returns the checks."""
    found = list(checks_of(asked.snapshot(), asked.app))
    return ChecksPage(checks=found, failed=sum(each.state == "failed" for each in found))


def check(name: str, is_good: bool, text: str, advice: str) -> SelfCheck:
    """Returns a check, with its advice only where it has failed."""
    return SelfCheck(name=name, state="passed" if is_good else "failed", text=text, advice="" if is_good else advice)


def checks_of(now: Snapshot, app: str) -> Iterator[SelfCheck]:
    """Yields each check."""
    view, live = now.view, list(now.live.values())
    yield check("topics and brokers", now.problem is None, now.problem or "all were read", "see the brokers' logs")
    yield check(
        "reports",
        bool(live),
        f"{len(live)} processes report to {ConsoleTopics.of(app).reports}",
        "run the app with console=True, and let it write to that topic",
    )
    silent = [f"{each.node}: {unheard(each, view.at_ms)}" for each in view.nodes if each.is_silent or each.is_overdue]
    yield check(
        "reports in time", not silent, ", ".join(silent[:10]) or "none", "they were killed, or can't reach the brokers"
    )
    newer = [each.node for each in view.nodes if each.is_newer]
    yield check("newer processes", not newer, ", ".join(newer[:10]) or "none", "update the console's awoke")
    versions = sorted({each.versions.get("awoke", "?") for each in live})
    yield check("one version", len(versions) <= 1, ", ".join(versions) or "none", "finish the deployment")
    early = [each.node for each in live if each.at_ms > view.at_ms + CLOCK_MS]
    yield check("clocks", not early, ", ".join(early[:10]) or "they agree", "synchronize the clocks of the hosts")
    yield check(
        "readable records",
        not view.unreadable,
        f"{view.unreadable} records could not be read",
        "find out who else writes to the topics of the console",
    )
    cut = [each.node for each in live if each.partitions_total > len(each.partitions)]
    yield check("complete reports", not cut, ", ".join(cut[:10]) or "they name all partitions", "run more processes")
    dropped = sum(each.errors_dropped for each in live)
    yield check("complete errors", not dropped, f"{dropped} failures have no record", "correct the most frequent ones")
    for problem in [f"{each.node}: {text}" for each in live for text in each.unhealthy_because][:20]:
        yield SelfCheck(name="health", state="failed", text=problem, advice="see why it is stuck")


class Example(msgspec.Struct, kw_only=True):
    """A row of the example of a table."""

    state: str
    lag: int
    lag_per_s: float | None


class StylePage(msgspec.Struct, kw_only=True):
    """The content of the components."""

    at_ms: int
    reasons: list[Reason]
    rows: Rows[Example]


def style(asked: Asked) -> StylePage:
    """Returns the content; it is the same for every app."""
    place: dict[str, Any] = {"node": "web-1.310", "group": "flights", "topic": "flights", "partition": 3}
    reasons = [
        Reason(kind=kind, severity=severity, text=text, advice=f"`{advice}`", **place)
        for kind, severity, text, advice in (
            ("stuck", 90, "flights[3] gives no messages any more", "awoke resume MODULE:APP flights 3"),
            ("slow job", 40, "flights[3] offset 19000 is at work for 1.6 min", "awoke dump MODULE:APP"),
        )
    ]
    rows = [
        Example(state="working", lag=20, lag_per_s=-1.5),
        Example(state="failing", lag=1_800, lag_per_s=12.5),
        Example(state="slow", lag=55, lag_per_s=0.0),
        Example(state="idle", lag=0, lag_per_s=None),
    ]
    return StylePage(
        at_ms=wall_ms() - 7_200_000,
        reasons=reasons,
        rows=Rows(rows=rows, total=len(rows), sort="lag", is_descending=False),
    )


PAGES = [
    Page("/checks", "Self-checks", self_checks, "checks.html", section="Now"),
    Page("/style", "Style guide", style, "style.html"),
]
