"""A year of New York's flights through awoke, checked: `python -m examples.flights.demo`.

1. Start embedded brokers, or take those of `--bootstrap-servers`, and create two topics.
2. Produce every flight, keyed by its route.
3. Run the app in this process until it has processed them all.
4. Read the summaries back, compare them with the plain computation, and show the busiest routes.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import time
import uuid
from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console, RenderableType
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import awoke
from awoke.testing import EmbeddedCluster, running
from examples.flights.app import DELAYS, FLIGHTS, RouteSummary, make_app, processed
from examples.flights.data import Flight, load_flights, load_lookups
from examples.flights.plain import differences, plain_summaries

SLICE_MESSAGES = 5_000
STALL_TIMEOUT_S = 60.0
"""A longer time without a processed message is a failure."""
PARTITIONS = 24
"""The embedded brokers keep 5 MB a partition: of all flights the fullest partition of 24 gets 3.4 MB."""

screen = Console(width=None if sys.stdout.isatty() else 140)
errors = Console(stderr=True)


class Failure(Exception):
    """The demo did not show what it should; the text says what."""


def main() -> int:
    """Run the demo; the exit code, 0 when the answer is right."""
    args = arguments()
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[RichHandler(console=errors)])
    suffix = f"-{uuid.uuid4().hex[:8]}"
    flights = load_flights(args.rows)
    try:
        with brokers(args.bootstrap_servers, suffix, args.partitions) as servers:
            produced_s = produce(flights, servers, suffix)
            check_all_kept(servers, suffix)
            processed_s = process(len(flights), servers, suffix)
            summaries = read_summaries(servers, suffix)
        checked = check(summaries, args.rows)
    except (Failure, awoke.AwokeError) as failure:
        errors.print(f"[red]failed:[/red] {failure}")
        return 1
    screen.print(busiest(summaries))
    report(len(flights), produced_s, processed_s, checked)
    return 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m examples.flights.demo", description="A year of flights.")
    parser.add_argument("--bootstrap-servers", help="brokers to use; embedded ones when left out")
    parser.add_argument("--rows", type=int, help="flights to process; all 336,776 when left out")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="default: %(default)s")
    return parser.parse_args()


@contextlib.contextmanager
def brokers(servers: str | None, suffix: str, partitions: int) -> Iterator[str]:
    """Brokers with both topics; topics on brokers of yours are deleted at the end."""
    topics = [f"{FLIGHTS}{suffix}", f"{DELAYS}{suffix}"]
    if servers is None:
        with EmbeddedCluster() as cluster:
            for topic in topics:
                cluster.create_topic(topic, partitions=partitions)
            yield cluster.bootstrap_servers
        return
    with awoke.Admin(servers) as admin, contextlib.ExitStack() as created:
        for topic in topics:
            admin.create_topic(topic, partitions=partitions)
            created.callback(admin.delete_topic, topic)
        yield servers


def produce(flights: Sequence[Flight], servers: str, suffix: str) -> float:
    """Send all flights; the seconds until the brokers had them all."""
    began_s = time.monotonic()
    topic = f"{FLIGHTS}{suffix}"
    handles: list[awoke.DeliveryHandle] = []
    with awoke.Producer(servers) as producer, progress_bar("produced", len(flights)) as (bar, task):
        for start in range(0, len(flights), SLICE_MESSAGES):
            part = flights[start : start + SLICE_MESSAGES]
            handles += producer.produce_many(topic, [(flight, flight.route) for flight in part])
            bar.advance(task, len(part))
        awoke.wait_all(handles)
    return time.monotonic() - began_s


def check_all_kept(servers: str, suffix: str) -> None:
    """Fail if the embedded brokers had to drop messages, which they do beyond 5 MB a partition."""
    with awoke.Admin(servers) as admin:
        starts = admin.start_offsets(f"{FLIGHTS}{suffix}")
    dropped = sum(starts.values())
    if dropped:
        raise Failure(f"the brokers dropped {dropped} messages for lack of room; use more --partitions")


def process(count: int, servers: str, suffix: str) -> float:
    """Runs the app until it has processed this number of flights; returns the seconds, with joining the group."""
    app = make_app(suffix)
    began_s = time.monotonic()
    with progress_bar("processed", count) as (bar, task), running(app, bootstrap_servers=servers):
        done = 0
        while done < count:
            before, done = done, processed.wait_beyond(done, STALL_TIMEOUT_S)
            if done == before:
                raise Failure(f"{done} of {count} flights processed, and no more for {STALL_TIMEOUT_S:.0f} s")
            bar.update(task, completed=done)
        return time.monotonic() - began_s


def read_summaries(servers: str, suffix: str) -> dict[str, RouteSummary]:
    """The latest summary of each route."""
    latest: dict[bytes, bytes] = {}
    with awoke.Reader(f"{DELAYS}{suffix}", bootstrap_servers=servers) as reader:
        for message in reader.read_until_end(timeout_s=STALL_TIMEOUT_S):
            if message.key is not None and message.raw_value is not None:
                latest[message.key] = message.raw_value
    decoder = msgspec.json.Decoder(RouteSummary)
    return {route.decode(): decoder.decode(value) for route, value in latest.items()}


def check(summaries: dict[str, RouteSummary], rows: int | None) -> int:
    """Compare with the plain computation; how many routes are equal, which is all of them."""
    wrong = differences(summaries, plain_summaries(rows, load_lookups()))
    if wrong:
        raise Failure(f"{len(wrong)} routes differ from the plain computation; the first: {wrong[0]}")
    return len(summaries)


def busiest(summaries: dict[str, RouteSummary], count: int = 15) -> Table:
    """A table of the routes with the most flights."""
    table = Table(title=f"The {count} busiest routes out of New York City, 2013")
    table.add_column("route", no_wrap=True)
    for heading, width in (("from", 19), ("to", 26), ("airlines", 40)):
        table.add_column(heading, max_width=width)
    for heading in ("flights", "mean delay", "worst"):
        table.add_column(heading, justify="right", no_wrap=True)
    routes = sorted(summaries.items(), key=lambda each: (-each[1].flights, each[0]))
    for route, summary in routes[:count]:
        table.add_row(route, *cells(summary))
    return table


def cells(summary: RouteSummary) -> tuple[RenderableType, ...]:
    """A route's row, after its name; names are cut where the screen is narrow, numbers never."""
    airlines = f"{len(summary.airlines)}: {', '.join(summary.airlines)}"
    names = (summary.origin, summary.dest, airlines)
    cut = [Text(name, no_wrap=True, overflow="ellipsis") for name in names]
    mean, worst = "-", "-"
    if summary.delay_min_max is not None:
        mean = f"{summary.delay_min_total / summary.arrived:.1f} min"
        worst = f"{summary.delay_min_max:,} min"
    return *cut, f"{summary.flights:,}", mean, worst


def report(count: int, produced_s: float, processed_s: float, checked: int) -> None:
    """Throughput and the check's result."""
    for verb, seconds in (("produced", produced_s), ("processed", processed_s)):
        screen.print(f"{verb:<9} {count:,} messages in {seconds:.2f} s: {count / seconds:,.0f} messages/s")
    screen.print(f"answer checked: {checked} routes equal to the plain computation")


@contextlib.contextmanager
def progress_bar(verb: str, total: int) -> Iterator[tuple[Progress, TaskID]]:
    """A progress bar on standard error."""
    columns = (TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors) as bar:
        yield bar, bar.add_task(verb, total=total)


if __name__ == "__main__":
    sys.exit(main())
