"""`awoke doctor`: shows versions, settings with their origin, and whether the brokers answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

import awoke
from awoke.cli import versions
from awoke.cli.commands import Section, command
from awoke.cli.options import AsJson, BootstrapServers, Kafka, pairs
from awoke.cli.output import say, say_json, say_styled, show_list, show_table
from awoke.cli.tables import aligned, plural
from awoke.errors import AuthorizationFailed, BrokerUnreachable, KafkaError, OperationTimeout, UnknownGroup
from awoke.text.exit_codes import EXIT_FAILED

if TYPE_CHECKING:
    from awoke.app.app import App
    from awoke.declare.routing import Route
    from awoke.settings import RunSettings, Settings


@command(Section.RUN)
def doctor(
    target: Annotated[
        str | None, typer.Argument(metavar="MODULE:APP", help="The app, whose routes and topics are checked, too.")
    ] = None,
    production: Annotated[
        bool, typer.Option("--production", help="Go through the checklist for production. Exit code 1 if it fails.")
    ] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    timeout_s: Annotated[float, typer.Option(help="The longest wait for the brokers.")] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Show versions, settings with their origin, and whether the brokers answer; check an app for production."""
    from awoke.settings import load, load_run, unknown_variables

    given = {"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}
    app = None if target is None else _found(target, given)
    loaded = load(given) if app is None else app.load_settings()
    routes = [] if app is None else [each for group in app.groups.values() for each in group.routes.values()]
    settings = [
        (name, None if value == "None" else value, origin)
        for name, value, origin in (*loaded.explain(), *load_run().explain())
    ]
    if as_json:
        show_list(("version of", "version"), versions.rows(), as_json)
        show_list(("setting", "value", "origin"), settings, as_json)
    else:
        for row in aligned(versions.rows()):
            say(row)
        show_table(("setting", "value", "origin"), [(name, value or "(not set)", by) for name, value, by in settings])
    tell = partial(_tell, as_json)
    for variable in unknown_variables():
        tell("yellow", f"warning: the environment variable {variable} is no setting of awoke's", warning=variable)
    try:
        with awoke.Admin(settings=loaded.values) as admin:
            brokers = admin.brokers(timeout_s)
            for broker in brokers:
                text = f"the cluster answers: broker {broker.id} at {broker.address}"
                tell("green", text, broker=broker.id, address=broker.address)
            if app is not None:
                _show_strangers(app, loaded.values, admin, tell)
            is_ready = not production or _go_through(loaded.values, load_run().values, routes, admin, tell)
    except (KafkaError, OperationTimeout) as error:
        tell("red", f"brokers: {error}", error=str(error))
        if isinstance(error, (BrokerUnreachable, OperationTimeout)):
            say("Is the address right, and does a broker listen there? Set --bootstrap-servers.", err=as_json)
        raise typer.Exit(EXIT_FAILED) from None
    if not is_ready:
        raise typer.Exit(EXIT_FAILED)


Tell = Callable[..., None]
"""Writes a finding: `_tell`, for people or for programs."""


def _tell(as_json: bool, style: str, text: str, **document: Any) -> None:
    """Writes a finding: a line for people, or a document for programs."""
    if as_json:
        say_json(msgspec.json.encode(document).decode())
    else:
        say_styled(text, style)


def _found(target: str, given: Mapping[str, Any]) -> App:
    from awoke.app.application import find_app

    app = find_app(target)
    app.use(**given)
    return app


def _show_strangers(app: App, settings: Settings, admin: awoke.Admin, tell: Tell) -> None:
    """Warns of members of another app in the groups of this one. Blocks while it asks the brokers."""
    from awoke.observe.partitions import shared_with
    from awoke.settings.kafka import NAMED

    for key in app.groups:
        group = key.name(settings.group or app.name)
        try:
            members = admin.describe_group(group).members
        except (UnknownGroup, AuthorizationFailed):
            continue
        named = {each.client_id.removeprefix(NAMED) for each in members if each.client_id.startswith(NAMED)}
        if others := sorted(named - {app.name}):
            text = f"{shared_with(group, others, [])}; give each app a group of its own"
            tell("yellow", f"warning: {text}", warning=text)


def _go_through(settings: Settings, run: RunSettings, routes: Sequence[Route], admin: awoke.Admin, tell: Tell) -> bool:
    """Shows the checklist; returns whether all is met. Blocks while it asks the brokers."""
    from awoke.operate.deploy import checklist

    checks = [
        *checklist.of_settings(settings, run),
        *checklist.of_routes(routes),
        *checklist.of_topics(checklist.topics_of(routes), admin),
    ]
    for each in checks:
        text = f"ok: {each.subject}" if each.is_met else f"missing: {each.subject}: {each.advice}"
        tell("green" if each.is_met else "red", text, check=each.subject, is_met=each.is_met, advice=each.advice)
    missing = sum(not each.is_met for each in checks)
    say(f"{plural(len(checks), 'check')}, {missing} missing", err=True)
    return missing == 0
