"""`awoke console`: the state of an app in the browser, and what an operator may change there."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from awoke.cli.commands import Section, command
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.output import say
from awoke.errors import ConfigError
from awoke.preconditions.extras import needs

PORT = 8686


@command(Section.WATCH)
def console(
    name: Annotated[
        str,
        typer.Argument(metavar="APP", help="The app's name, or MODULE:APP, to decode by its types."),
    ],
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 is any free one.")] = PORT,
    auth: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            help="Who may look: basic:FILE (lines NAME:PASSWORD:ROLE), header:NAME of a proxy that logs in, or none. "
            "Needed for another address than loopback.",
        ),
    ] = None,
    role: Annotated[
        str, typer.Option(help="The role of those without one of their own: view, operate, admin.")
    ] = "view",
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="VERB", help="An action that is allowed, as in pause; may be repeated; '*' is every one."),
    ] = None,
    payloads: Annotated[bool, typer.Option("--payloads", help="Show keys, values and headers of messages.")] = False,
    host_name: Annotated[
        list[str] | None,
        typer.Option(help="A name by which browsers may ask, beside addresses and localhost; may be repeated."),
    ] = None,
) -> None:
    """Show an app in the browser: what runs, why it is stuck, and its failures (needs console=True).

    Nothing can be changed unless it is allowed: --role operate --allow pause --allow resume.
    """
    if not is_loopback(host) and auth is None:
        text = f"{host} can be reached by others: pass --auth basic:FILE, --auth header:NAME or --auth none"
        raise ConfigError(text, "--auth")
    needs("starlette", "console")
    needs("jinja2", "console")
    from awoke.console.web.live import Live
    from awoke.settings import load

    given = {"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}
    app = found_app(name, given) if ":" in name else None
    settings = load(given).values if app is None else app.settings
    live = Live(name if app is None else app.name, settings)
    live.start()  # The brokers answer while the modules of the pages are loaded.
    try:
        from awoke.console.web.application import application
        from awoke.console.web.grants import Rights, role_of
        from awoke.console.web.logins import login_of
        from awoke.console.web.serving import Server

        login = login_of(auth or "none", role_of(role))
        rights = Rights(login.policy, allow or (), payloads)
        web = application(live.app, settings, live, rights, host_name or (), code_of(app))
        server = Server(login.wrap(web), host, port)
        say(f"the console of {name} is at {server.url}")
        server.run()
    finally:
        live.close()


def code_of(app: Any) -> Any:
    """Returns the facts of an app's code; none of one that is only named."""
    from awoke.console.web.code import UNKNOWN, Code

    if app is None:
        return UNKNOWN
    from awoke.testing.letter_trial import trier

    return Code.of(app, trier(app))


def found_app(target: str, given: Mapping[str, Any]) -> Any:
    """Imports the app at MODULE:APP, with the brokers of the command line.

    Raises:
        AppNotFound: There is none.
    """
    from awoke.app.application import find_app

    app = find_app(target)
    app.use(**given)
    return app


def is_loopback(host: str) -> bool:
    """Tells whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
