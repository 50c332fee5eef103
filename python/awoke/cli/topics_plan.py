"""`awoke topics plan` and `apply`: show how the cluster's topics differ from those of an app, and change it.

The topics of an app are those that it declares, and those that its routes name. No topic and no partition is ever
deleted. What can't be changed, and what an app does not declare, stays as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

import awoke
from awoke.cli.consent import Consent, asks_first
from awoke.cli.options import AsJson, BootstrapServers, Kafka, Quiet, Target, pairs
from awoke.cli.output import say, say_done, show_list
from awoke.cli.tables import plural
from awoke.cli.topics import app
from awoke.text.exit_codes import EXIT_FAILED

if TYPE_CHECKING:
    from awoke.payloads.declared_topics.differences import ChangesTopics
    from awoke.payloads.declared_topics.plan import TopicPlan


@app.command("plan")
def plan(
    target: Target, as_json: AsJson = False, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None
) -> None:
    """Show how topics differ from those that an app declares, and which of its routes' are missing.

    Exit code 1 if there is anything to do before the app can start.
    """
    with opened(target, bootstrap_servers, kafka) as (found, _, unmatched):
        pass
    show(found, as_json)
    say_notes(found, unmatched)
    if found.differences or unmatched:
        raise typer.Exit(EXIT_FAILED)


@app.command("apply")
@asks_first("creates topics, adds partitions and changes settings")
def apply(
    target: Target,
    consent: Consent,
    as_json: AsJson = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Create and change topics so that they are as an app needs them. No topic or partition is deleted."""
    from awoke.payloads.declared_topics.plan import apply as apply_plan

    with opened(target, bootstrap_servers, kafka) as (found, cluster, unmatched):
        show(found, as_json)
        say_notes(found, unmatched)
        if not found.changes or not consent.to(f"make {plural(len(found.changes), 'change')}", err=as_json):
            return
        for done in apply_plan(found, cluster):
            say_done(done, is_quiet=quiet, err=as_json)


@contextlib.contextmanager
def opened(
    target: str, bootstrap_servers: str | None, kafka: list[str] | None
) -> Iterator[tuple[TopicPlan, ChangesTopics, list[str]]]:
    """Compares the topics of an app with its cluster. Blocks.

    Gives the plan, the cluster to change, and the patterns that match no topic although they must.
    """
    from awoke.app.application import find_app  # Here and below, because `awoke topics --help` needs no app.
    from awoke.payloads.declared_topics.plan import plan_of
    from awoke.runtime.process.startup_checks import named_topics

    found = find_app(target)
    found.use(bootstrap_servers=bootstrap_servers, kafka=pairs(kafka, "--kafka"))
    settings = found.settings
    with awoke.Admin(settings=settings) as admin:
        if found.patterns:
            found.match([each.name for each in admin.topics()])
        named = named_topics(found)
        if not found.topics and not named:
            say(f"{target} has no topics: app.on(...) and app.topic(...) name them", err=True)
        unmatched = [repr(each) for each in found.unmatched() if not each.may_match_nothing]
        yield plan_of(admin, found.topics, named), admin, unmatched


def show(plan: TopicPlan, as_json: bool) -> None:
    """Prints the differences as a list, and their number."""
    rows = [(*row, each.is_made) for each in plan.differences for row in each.rows()]
    names = ("topic", "option", "found", "declared", "change", "is made")
    if as_json:
        show_list(names, rows, as_json)
    elif not rows:
        say("all topics are there, as declared")
    else:
        show_list(names[:-1], [row[:-1] for row in rows], as_json)
        left = len(plan.differences) - len(plan.changes)
        kept = f", and leaves {plural(left, 'difference')} alone" if left else ""
        say(f"awoke topics apply makes {plural(len(plan.changes), 'change')}{kept}")


def say_notes(plan: TopicPlan, unmatched: list[str]) -> None:
    """Prints the facts that an operator must know before the plan is applied."""
    for note in plan.notes:
        say(f"note: {note}", err=True)
    for pattern in unmatched:
        say(
            f"note: {pattern} matches no topic: the app does not start; create one, or pass may_match_nothing=True",
            err=True,
        )
