"""`awoke topics plan` and `apply`: show how the cluster's topics differ from those that an app declares, and change it.

No topic and no partition is ever deleted. What can't be changed, and what an app does not declare, stays as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

import awoke
from awoke.cli.options import BootstrapServers, Kafka, confirm, pairs
from awoke.cli.output import is_terminal, say, say_json, show_table
from awoke.cli.tables import aligned, plural
from awoke.cli.topics import app
from awoke.text.exit_codes import EXIT_FAILED
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.payloads.declared_topics.differences import ChangesTopics
    from awoke.payloads.declared_topics.plan import TopicPlan

Target = Annotated[str, typer.Argument(metavar="MODULE:APP", help="The app, as in shop:app.")]
NAMES = ("topic", "option", "cluster", "declared", "awoke topics apply")


@app.command("plan")
def plan(
    target: Target,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document per difference and line.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Show how topics differ from those that an app declares. Exit code 1 if they do."""
    with opened(target, bootstrap_servers, kafka) as (found, _):
        pass
    if as_json:
        for each in found.differences:
            for row in each.rows():
                say_json(msgspec.json.encode({**row._asdict(), "is_made": each.is_made}).decode())
    else:
        show(found)
    say_notes(found)
    if found.differences:
        raise typer.Exit(EXIT_FAILED)


@app.command("apply")
def apply(
    target: Target,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Create and change topics so that they are as an app declares them. No topic or partition is deleted."""
    from awoke.payloads.declared_topics.plan import apply as apply_plan

    with opened(target, bootstrap_servers, kafka) as (found, cluster):
        show(found)
        say_notes(found)
        if not found.changes:
            return
        confirm(f"Make {plural(len(found.changes), 'change')}?", yes)
        for done in apply_plan(found, cluster):
            say(done)


@contextlib.contextmanager
def opened(
    target: str, bootstrap_servers: str | None, kafka: list[str] | None
) -> Iterator[tuple[TopicPlan, ChangesTopics]]:
    """Compares the topics of an app with its cluster, and gives the plan, and the cluster to change. Blocks."""
    from awoke.app.application import find_app  # Here and below, because `awoke topics --help` needs no app.
    from awoke.payloads.declared_topics.plan import plan_of

    found = find_app(target)
    found.use(bootstrap_servers=bootstrap_servers, kafka=pairs(kafka, "--kafka"))
    settings = found.settings
    if not found.topics:
        say(f"{target} declares no topic: app.topic(...) takes partitions, replication and config", err=True)
    with awoke.Admin(settings=settings) as admin:
        yield plan_of(admin, found.topics), admin


def show(plan: TopicPlan) -> None:
    """Prints the differences as a table, and their number."""
    if not plan.differences:
        say("all topics are as declared")
        return
    rows = [tuple(map(printable, row)) for each in plan.differences for row in each.rows()]
    if is_terminal():
        show_table(NAMES, rows)
    else:
        for line in aligned([NAMES, *rows], is_left=True):
            say(line)
    left = len(plan.differences) - len(plan.changes)
    kept = f", and leaves {plural(left, 'difference')} alone" if left else ""
    say(f"awoke topics apply makes {plural(len(plan.changes), 'change')}{kept}")


def say_notes(plan: TopicPlan) -> None:
    """Prints the facts that an operator must know before the plan is applied."""
    for note in plan.notes:
        say(f"note: {note}", err=True)
