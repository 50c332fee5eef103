"""`awoke groups`: list, describe and delete consumer groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

import awoke
from awoke.cli.commands import Section, group
from awoke.cli.consent import Consent, asks_first
from awoke.cli.options import AsJson, BootstrapServers, Kafka, Quiet, pairs
from awoke.cli.output import documents, say, say_done, say_json, show_list
from awoke.cli.tables import listed, plural
from awoke.errors import ConfigError, UnknownTopic
from awoke.operate.dead_letters.letters import moment_ms
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.admin import OffsetChange, ResetTo

app = group("groups", "List, describe, reset and delete consumer groups.", Section.CLUSTER)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group.")]
Names = Annotated[list[str], typer.Argument(metavar="GROUP", help="The groups.")]


@app.command("list")
def list_groups(as_json: AsJson = False, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """List groups with their state and kind."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        found = admin.list_groups()
    show_list(("group", "state", "kind"), ((each.name, each.state, each.kind) for each in found), as_json)


PARTITION = ("topic", "partition", "committed", "next offset", "lag", "client", "member")
MEMBER = ("member", "client", "host", "static id", "partitions")


@app.command("describe")
def describe(
    names: Names, as_json: AsJson = False, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None
) -> None:
    """Show the state of groups, their members, and the lag of each partition."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        for name in dict.fromkeys(names):
            describe_one(admin, name, as_json)


def describe_one(admin: awoke.Admin, name: str, as_json: bool) -> None:
    """Shows one group. Blocks."""
    found = admin.describe_group(name)
    committed = admin.group_offsets(name)
    owners = {place: each for each in found.members for place in each.partitions}
    places = sorted(set(committed) | set(owners))
    ends = ends_of(admin, {topic for topic, _ in places})
    lag = lag_of(committed, ends)
    partitions = []
    for topic, partition in places:
        before, end = committed.get((topic, partition)), ends.get((topic, partition))
        behind = None if before is None or end is None else max(end - before, 0)
        owner = owners.get((topic, partition))
        who = (owner.client_id, owner.id) if owner else (None, None)
        partitions.append((topic, partition, before, end, behind, *who))
    members = [(each.id, each.client_id, each.host, each.static_id, len(each.partitions)) for each in found.members]
    coordinator = found.coordinator.address if found.coordinator else None
    if as_json:
        head = {"group": found.name, "state": found.state, "kind": found.kind, "protocol": found.protocol or None}
        parts = {"partitions": documents(PARTITION, partitions), "members": documents(MEMBER, members)}
        say_json(msgspec.json.encode({**head, "coordinator": coordinator, "lag": lag, **parts}).decode())
        return
    protocol = f", {found.protocol}" if found.protocol else ""
    at = f", coordinator {coordinator}" if coordinator else ""
    say(f"{found.name}: {found.state}, {found.kind}{protocol}{at}, lag {lag}")
    show_list(PARTITION, partitions, as_json=False)
    if members:
        say("")
        show_list(MEMBER, members, as_json=False)


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


@app.command("delete")
@asks_first("deletes groups with their committed offsets")
def delete(
    names: Names,
    consent: Consent,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Delete groups without members, with their committed offsets. If one does not exist, none is deleted."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        found = [admin.describe_group(name).name for name in dict.fromkeys(names)]
        words = f"{'group' if len(found) == 1 else 'groups'} {listed(list(map(printable, found)))}"
        if not consent.to(f"delete {words} with all committed offsets"):
            return
        for name in found:
            admin.delete_group(name)
    say_done(f"deleted {words}", is_quiet=quiet)


@app.command("reset")
@asks_first("replaces the committed offsets of a group")
def reset(
    name: Name,
    consent: Consent,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="Only this topic; may be repeated. By default all that the group has offsets of."),
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option(help="The first message at or after a time (2026-01-31T12:00), or of an age (30m, 2h, 7d)."),
    ] = None,
    to_offset: Annotated[int | None, typer.Option(help="This offset in each partition.")] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first message.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="After the last message.")] = False,
    shift_by: Annotated[int | None, typer.Option(help="Move by this number of messages; back, if negative.")] = None,
    as_json: AsJson = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
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
        show(plan, as_json)
        words = f"{plural(len(changes), 'offset')} of group {printable(name)}"
        if not changes:
            say_done("there is nothing to change", is_quiet=quiet, err=as_json)
        elif consent.to(f"move {words}", err=as_json):
            admin.reset_offsets(changes)
            say_done(f"moved {words}", is_quiet=quiet, err=as_json)


def show(plan: Sequence[OffsetChange], as_json: bool) -> None:
    """Writes the changes as a list."""
    names = ("topic", "partition", "committed", "new", "first offset", "next offset", "note")
    rows = (
        (
            each.topic,
            each.partition,
            each.before,
            each.after,
            each.start,
            each.end,
            "nearest in the log" if each.is_clamped else None,
        )
        for each in plan
    )
    show_list(names, rows, as_json)
