"""The first page, and the reasons why messages are not processed."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator

import msgspec

from awoke.console.views import ErrorView, Reason, Report, Sample
from awoke.console.web.page import Asked, Page
from awoke.console.web.snapshot import Snapshot
from awoke.console.web.steps import Step

SHOWN = 5
"""The reasons and failures that the first page shows."""
FIRST_S = 0.5
"""The longest wait of the first page for the end of the reports: without them it says what the console waits for."""
STEP_MS = 5_000
STEPS = 60
ENDING = ("stopping", "ending", "ended")
"""The states of a node that no report will come from."""


class Chart(msgspec.Struct, kw_only=True):
    """Numbers over the last minutes, the oldest first."""

    title: str
    unit: str
    now: float
    at_ms: list[int]
    values: list[float]


class Awaited(msgspec.Struct, kw_only=True):
    """A node of a swarm that has not reported."""

    host: str
    supervisor_pid: int
    node: int
    state: str
    """As its supervisor last said."""


class OverviewPage(msgspec.Struct, kw_only=True):
    """The state of the app in a few numbers."""

    app: str
    at_ms: int
    problem: str | None
    processes: int
    silent: int
    overdue: int
    """Processes whose next report should have come, but that are not silent yet."""
    partitions: int
    lag: int | None
    """Messages that are not committed; None where no committed offset is known."""
    in_flight: int
    failing: int
    """Messages that are tried again."""
    paused: int
    """Partitions that wait for an operator."""
    failures: int
    charts: list[Chart]
    reasons: list[Reason]
    reasons_total: int
    errors: list[ErrorView]
    is_waiting: bool
    """True until a process has reported, and again when all have stopped in order."""
    steps: list[Step]
    """The start, as far as the console knows it; empty unless it waits."""
    awaited: list[Awaited]


class StuckPage(msgspec.Struct, kw_only=True):
    """All reasons why messages are not processed, the most severe first."""

    at_ms: int
    problem: str | None
    reasons: list[Reason]


def overview(asked: Asked) -> OverviewPage:
    """Returns the first page."""
    now = asked.source.snapshot(FIRST_S)
    view, reports = now.view, list(now.live.values())
    partitions = [each for report in reports for each in report.partitions]
    lags = [each.lag for group in view.groups for each in group.partitions if each.lag is not None]
    return OverviewPage(
        app=view.app,
        at_ms=view.at_ms,
        problem=now.problem if now.is_read else now.problem or "The reports are still being read.",
        processes=len(reports),
        silent=sum(each.is_silent for each in view.nodes),
        overdue=sum(each.is_overdue and not each.is_silent for each in view.nodes),
        partitions=sum(each.partitions_total for each in reports),
        lag=sum(lags) if lags else None,
        in_flight=sum(each.in_flight for each in partitions),
        failing=sum(len(each.failing) for each in partitions),
        paused=sum(each.paused_because is not None for each in partitions),
        failures=sum(each.failures for each in reports),
        charts=charts(now),
        reasons=view.reasons[:SHOWN],
        reasons_total=len(view.reasons),
        errors=view.errors[:SHOWN],
        is_waiting=not view.nodes,
        steps=[] if view.nodes else list(now.steps),
        awaited=list(awaited(reports)),
    )


def awaited(reports: Iterable[Report]) -> Iterator[Awaited]:
    """Yields the nodes that a supervisor tells of, and that do not report. Those that end are not awaited."""
    swarms: dict[tuple[str, int], list[Report]] = collections.defaultdict(list)
    for report in reports:
        if report.supervisor_pid is not None:
            swarms[report.host, report.supervisor_pid].append(report)
    for (host, supervisor_pid), found in sorted(swarms.items()):
        reported = {each.number for each in found}
        for node in max(found, key=lambda each: each.at_ms).swarm:
            if node.node not in reported and node.state not in ENDING:
                yield Awaited(host=host, supervisor_pid=supervisor_pid, node=node.node, state=node.state)


def charts(now: Snapshot) -> list[Chart]:
    """Returns the progress of all processes over the last five minutes."""
    sums = added(now.live.values(), now.view.at_ms)
    at_ms = [step * STEP_MS for step in sorted(sums)]
    samples = [sums[step] for step in sorted(sums)]

    def chart(title: str, unit: str, values: list[float]) -> Chart:
        return Chart(title=title, unit=unit, now=values[-1] if values else 0.0, at_ms=at_ms, values=values)

    return [
        chart("Messages", "per second", [each.offsets / 5 for each in samples]),
        chart("Failures", "per second", [each.failures / 5 for each in samples]),
        chart("Lag", "messages", [float(each.lag) for each in samples]),
        chart("Memory", "bytes", [float(each.memory_bytes) for each in samples]),
    ]


def added(reports: Iterable[Report], now_ms: int) -> dict[int, Sample]:
    """Returns the sums of all processes for each step of five seconds. The last two may be incomplete: left out."""
    last = now_ms // STEP_MS - 2
    found: dict[int, Sample] = collections.defaultdict(lambda: Sample(0, 0, 0, 0, 0))
    for report in reports:
        for each in report.history.of_5_s:
            step = each.at_ms // STEP_MS
            if last - STEPS < step <= last:
                total = found[step]
                total.offsets += each.offsets
                total.failures += each.failures
                total.lag += each.lag
                total.memory_bytes += each.memory_bytes
    return found


def stuck(asked: Asked) -> StuckPage:
    """Returns the reasons."""
    now = asked.snapshot()
    return StuckPage(at_ms=now.view.at_ms, problem=now.problem, reasons=now.view.reasons)


PAGES = [
    Page("/", "Overview", overview, "overview.html", section="Now"),
    Page("/stuck", "Why is it stuck?", stuck, "stuck.html", section="Now"),
]
