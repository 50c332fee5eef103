"""The processes of the app, and what each of them tells of itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from awoke.console.stuck import unheard
from awoke.console.views import Memory, NodeView, Report, Sample
from awoke.console.web.page import Asked, NoSuchPage, Page, Rows
from awoke.operate.commands.views import SwarmNode
from awoke.text.records import decode

VALUE_MAX = 10_000
"""The most characters of a value that this version does not know."""


class ProcessRow(msgspec.Struct, kw_only=True):
    """A process; None for what a newer one does not tell this awoke."""

    node: str
    state: str
    """`running`, `quiet`, `stopping`, `overdue`, `silent` or `newer node`."""
    at_ms: int
    host: str | None = None
    number: int | None = None
    started_at_ms: int | None = None
    memory_bytes: int | None = None
    memory: Memory | None = None
    threads: int | None = None
    partitions: int | None = None
    in_flight: int | None = None
    failures: int | None = None
    offsets_per_s: float | None = None
    problems: list[str] = []
    trend: list[float] = []
    """Messages per second of the last five minutes."""


class SwarmRow(msgspec.Struct, kw_only=True):
    """A node of a swarm, as its supervisor sees it."""

    said: SwarmNode
    process: str | None
    """The name of its process; None of a node that sends no reports."""


class ShownSwarm(msgspec.Struct, kw_only=True):
    """A supervisor and its nodes."""

    supervisor_pid: int
    at_ms: int
    """The time of the report that tells of it."""
    nodes: list[SwarmRow]


class Host(msgspec.Struct, kw_only=True):
    """The processes of one host."""

    host: str
    memory_bytes: int
    """Each shared page counts once where the processes tell what they share."""
    nodes: list[ProcessRow]
    swarms: list[ShownSwarm] = []
    alone: list[ProcessRow] = []
    """Those of `nodes` that are not in a swarm here."""


class ProcessesPage(msgspec.Struct, kw_only=True):
    """All processes."""

    problem: str | None
    processes: Rows[ProcessRow]
    hosts: list[Host]


class ProcessPage(msgspec.Struct, kw_only=True):
    """One process."""

    row: ProcessRow
    report: Report | None
    """None of a newer process."""
    minutes: list[Sample]
    document: dict[str, Any]
    """Fields of the report that this awoke does not know."""


class SettingRow(msgspec.Struct, kw_only=True):
    """A setting that is not the default, and the processes that have it."""

    name: str
    value: str
    nodes: list[str]
    differs: bool
    """True: other processes have another value."""
    origins: list[str] = []
    """Where these processes take it from, as `environment`; empty for versions."""


class SettingsPage(msgspec.Struct, kw_only=True):
    """The settings and versions of all processes."""

    settings: Rows[SettingRow]
    versions: list[SettingRow]


class ThreadRow(msgspec.Struct, kw_only=True):
    """The threads of one process."""

    node: str
    count: int
    owners: dict[str, int]
    """The number of threads of each owner, the most first."""
    commands: list[str]
    """The commands that the process takes; `stacks` shows what its threads do."""


class ThreadsPage(msgspec.Struct, kw_only=True):
    """The threads of all processes."""

    threads: Rows[ThreadRow]
    owners: dict[str, int]
    """The number of threads of each owner in all processes, the most first."""


def row_of(node: NodeView, report: Report | None, now_ms: int) -> ProcessRow:
    """Returns a process as a row."""
    if report is None:
        return ProcessRow(node=node.node, state="newer node", at_ms=node.at_ms)
    late = unheard(node, now_ms) if node.is_overdue else None
    problems = [each for each in (late, report.not_ready_because, report.brokers_away_because) if each is not None]
    recent = report.history.of_5_s
    return ProcessRow(
        node=node.node,
        state=node.state_of(report),
        at_ms=node.at_ms,
        host=report.host,
        number=report.number,
        started_at_ms=report.started_at_ms,
        memory_bytes=report.memory_bytes,
        memory=report.memory,
        threads=sum(report.threads.values()),
        partitions=report.partitions_total,
        in_flight=sum(each.in_flight for each in report.partitions),
        failures=report.failures,
        offsets_per_s=recent[-1].offsets / 5 if recent else None,
        problems=[*problems, *report.unhealthy_because],
        trend=[each.offsets / 5 for each in recent],
    )


def memory_of(row: ProcessRow) -> int:
    """Returns the memory of a process as it counts in the sum of a host."""
    return (row.memory_bytes or 0) if row.memory is None else row.memory.proportional_bytes


def processes(asked: Asked) -> ProcessesPage:
    """Returns all processes."""
    now = asked.snapshot()
    rows = [row_of(each, now.reports.get(each.node), now.view.at_ms) for each in now.view.nodes]
    by_host: dict[str, list[ProcessRow]] = {}
    for each in rows:
        by_host.setdefault(each.host or "?", []).append(each)
    columns = {
        "process": lambda each: each.node,
        "state": lambda each: each.state,
        "memory": lambda each: each.memory_bytes,
        "partitions": lambda each: each.partitions,
        "in_flight": lambda each: each.in_flight,
        "rate": lambda each: each.offsets_per_s,
        "failures": lambda each: each.failures,
        "started": lambda each: each.started_at_ms,
    }
    hosts = []
    for host, nodes in sorted(by_host.items()):
        swarms = swarms_of([each for each in now.live.values() if each.host == host])
        inside = {each.process for swarm in swarms for each in swarm.nodes}
        memory_bytes = sum(memory_of(each) for each in nodes)
        alone = [each for each in nodes if each.node not in inside]
        hosts.append(Host(host=host, memory_bytes=memory_bytes, nodes=nodes, swarms=swarms, alone=alone))
    table = asked.rows(rows, "process", columns, text=lambda each: f"{each.node} {each.state}")
    return ProcessesPage(problem=now.problem, processes=table, hosts=hosts)


def swarms_of(reports: Collection[Report]) -> list[ShownSwarm]:
    """Returns the swarms of one host, each from the newest report that tells of it."""
    newest: dict[int, Report] = {}
    for each in sorted(reports, key=lambda each: each.at_ms):
        if each.supervisor_pid is not None and each.swarm:
            newest[each.supervisor_pid] = each
    found = []
    for pid, report in sorted(newest.items()):
        names = {each.number: each.node for each in reports if each.supervisor_pid == pid}
        nodes = [
            SwarmRow(said=said, process=names.get(said.node))
            for said in sorted(report.swarm, key=lambda each: each.node)
        ]
        found.append(ShownSwarm(supervisor_pid=pid, at_ms=report.at_ms, nodes=nodes))
    return found


def process(asked: Asked) -> ProcessPage:
    """Returns one process."""
    now = asked.snapshot()
    name = asked.path["node"]
    found = next((each for each in now.view.nodes if each.node == name), None)
    if found is None:
        raise NoSuchPage(f"no process {name} has reported, or it has stopped in order")
    report = now.reports.get(name)
    known = set() if report is None else set(Report.__struct_fields__)
    sent = decode(found.document, dict[str, msgspec.Raw]) or {}
    return ProcessPage(
        row=row_of(found, report, now.view.at_ms),
        report=report,
        minutes=[] if report is None else report.history.of_minutes,
        document={field: shown_of(value) for field, value in sent.items() if field not in known},
    )


def shown_of(value: msgspec.Raw) -> Any:
    """Returns a value that this version does not know: a list or an object as its text, however deep it is nested."""
    if bytes(value)[:1] in (b"[", b"{"):
        return bytes(value).decode(errors="replace")[:VALUE_MAX]
    return decode(value, Any)


def settings(asked: Asked) -> SettingsPage:
    """Returns the settings of all processes, those first in which they differ."""
    reports = list(asked.snapshot().live.values())
    found = settings_of(reports)
    columns = {"name": lambda each: each.name, "differs": lambda each: (not each.differs, each.name)}
    rows = asked.rows(found, "differs", columns, text=lambda each: f"{each.name} {each.value} {each.origins}")
    return SettingsPage(settings=rows, versions=grouped({each.node: each.versions for each in reports}))


def settings_of(reports: Collection[Report]) -> list[SettingRow]:
    """Returns the settings of these processes with their origins, which an older process does not tell."""
    origins = {each.node: {said.name: said.origin for said in each.explained} for each in reports}
    found = grouped(
        {each.node: {**each.settings, **{said.name: said.value for said in each.explained}} for each in reports}
    )
    for row in found:
        row.origins = sorted({origins[node][row.name] for node in row.nodes if row.name in origins[node]})
    return found


def grouped(values: dict[str, dict[str, str]]) -> list[SettingRow]:
    """Returns the values by their names, with the processes that have each."""
    found: dict[tuple[str, str], list[str]] = {}
    for node, pairs in values.items():
        for pair in pairs.items():
            found.setdefault(pair, []).append(node)
    return [
        SettingRow(name=name, value=value, nodes=nodes, differs=len(nodes) < len(values))
        for (name, value), nodes in sorted(found.items())
    ]


def threads(asked: Asked) -> ThreadsPage:
    """Returns the threads of all processes by owner."""
    reports = asked.snapshot().live.values()
    rows = [
        ThreadRow(
            node=each.node, count=sum(each.threads.values()), owners=most_first(each.threads), commands=each.commands
        )
        for each in reports
    ]
    columns = {"process": lambda each: each.node, "count": lambda each: each.count}
    table = asked.rows(rows, "process", columns, text=lambda each: f"{each.node} {' '.join(each.owners)}")
    total: dict[str, int] = {}
    for each in rows:
        for owner, count in each.owners.items():
            total[owner] = total.get(owner, 0) + count
    return ThreadsPage(threads=table, owners=most_first(total))


def most_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts in falling order."""
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


PAGES = [
    Page("/processes", "Processes", processes, "processes.html", section="Processes"),
    Page("/processes/{node:path}", "Process", process, "process.html"),
    Page("/threads", "Threads", threads, "threads.html", section="Processes"),
    Page("/settings", "Settings", settings, "settings.html", section="Processes"),
]
