"""`awoke tail`: prints the messages of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

import awoke
from awoke.cli.commands import command
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.cli.output import say, say_json, write_raw
from awoke.printable import printable


@command
def tail(
    topic: Annotated[str, typer.Argument(help="The topic to read.")],
    start: Annotated[
        str | None,
        typer.Option(help="earliest, latest, an offset or an ISO time. By default latest; with --until-end earliest."),
    ] = None,
    last: Annotated[
        int | None, typer.Option(min=1, help="Begin with this many of the last messages of each partition.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=0, help="Stop after this many messages.")] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the present end of the topic.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print each message as one JSON document with all its parts.")
    ] = False,
    keys: Annotated[bool, typer.Option("--keys", help="Print the key before the value.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the bytes unchanged: for other programs, not for a terminal.")
    ] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Print messages as they come, until Ctrl-C."""
    if raw and json:
        raise typer.BadParameter("is not for JSON", param_hint="--raw")
    where = -last if last is not None else place(start or ("earliest" if until_end else "latest"))
    reader = awoke.Reader(topic, bootstrap_servers=bootstrap_servers, start=where, kafka=pairs(kafka, "--kafka"))
    with reader:
        messages = reader.read_until_end() if until_end else iter(reader)
        try:
            show(messages, count, writer(json, raw, keys))
        except KeyboardInterrupt:
            return


def place(start: str) -> Any:
    """Returns the start for the reader. A time without a zone is in this machine's zone."""
    if start.isdecimal():
        return int(start)
    try:
        return datetime.fromisoformat(start).astimezone()
    except ValueError:
        return start


Write = Callable[[Any], object]
"""Prints a message. Its type is not named here: that would load the Kafka client for every command."""


def writer(as_json: bool, is_raw: bool, with_keys: bool) -> Write:
    """Returns the function that prints a message."""
    if as_json:
        return lambda message: say_json(document(message))
    if is_raw:
        return lambda message: write_raw(raw_of(message, with_keys))
    return lambda message: say(plain(message, with_keys), keep="\t")


def show(messages: Iterator[awoke.Message[Any]], count: int | None, write: Write) -> None:
    """Prints at most `count` messages."""
    if count == 0:
        return
    for number, message in enumerate(messages, 1):
        write(message)
        if number == count:
            return


def plain(message: awoke.Message[Any], with_key: bool) -> str:
    """Returns the value as one line of text."""
    value = printable(message.value)
    return f"{printable(message.key)}\t{value}" if with_key else value


def raw_of(message: awoke.Message[Any], with_key: bool) -> bytes:
    """Returns the value unchanged, after the key if that is wanted."""
    value = message.value or b""
    return (message.key or b"") + b"\t" + value if with_key else value


def document(message: awoke.Message[Any]) -> str:
    """Returns all parts of a message as JSON."""
    parts = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        "key": None if message.key is None else text(message.key),
        "headers": [[name, None if value is None else text(value)] for name, value in message.headers],
        "value": None if message.value is None else text(message.value),
    }
    return msgspec.json.encode(parts).decode()


def text(value: bytes | None) -> str:
    """Returns bytes as text for JSON, with backslash escapes for bytes that are no UTF-8."""
    return "" if value is None else value.decode(errors="backslashreplace")
