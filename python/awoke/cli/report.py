"""`awoke report`: the state of an app, and why it may be stuck, from the topics of its console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from awoke.cli.commands import Section, command
from awoke.cli.options import AsJson, BootstrapServers, Kafka, pairs
from awoke.cli.output import say, say_json, say_styled, show_table
from awoke.text.durations import duration

if TYPE_CHECKING:
    from awoke.console.views import AppView

NONE = "-"
"""Shown for what is not known."""


@command(Section.WATCH)
def report(
    name: Annotated[str, typer.Argument(metavar="APP", help="The app's name.")],
    json: AsJson = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    timeout_s: Annotated[float, typer.Option(help="The longest wait for each answer.")] = 30.0,
) -> None:
    """Show the processes of an app, its lag and its failures, and why it may be stuck (needs console=True)."""
    import msgspec

    from awoke.console.state import read_view
    from awoke.settings import load

    given = {"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}
    view = read_view(name, load(given).values, timeout_s)
    if json:
        say_json(msgspec.json.encode(view).decode())
    else:
        show(view)


def show(view: AppView) -> None:
    """Writes the state of an app for people."""
    for each in view.reasons:
        say_styled(f"{each.kind}: {each.text}; {each.advice}", "yellow")
    if not view.reasons:
        say("nothing is stuck")
    show_table(("process", "state", "reported", "memory", "partitions", "failures"), node_rows(view))
    say("")
    show_table(("group", "topic", "partition", "committed", "end", "lag"), partition_rows(view))
    if view.errors:
        rows = [
            (each.fingerprint, str(each.count), each.last.handler or NONE, each.last.error_type, each.last.error_text)
            for each in view.errors
        ]
        say("")
        show_table(("fingerprint", "count", "handler", "error", "last text"), rows)
    if view.unreadable:
        say(f"{view.unreadable} records could not be read")


def node_rows(view: AppView) -> Iterator[tuple[str, ...]]:
    """Yields a row for each process."""
    for each in view.nodes:
        age, report = f"{duration(max(0, view.at_ms - each.at_ms) / 1_000)} ago", each.report()
        if report is None:
            yield each.node, "newer node", age, NONE, NONE, NONE
            continue
        state = each.state_of(report)
        memory = f"{report.memory_bytes / 1_048_576:.0f} MB"
        yield each.node, state, age, memory, str(report.partitions_total), str(report.failures)


def partition_rows(view: AppView) -> Iterator[tuple[str, ...]]:
    """Yields a row for each partition of each group."""
    for group in view.groups:
        for each in group.partitions:
            numbers = (NONE if at is None else str(at) for at in (each.committed, each.end_offset, each.lag))
            yield group.group, each.topic, str(each.partition), *numbers
