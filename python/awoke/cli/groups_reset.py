"""`awoke groups reset`: moves the committed offsets of a group that has no members."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

import awoke
from awoke.cli.groups import Name, app, shown
from awoke.cli.options import BootstrapServers, Kafka, confirm, pairs
from awoke.cli.output import say, show_table
from awoke.cli.tables import plural
from awoke.errors import ConfigError
from awoke.operate.dead_letters.letters import moment_ms

if TYPE_CHECKING:
    from awoke.admin import OffsetChange, ResetTo


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
