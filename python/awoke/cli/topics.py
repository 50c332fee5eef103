"""`awoke topics`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import msgspec
import typer

import awoke
from awoke.cli.commands import Section, group
from awoke.cli.consent import Consent, asks_first
from awoke.cli.options import AsJson, BootstrapServers, Kafka, Quiet, pairs
from awoke.cli.output import documents, say, say_done, say_json, show_list
from awoke.cli.tables import listed, plural
from awoke.errors import AwokeError, ConfigError, KafkaError, UnknownTopic
from awoke.settings import load

app = group("topics", "Create, list, describe, alter and delete topics.", Section.CLUSTER)

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC", help="The topics.")]
Config = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the topic; may be repeated.")
]
BROKERS_CHOOSE = "the brokers'"
"""The default of a number, in words; for Kafka it is -1."""


@app.command("create")
def create(
    names: Names,
    partitions: Annotated[
        int, typer.Option(min=-1, help="Partitions of each topic.", show_default=BROKERS_CHOOSE)
    ] = -1,
    replicas: Annotated[int, typer.Option(min=-1, help="Replicas of each one.", show_default=BROKERS_CHOOSE)] = -1,
    config: Config = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Create topics with the same settings. If one can't be created, the others are all the same."""
    settings = pairs(config, "--config")
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with awoke.Admin(settings=loaded) as admin:
        done, errors = each_of(
            names, lambda name: admin.create_topic(name, partitions=partitions, replicas=replicas, config=settings)
        )
    finish("created", done, errors, quiet)


def each_of(names: Iterable[str], act: Callable[[str], object]) -> tuple[list[str], list[KafkaError]]:
    """Does something for each topic; returns those for which it is done, and the errors of the others."""
    done, errors = list[str](), list[KafkaError]()
    for name in dict.fromkeys(names):
        try:
            act(name)
        except KafkaError as error:
            errors.append(error)
        else:
            done.append(name)
    return done, errors


def finish(what: str, done: Sequence[str], errors: Sequence[KafkaError], is_quiet: bool) -> None:
    """Writes on one line for which topics something is done.

    Raises:
        AwokeError: For others it is not.
    """
    if done:
        say_done(f"{what} {topics_in_words(done)}", is_quiet=is_quiet)
    if errors:
        raise errors[0] if len(errors) == 1 else AwokeError("; ".join(map(str, errors)))


def topics_in_words(names: Sequence[str]) -> str:
    """Returns names of topics as `topic orders` or `topics orders, payments and refunds`."""
    return f"{'topic' if len(names) == 1 else 'topics'} {listed(names)}"


def described(admin: awoke.Admin, names: Iterable[str]) -> list[awoke.TopicInfo]:
    """Returns the topics of these names, each once. Blocks.

    Raises:
        UnknownTopic: Some do not exist; the text names all of them, and topics with similar names.
    """
    found, missing = list[awoke.TopicInfo](), list[UnknownTopic]()
    for name in dict.fromkeys(names):
        try:
            found.append(admin.describe_topic(name))
        except UnknownTopic as error:
            missing.append(error)
    if missing:
        text = "; ".join(map(str, missing))
        raise UnknownTopic(text, missing[0].code, missing[0].code_name)
    return found


@app.command("list")
def list_topics(as_json: AsJson = False, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None) -> None:
    """List topics with the number of their partitions."""
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        found = admin.topics()
    show_list(("topic", "partitions"), ((each.name, len(each.partitions)) for each in found), as_json)


PARTITION = ("partition", "leader", "replicas", "in sync", "first offset", "next offset")
SETTING = ("setting", "value", "source")


@app.command("describe")
def describe(
    names: Names, as_json: AsJson = False, bootstrap_servers: BootstrapServers = None, kafka: Kafka = None
) -> None:
    """Show partitions of topics: leaders, replicas, first and next offset; and their settings that are not defaults."""
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with awoke.Admin(settings=loaded) as admin:
        for topic in described(admin, names):
            starts, ends = admin.start_offsets(topic.name), admin.end_offsets(topic.name)
            configs, reason = configs_of(admin, topic.name)
            rows = [
                (each.partition, each.leader, each.replicas, each.in_sync, starts[each.partition], ends[each.partition])
                for each in topic.partitions
            ]
            settings = [(each.name, shown(each), each.source) for each in configs]
            if as_json:
                say_json(document(topic.name, rows, settings, reason))
            else:
                say(topic.name)
                show_list(PARTITION, rows, as_json=False)
                if settings:
                    say("")
                    show_list(SETTING, settings, as_json=False)
            if reason:
                say(f"settings: {reason}", err=True)


def document(topic: str, rows: Sequence[Sequence[object]], settings: Sequence[Sequence[str]], reason: str) -> str:
    """Returns a topic as JSON. `settings` is null if the brokers do not tell them."""
    configs = None if reason else documents(SETTING, settings)
    return msgspec.json.encode({"topic": topic, "partitions": documents(PARTITION, rows), "settings": configs}).decode()


def configs_of(admin: awoke.Admin, topic: str) -> tuple[list[awoke.ConfigEntry], str]:
    """Returns a topic's settings that are not defaults; or, if brokers do not tell them, the reason."""
    try:
        return [each for each in admin.describe_configs(topic).values() if not each.is_default], ""
    except KafkaError as error:
        return [], str(error)


def shown(entry: awoke.ConfigEntry) -> str:
    """Returns the value of a setting as text."""
    return "(hidden)" if entry.is_sensitive else entry.value or ""


@app.command("alter")
@asks_first("changes how long a topic keeps its messages, or the partition of a key")
def alter(
    name: Name,
    consent: Consent,
    partitions: Annotated[int | None, typer.Option(min=1, help="Their new number; more than before.")] = None,
    config: Config = None,
    default: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A setting to take back to its default; may be repeated.")
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Add partitions to a topic, and change its settings. Settings that are not named stay as they are."""
    changes: dict[str, str | None] = {**pairs(config, "--config"), **dict.fromkeys(default or ())}
    if partitions is None and not changes:
        raise ConfigError("say what is to be changed: --partitions, --config or --default", "--partitions")
    acts = [] if partitions is None else [f"{partitions} partitions"]
    acts += [f"{name}={value}" if value is not None else f"{name} by default" for name, value in changes.items()]
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with awoke.Admin(settings=loaded) as admin:
        described(admin, [name])
        if not consent.to(f"give topic {name} {listed(acts)}"):
            return
        if partitions is not None:
            admin.create_partitions(name, partitions)
        admin.alter_configs(name, changes)
    say_done(f"altered topic {name}", is_quiet=quiet)


@app.command("delete")
@asks_first("deletes topics with all their messages")
def delete(
    names: Names,
    consent: Consent,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Delete topics with all their messages. If one does not exist, none is deleted."""
    loaded = load({"bootstrap_servers": bootstrap_servers, "kafka": pairs(kafka, "--kafka")}).values
    with awoke.Admin(settings=loaded) as admin:
        found = [each.name for each in described(admin, names)]
        count = sum(sum(admin.end_offsets(name).values()) - sum(admin.start_offsets(name).values()) for name in found)
        if not consent.to(f"delete {topics_in_words(found)} with {plural(count, 'message')} for good"):
            return
        done, errors = each_of(found, admin.delete_topic)
    finish("deleted", done, errors, quiet)
