"""The checks of the console itself: whether what it shows can be relied on."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from awoke.console.stuck import unheard
from awoke.console.topics import ConsoleTopics
from awoke.console.web.page import Asked, Page
from awoke.console.web.snapshot import Snapshot

CLOCK_MS = 5_000
"""A report from the future by more than this shows wrong clocks."""


class Check(msgspec.Struct, kw_only=True):
    """One check."""

    name: str
    state: str
    """`passed`, `failed` or `unknown`."""
    text: str
    advice: str = ""


class ChecksPage(msgspec.Struct, kw_only=True):
    """All checks."""

    checks: list[Check]
    failed: int


def self_checks(asked: Asked) -> ChecksPage:
    """Returns the checks."""
    found = list(checks_of(asked.snapshot(), asked.app))
    return ChecksPage(checks=found, failed=sum(each.state == "failed" for each in found))


def check(name: str, is_good: bool, text: str, advice: str) -> Check:
    """Returns a check, with its advice only where it has failed."""
    return Check(name=name, state="passed" if is_good else "failed", text=text, advice="" if is_good else advice)


def checks_of(now: Snapshot, app: str) -> Iterator[Check]:
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
        yield Check(name="health", state="failed", text=problem, advice="see why it is stuck")


PAGES = [Page("/checks", "Self-checks", self_checks, "checks.html", section="Now")]
