"""`awoke topics`: create, list, describe and delete topics."""

from __future__ import annotations

from typing import Annotated

import typer

import awoke
from awoke.cli.broker import process_of
from awoke.cli.commands import group
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.output import say, show_table
from awoke.cli.swarm import ask
from awoke.errors import AwokeError, ConfigError
from awoke.settings import load

app = group("topics", "Create, list, describe and delete topics.")

Name = Annotated[str, typer.Argument(help="The topic's name.")]


@app.command("create")
def create(
    name: Name,
    partitions: Annotated[int, typer.Option(help="Their number; -1 for the brokers' default.")] = -1,
    replicas: Annotated[int, typer.Option(help="Their number; -1 for the brokers' default.")] = -1,
    config: Annotated[list[str] | None, typer.Option(help="A setting of the topic, name=value; several times.")] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Create a topic."""
    settings = pairs(config, "--config")
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    if (path := process_of(loaded.bootstrap_servers)) is not None:
        if settings or replicas > 1:
            raise ConfigError("a broker in memory (awoke broker) takes neither --config nor --replicas", "--config")
        ask(f"awoke broker at {loaded.bootstrap_servers}", path, "create_topic", topic=name, partitions=partitions)
        say(f"topic {name} created")
        return
    with awoke.Admin(settings=loaded) as admin:
        admin.create_topic(name, partitions=partitions, replicas=replicas, config=settings)
    say(f"topic {name} created")


@app.command("list")
def list_topics(bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """List topics with the number of their partitions."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        for topic in admin.topics():
            say(f"{topic.name}\t{len(topic.partitions)}", keep="\t")


@app.command("describe")
def describe(name: Name, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """Show a topic's partitions: leaders, replicas, first and next offset."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        topic = admin.describe_topic(name)
        starts, ends = admin.start_offsets(name), admin.end_offsets(name)
    names = ("partition", "leader", "replicas", "in sync", "first offset", "next offset")
    rows = [
        (each.partition, each.leader, each.replicas, each.in_sync, starts[each.partition], ends[each.partition])
        for each in topic.partitions
    ]
    show_table(names, [tuple(map(str, row)) for row in rows], title=name)


@app.command("delete")
def delete(name: Name, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """Delete a topic."""
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    if process_of(loaded.bootstrap_servers) is not None:
        raise AwokeError("a broker in memory (awoke broker) can't delete a topic: its end deletes all of them")
    with awoke.Admin(settings=loaded) as admin:
        admin.delete_topic(name)
    say(f"topic {name} deleted")
