"""The same answer without Kafka: pandas groups the file, and the results are compared."""

from __future__ import annotations

from typing import Any

from examples.flights.app import RouteSummary
from examples.flights.data import Lookups, load_table


def plain_summaries(rows: int | None, lookups: Lookups) -> dict[str, RouteSummary]:
    """Returns the summary of every route over the first flights of the file; None for all."""
    frame = load_table("flights")
    frame = frame if rows is None else frame.head(rows)
    groups = frame.groupby(["origin", "dest"])
    return {f"{origin}-{dest}": _summary(origin, dest, group, lookups) for (origin, dest), group in groups}


def _summary(origin: str, dest: str, group: Any, lookups: Lookups) -> RouteSummary:
    delays = group["arr_delay"].dropna()
    return RouteSummary(
        origin=lookups.airports.get(origin, origin),
        dest=lookups.airports.get(dest, dest),
        airlines=sorted(group["carrier"].map(lookups.airlines).unique()),
        flights=len(group),
        seats=int(group["tailnum"].map(lookups.seats).sum()),
        arrived=len(delays),
        delay_min_total=int(delays.sum()),
        delay_min_max=None if delays.empty else int(delays.max()),
    )


def differences(found: dict[str, RouteSummary], expected: dict[str, RouteSummary]) -> list[str]:
    """A line for each route that is not equal; none when the answers agree."""
    return [
        f"{route}: found {found.get(route)}, expected {expected.get(route)}"
        for route in sorted(found.keys() | expected.keys())
        if found.get(route) != expected.get(route)
    ]
