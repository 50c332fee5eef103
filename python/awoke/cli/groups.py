"""`awoke groups`: list, describe and delete consumer groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

import awoke
from awoke.cli.commands import group
from awoke.cli.options import BootstrapServers, Kafka, confirm, pairs
from awoke.cli.output import say, show_table
from awoke.cli.tables import plural
from awoke.errors import ConfigError, UnknownTopic
from awoke.operate.dead_letters.letters import moment_ms
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.admin import OffsetChange, ResetTo

app = group("groups", "List, describe, reset and delete consumer groups.")

Name = Annotated[str, typer.Argument(help="The group's name.")]
NONE = "-"
"""Shown where there is no offset, no lag or no member."""


@app.command("list")
def list_groups(bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """List groups with their state and kind."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        for each in admin.list_groups():
            say(f"{each.name}\t{each.state}\t{each.kind}", keep="\t")


@app.command("describe")
def describe(name: Name, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """Show a group's state, its members, and the lag of each partition."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        found = admin.describe_group(name)
        committed = admin.group_offsets(name)
        owners = {place: each for each in found.members for place in each.partitions}
        places = sorted(set(committed) | set(owners))
        ends = ends_of(admin, {topic for topic, _ in places})
    protocol = f", {found.protocol}" if found.protocol else ""
    coordinator = f", coordinator {found.coordinator.address}" if found.coordinator else ""
    say(f"{found.name}: {found.state}, {found.kind}{protocol}{coordinator}, lag {lag_of(committed, ends)}")
    rows = []
    for topic, partition in places:
        before, end = committed.get((topic, partition)), ends.get((topic, partition))
        lag = None if before is None or end is None else max(end - before, 0)
        owner = owners.get((topic, partition))
        numbers = (shown(each) for each in (before, end, lag))
        rows.append((topic, str(partition), *numbers, owner.client_id if owner else NONE, owner.id if owner else NONE))
    show_table(("topic", "partition", "committed", "next offset", "lag", "client", "member"), rows)
    if found.members:
        members = [
            (each.id, each.client_id, each.host, each.static_id or NONE, str(len(each.partitions)))
            for each in found.members
        ]
        show_table(("member", "client", "host", "static id", "partitions"), members)


def ends_of(admin: awoke.Admin, topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """Returns the offset after the last message, by topic and partition; of deleted topics none."""
    found: dict[tuple[str, int], int] = {}
    for topic in sorted(topics):
        with contextlib.suppress(UnknownTopic):
            found |= {(topic, partition): end for partition, end in admin.end_offsets(topic).items()}
    return found


def lag_of(committed: dict[tuple[str, int], int], ends: dict[tuple[str, int], int]) -> int:
    """Returns the number of offsets that are not committed yet, of all partitions with a committed offset."""
    return sum(max(ends[place] - offset, 0) for place, offset in committed.items() if place in ends)


def shown(offset: int | None) -> str:
    """Returns an offset as text."""
    return NONE if offset is None else str(offset)


@app.command("delete")
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Delete a group without members, with its committed offsets."""
    confirm(f"Delete group {printable(name)} with all its committed offsets?", yes)
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        admin.delete_group(name)
    say(f"group {name} deleted")


@app.command("reset")
def reset(
    name: Name,
    topic: Annotated[
        list[str] | None, typer.Option(help="A topic; several times. By default all that the group has offsets of.")
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option(help="The first message at or after a time (2026-01-31T12:00), or of an age (30m, 7d)."),
    ] = None,
    to_offset: Annotated[int | None, typer.Option(help="This offset in each partition.")] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first message.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="After the last message.")] = False,
    shift_by: Annotated[int | None, typer.Option(help="Move by this number of messages; back, if negative.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the changes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Move the committed offsets of a group that has no members. Show the changes first, and ask."""
    targets: list[ResetTo] = []
    if to_time is not None:
        targets.append(datetime.fromtimestamp(moment_ms(to_time, datetime.now(UTC), "--to-time") / 1_000, UTC))
    if to_earliest:
        targets.append("earliest")
    if to_latest:
        targets.append("latest")
    targets += [] if to_offset is None else [to_offset]
    targets += [] if shift_by is None else [awoke.Shift(shift_by)]
    if len(targets) != 1:
        options = "--to-time, --to-offset, --to-earliest, --to-latest and --shift-by"
        raise ConfigError(f"say where the offsets move: one of {options}", "--to-time")
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        plan = admin.plan_reset(name, topic or None, to=targets[0])
        changes = [each for each in plan if each.before != each.after]
        show(plan)
        if not changes:
            say("there is nothing to change")
        elif not dry_run:
            confirm(f"Move {plural(len(changes), 'offset')} of group {name}?", yes)
            admin.reset_offsets(changes)
            say(f"moved {plural(len(changes), 'offset')} of group {name}")


def show(plan: Sequence[OffsetChange]) -> None:
    """Writes the changes as a table."""
    rows = [
        (
            each.topic,
            str(each.partition),
            shown(each.before),
            str(each.after),
            str(each.start),
            str(each.end),
            "nearest in the log" if each.is_clamped else "",
        )
        for each in plan
    ]
    show_table(("topic", "partition", "committed", "new", "first offset", "next offset", "note"), rows)
