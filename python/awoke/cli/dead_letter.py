"""`awoke dead-letter`: look at messages that were given up, and send them again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

import awoke
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.tail import document, text
from awoke.errors import AwokeError, ConfigError

app = typer.Typer(help="Look at messages that were given up, and send them again.", no_args_is_help=True)

READ_TIMEOUT_S = 60.0
ERROR_WIDTH = 60

Topic = Annotated[str, typer.Argument(help="The dead letter topic.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document a message, with all its parts.")]
Place = tuple[int, int]
"""Partition and offset."""


@app.command("list")
def list_letters(
    topic: Topic,
    limit: Annotated[int | None, typer.Option(min=1, help="Show so many at most.")] = None,
    as_json: AsJson = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """List what lies in a dead letter topic: where it came from, and why it was given up."""
    table = Table("at", "from", "group", "attempts", "failed at (ms)", "error")
    shown = strangers = 0
    for message in read(topic, bootstrap_servers, kafka):
        origin = awoke.dead_letter.origin(message)
        if origin is None:
            strangers += 1
            continue
        if limit is not None and shown == limit:
            break
        shown += 1
        if as_json:
            typer.echo(as_document(message, origin))
        else:
            table.add_row(*cells(message, origin))
    if not as_json:
        Console().print(table)
    typer.echo(f"{shown} dead letters" + (f", {strangers} messages that are none" if strangers else ""), err=as_json)


@app.command("show")
def show(
    topic: Topic,
    place: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET", help="Which.")],
    as_json: AsJson = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Show one dead letter whole."""
    wanted = place_of(place)
    for message in read(topic, bootstrap_servers, kafka):
        if (message.partition, message.offset) == wanted:
            origin = letter_of(message)
            typer.echo(as_document(message, origin) if as_json else whole(message, origin))
            return
    raise AwokeError(f"{topic}[{wanted[0]}] has no message at offset {wanted[1]}")


@app.command("replay")
def replay(
    topic: Topic,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PARTITION:OFFSET", help="Only this one. May be given several times.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Another topic than the one that each came from.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Send dead letters again, as they were, to the topics that they came from. They stay in the dead letter topic."""
    wanted = {place_of(place) for place in only or ()}
    letters = [each for each in read(topic, bootstrap_servers, kafka) if not wanted or place_in(each) in wanted]
    missing = wanted - {place_in(each) for each in letters}
    if missing:
        partition, offset = min(missing)
        raise AwokeError(f"{topic}[{partition}] has no message at offset {offset}")
    targets = [to or letter_of(each).topic for each in letters]
    said = ", ".join(f"{count} to {target}" for target, count in sorted(Counter(targets).items())) or "none"
    if dry_run or not letters:
        typer.echo(f"would send {said}")
        return
    confirm(f"Send {said}?", yes)
    with awoke.Producer(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as producer:
        handles = []
        for message, target in zip(letters, targets, strict=True):
            record = awoke.dead_letter.original(message)
            handles.append(producer.produce(target, record.value, key=record.key, headers=record.headers))
        awoke.wait_all(handles)
    typer.echo(f"sent {said}; the dead letters are still in {topic}")


def read(topic: str, bootstrap_servers: str | None, kafka: list[str] | None) -> Iterator[awoke.Message[bytes | None]]:
    """All messages of a topic as it is now."""
    with awoke.Reader(topic, bootstrap_servers=bootstrap_servers, kafka=pairs(kafka, "--kafka")) as reader:
        yield from reader.read_until_end(READ_TIMEOUT_S)


def confirm(question: str, yes: bool) -> None:
    """Ask, unless that was answered before.

    Raises:
        ConfigError: there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask at: say --yes", "--yes")
    typer.confirm(question, abort=True)


def place_of(word: str) -> Place:
    """Partition and offset.

    Raises:
        ConfigError: the word is not of this form.
    """
    partition, colon, offset = word.partition(":")
    if not (colon and partition.isdecimal() and offset.isdecimal()):
        raise ConfigError(f"a place is PARTITION:OFFSET, as in 0:42, not {word!r}", "place")
    return int(partition), int(offset)


def place_in(message: awoke.Message[Any]) -> Place:
    """Where a message lies."""
    return message.partition, message.offset


def letter_of(message: awoke.Message[Any]) -> awoke.dead_letter.Origin:
    """Where a dead letter came from.

    Raises:
        AwokeError: it is none.
    """
    origin = awoke.dead_letter.origin(message)
    if origin is None:
        at = f"{message.topic}[{message.partition}] offset {message.offset}"
        raise AwokeError(f"{at} is no dead letter: it has no header {awoke.dead_letter.TOPIC}")
    return origin


def cells(message: awoke.Message[Any], origin: awoke.dead_letter.Origin) -> tuple[str, ...]:
    """A dead letter as a row."""
    error = f"{origin.error_type}: {origin.error_text}"
    return (
        f"{message.partition}:{message.offset}",
        f"{origin.topic}[{origin.partition}] {origin.offset}",
        origin.group,
        str(origin.attempts),
        str(origin.failed_at_ms),
        error if len(error) <= ERROR_WIDTH else error[: ERROR_WIDTH - 1] + "…",
    )


def as_document(message: awoke.Message[Any], origin: awoke.dead_letter.Origin) -> str:
    """A dead letter as JSON."""
    return msgspec.json.encode({**msgspec.json.decode(document(message)), "origin": origin._asdict()}).decode()


def whole(message: awoke.Message[Any], origin: awoke.dead_letter.Origin) -> str:
    """A dead letter for people."""
    headers = [f"  {name}: {text(value)}" for name, value in message.headers if name not in awoke.dead_letter.HEADERS]
    lines = [f"{name}: {value}" for name, value in origin._asdict().items()]
    return "\n".join([*lines, f"key: {text(message.key)}", "headers:", *headers, "value:", text(message.raw_value)])
