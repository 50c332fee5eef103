"""The routes of the app with their options, rates and failures, over all processes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from awoke.console.views import Handler, Report
from awoke.console.web.page import Asked, Page, Rows

RouteKey = tuple[str, str, str]


class RouteRow(msgspec.Struct, kw_only=True):
    """A route of the app, over the processes that have it; its options are those of the newest report."""

    name: str
    group: str
    topic: str
    is_async: bool
    concurrency: int
    """The jobs of one partition that run at once, at most."""
    exactly_once: bool
    dead_letter: str | None
    messages_per_s: float | None = None
    """Of all processes; None while none of them knows it."""
    failures: int = 0
    """Of the processes since the start of each."""
    nodes: list[str] = []
    differs: bool = False
    """True: processes have the route with other options, or not at all."""


class RoutesPage(msgspec.Struct, kw_only=True):
    """All routes."""

    problem: str | None
    routes: Rows[RouteRow]


def options(handler: Handler) -> tuple[bool, int, bool, str | None]:
    """Returns what must be the same in all processes."""
    return handler.is_async, handler.concurrency, handler.exactly_once, handler.dead_letter


def routes_of(reports: Iterable[Report]) -> list[RouteRow]:
    """Returns a row for each route, with the rates and failures of all processes together."""
    newest_first = sorted(reports, key=lambda each: -each.at_ms)
    found: dict[RouteKey, list[tuple[str, Handler]]] = {}
    for report in newest_first:
        for each in report.handlers:
            found.setdefault((each.name, each.group, each.topic), []).append((report.node, each))
    rows = []
    for (name, group, topic), holders in found.items():
        handlers = [handler for _, handler in holders]
        rates = [each.messages_per_s for each in handlers if each.messages_per_s is not None]
        nodes = {node for node, _ in holders}
        rows.append(
            RouteRow(
                name=name,
                group=group,
                topic=topic,
                is_async=handlers[0].is_async,
                concurrency=handlers[0].concurrency,
                exactly_once=handlers[0].exactly_once,
                dead_letter=handlers[0].dead_letter,
                messages_per_s=sum(rates) if rates else None,
                failures=sum(each.failures for each in handlers),
                nodes=sorted(nodes),
                differs=len(set(map(options, handlers))) > 1 or len(nodes) < len(newest_first),
            )
        )
    return rows


def routes(asked: Asked) -> RoutesPage:
    """Returns all routes."""
    now = asked.snapshot()
    columns = {
        "route": lambda each: (each.name, each.topic, each.group),
        "topic": lambda each: (each.topic, each.name),
        "group": lambda each: (each.group, each.name),
        "concurrency": lambda each: each.concurrency,
        "rate": lambda each: each.messages_per_s,
        "failures": lambda each: each.failures,
    }
    found = routes_of(now.live.values())
    table = asked.rows(found, "route", columns, text=lambda each: f"{each.name} {each.topic} {each.group}")
    return RoutesPage(problem=now.problem, routes=table)


PAGES = [Page("/routes", "Routes", routes, "routes.html", section="Work")]
