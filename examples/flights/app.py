"""The app: joins each flight with its airline, airports and plane, and keeps a summary of each route.

Run it on brokers of yours: `awoke run examples.flights.app:app`.
Watch it from end to end: `python -m examples.flights.demo`.
"""

from __future__ import annotations

import functools
import threading

import msgspec

import awoke
from examples.flights.data import Flight, Lookups, load_lookups

FLIGHTS = "flights"
DELAYS = "route-delays"


class RouteSummary(msgspec.Struct):
    """The summary of a route up to now; sent when a batch has changed it."""

    origin: str
    dest: str
    airlines: list[str] = []
    """Their names, sorted."""
    flights: int = 0
    seats: int = 0
    """Of all flights whose plane is known."""
    arrived: int = 0
    delay_min_total: int = 0
    """Over the flights that arrived."""
    delay_min_max: int | None = None
    """None when no flight arrived."""

    def add(self, flight: Flight, airline: str, seats: int) -> None:
        """Count one more flight."""
        self.flights += 1
        self.seats += seats
        if airline not in self.airlines:
            self.airlines = sorted([*self.airlines, airline])
        if flight.delay_min is not None:
            self.arrived += 1
            self.delay_min_total += flight.delay_min
            is_worst = self.delay_min_max is None or flight.delay_min > self.delay_min_max
            self.delay_min_max = flight.delay_min if is_worst else self.delay_min_max


class Tally:
    """Counts processed messages and wakes the thread that waits for a number of them. Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def add(self, count: int) -> None:
        """Adds to the count."""
        with self._changed:
            self._count += count
            self._changed.notify_all()

    def wait_beyond(self, count: int, timeout_s: float) -> int:
        """Block until more than `count` were counted, or for `timeout_s`; how many there are."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > count, timeout_s)
            return self._count


processed = Tally()
_loading = threading.Lock()
_load_once = functools.cache(load_lookups)


def lookups() -> Lookups:
    """The tables, loaded on first use. Any thread: pandas can't unpickle on two at a time."""
    with _loading:
        return _load_once()


class RouteDelays(awoke.Consumer):
    """Summaries of the routes of one partition.

    A route's flights share a key and so a partition: no other instance counts them, and no lock is needed.
    The state lives as long as the partition is assigned; an app that must survive a restart would read its
    output topic back.
    """

    def assigned(self) -> None:
        """Start with no routes."""
        self.lookups: Lookups = lookups()
        self.routes: dict[str, RouteSummary] = {}

    def consume(self, batch: awoke.Batch[Flight]) -> None:
        """Count the flights, send the summaries that changed, and keep them once the broker has them.

        A batch that fails is tried again from the state before it: no flight counts twice.
        """
        changed: dict[str, RouteSummary] = {}
        for flight in batch.values():
            if flight.route not in changed:
                changed[flight.route] = self.copy_of(flight)
            self.join(flight, changed[flight.route])
        produce = self.app.producer.produce
        topic = delays_topic(self.topic)
        awoke.wait_all([produce(topic, summary, key=route) for route, summary in changed.items()])
        self.routes.update(changed)
        processed.add(len(batch))

    def copy_of(self, flight: Flight) -> RouteSummary:
        """The summary of the flight's route, to be changed freely."""
        known = self.routes.get(flight.route)
        if known is not None:
            return msgspec.structs.replace(known)
        name = self.lookups.airports.get
        return RouteSummary(name(flight.origin, flight.origin), name(flight.dest, flight.dest))

    def join(self, flight: Flight, summary: RouteSummary) -> None:
        """Look up what the flight's codes mean, and count it."""
        seats = self.lookups.seats.get(flight.tail or "", 0)
        summary.add(flight, self.lookups.airlines[flight.carrier], seats)


def delays_topic(flights_topic: str) -> str:
    """Where summaries go: the same suffix as the topic of the flights."""
    return DELAYS + flights_topic.removeprefix(FLIGHTS)


def make_app(suffix: str = "") -> awoke.App:
    """An app whose topics and group end with this suffix."""
    app = awoke.App(f"flights{suffix}")
    app.consumer(f"{FLIGHTS}{suffix}", value=Flight, batch=awoke.Batching(max_messages=1000))(RouteDelays)
    return app


app = make_app()
