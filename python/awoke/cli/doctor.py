"""`awoke doctor`: versions, settings with their origin, and whether the brokers answer."""

from __future__ import annotations

import platform
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import awoke
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.errors import KafkaError, OperationTimeout


def doctor(
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    timeout_s: Annotated[float, typer.Option(help="How long to wait for the brokers.")] = 5.0,
) -> None:
    """Show what is installed, what is set and from where, and whether the brokers answer."""
    from awoke.settings import load, load_run, unknown_variables

    console = Console(soft_wrap=True)
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")})
    console.print(
        f"awoke {awoke.__version__}, librdkafka {awoke.librdkafka_version()}, "
        f"Python {platform.python_version()} on {platform.platform()}",
        highlight=False,
    )
    table = Table("setting", "value", "origin")
    for explained in (*loaded.explain(), *load_run().explain()):
        # As text, for `[secret]` would vanish as markup; folded, for a value that is cut tells nothing.
        table.add_row(*(Text(each, overflow="fold") for each in explained))
    console.print(table)
    for variable in unknown_variables():
        text = f"warning: the environment variable {variable} is no setting of awoke's"
        console.print(text, style="yellow", markup=False, highlight=False)
    try:
        with awoke.Admin(settings=loaded.values) as admin:
            brokers = admin.brokers(timeout_s)
    except (KafkaError, OperationTimeout) as error:
        console.print(f"brokers: {error}", style="red", markup=False, highlight=False)
        console.print("Is the address right, and does a broker listen there? Set --bootstrap-servers.", highlight=False)
        raise typer.Exit(1) from None
    for broker in brokers:
        console.print(f"the cluster answers: broker {broker.id} at {broker.address}", style="green", highlight=False)
