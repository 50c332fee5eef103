"""`awoke doctor`: shows versions, settings with their origin, and whether the brokers answer."""

from __future__ import annotations

from typing import Annotated

import typer

import awoke
from awoke.cli import versions
from awoke.cli.commands import command
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.output import say, say_styled, show_table
from awoke.cli.tables import aligned
from awoke.errors import BrokerUnreachable, KafkaError, OperationTimeout


@command
def doctor(
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    timeout_s: Annotated[float, typer.Option(help="The longest wait for the brokers, in seconds.")] = 5.0,
) -> None:
    """Show versions, settings with their origin, and whether the brokers answer."""
    from awoke.settings import load, load_run, unknown_variables

    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")})
    for row in aligned(versions.rows(), is_left=True):
        say(row)
    rows = [
        (name, "(not set)" if value == "None" else value, origin)
        for name, value, origin in (*loaded.explain(), *load_run().explain())
    ]
    show_table(("setting", "value", "origin"), rows)
    for variable in unknown_variables():
        say_styled(f"warning: the environment variable {variable} is no setting of awoke's", "yellow")
    try:
        with awoke.Admin(settings=loaded.values) as admin:
            brokers = admin.brokers(timeout_s)
    except (KafkaError, OperationTimeout) as error:
        say_styled(f"brokers: {error}", "red")
        if isinstance(error, (BrokerUnreachable, OperationTimeout)):
            say("Is the address right, and does a broker listen there? Set --bootstrap-servers.")
        raise typer.Exit(1) from None
    for broker in brokers:
        say_styled(f"the cluster answers: broker {broker.id} at {broker.address}", "green")
