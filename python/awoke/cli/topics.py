"""`awoke topics`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from typing import Annotated

import typer

import awoke
from awoke.cli.commands import group
from awoke.cli.options import BootstrapServers, Kafka, Quiet, pairs
from awoke.cli.output import say, say_done, show_table
from awoke.errors import AwokeError, ConfigError, KafkaError
from awoke.settings import load

app = group("topics", "Create, list, describe, alter and delete topics.")

Name = Annotated[str, typer.Argument(help="The topic's name.")]


@app.command("create")
def create(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics' names.")],
    partitions: Annotated[int, typer.Option(help="Their number; -1 for the brokers' default.")] = -1,
    replicas: Annotated[int, typer.Option(help="Their number; -1 for the brokers' default.")] = -1,
    config: Annotated[list[str] | None, typer.Option(help="A setting of the topic, name=value; several times.")] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Create one topic, or several with the same settings. If one can't be created, the others are all the same."""
    settings = pairs(config, "--config")
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    errors = []
    with awoke.Admin(settings=loaded) as admin:
        for name in dict.fromkeys(names):
            try:
                admin.create_topic(name, partitions=partitions, replicas=replicas, config=settings)
            except KafkaError as error:
                errors.append(error)
            else:
                say_done(f"topic {name} created", is_quiet=quiet)
    if errors:
        raise errors[0] if len(errors) == 1 else AwokeError("; ".join(map(str, errors)))


@app.command("list")
def list_topics(bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """List topics with the number of their partitions."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        for topic in admin.topics():
            say(f"{topic.name}\t{len(topic.partitions)}", keep="\t")


@app.command("describe")
def describe(name: Name, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """Show a topic's partitions: leaders, replicas, first and next offset; and its settings that are no defaults."""
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with awoke.Admin(settings=loaded) as admin:
        topic = admin.describe_topic(name)
        starts, ends = admin.start_offsets(name), admin.end_offsets(name)
        configs, reason = configs_of(admin, name)
    names = ("partition", "leader", "replicas", "in sync", "first offset", "next offset")
    rows = [
        (each.partition, each.leader, each.replicas, each.in_sync, starts[each.partition], ends[each.partition])
        for each in topic.partitions
    ]
    show_table(names, [tuple(map(str, row)) for row in rows], title=name)
    if configs:
        show_table(("setting", "value", "source"), [(each.name, shown(each), each.source) for each in configs])
    if reason:
        say(f"settings: {reason}", err=True)


def configs_of(admin: awoke.Admin, topic: str) -> tuple[list[awoke.ConfigEntry], str]:
    """Returns a topic's settings that are no defaults; or, if brokers do not tell them, the reason."""
    try:
        return [each for each in admin.describe_configs(topic).values() if not each.is_default], ""
    except KafkaError as error:
        return [], str(error)


def shown(entry: awoke.ConfigEntry) -> str:
    """Returns the value of a setting as text."""
    return "(hidden)" if entry.is_sensitive else entry.value or ""


@app.command("alter")
def alter(
    name: Name,
    partitions: Annotated[int | None, typer.Option(help="Their new number; more than before.")] = None,
    config: Annotated[list[str] | None, typer.Option(help="A setting of the topic, name=value; several times.")] = None,
    default: Annotated[
        list[str] | None, typer.Option(help="A setting to take back to its default; several times.")
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Add partitions to a topic, and change its settings. Settings that are not named stay as they are."""
    changes: dict[str, str | None] = {**pairs(config, "--config"), **dict.fromkeys(default or ())}
    if partitions is None and not changes:
        raise ConfigError("say what is to be changed: --partitions, --config or --default", "--partitions")
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with awoke.Admin(settings=loaded) as admin:
        if partitions is not None:
            admin.create_partitions(name, partitions)
        admin.alter_configs(name, changes)
    say_done(f"topic {name} altered", is_quiet=quiet)


@app.command("delete")
def delete(name: Name, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None, quiet: Quiet = False) -> None:
    """Delete a topic."""
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with awoke.Admin(settings=loaded) as admin:
        admin.delete_topic(name)
    say_done(f"topic {name} deleted", is_quiet=quiet)
