"""`awoke tail`: prints the messages of a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

import awoke
from awoke.cli.options import BootstrapServers, Kafka, pairs


def tail(
    topic: Annotated[str, typer.Argument(help="What to read.")],
    start: Annotated[
        str | None,
        typer.Option(help="earliest, latest, an offset or an ISO time; latest, but with --until-end earliest."),
    ] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Begin with the last so many of each partition.")] = None,
    count: Annotated[int | None, typer.Option(min=0, help="End after so many messages.")] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="End where the topic ends now.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document a message, with all its parts.")] = False,
    keys: Annotated[bool, typer.Option("--keys", help="Print the key before the value.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Print messages as they come, until Ctrl-C."""
    where = -last if last is not None else place(start or ("earliest" if until_end else "latest"))
    reader = awoke.Reader(topic, bootstrap_servers=bootstrap_servers, start=where, kafka=pairs(kafka, "--kafka"))
    with reader:
        messages = reader.read_until_end() if until_end else iter(reader)
        try:
            show(messages, count, as_json=json, with_keys=keys)
        except KeyboardInterrupt:
            return


def place(start: str) -> Any:
    """Where to begin, as the reader takes it; a time without a zone is of this machine's."""
    if start.isdecimal():
        return int(start)
    try:
        return datetime.fromisoformat(start).astimezone()
    except ValueError:
        return start


def show(messages: Iterator[awoke.Message[Any]], count: int | None, *, as_json: bool, with_keys: bool) -> None:
    """Print at most `count` messages."""
    if count == 0:
        return
    for number, message in enumerate(messages, 1):
        line = document(message) if as_json else plain(message, with_keys)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        if number == count:
            return


def plain(message: awoke.Message[Any], with_key: bool) -> str:
    """The value as text; bytes that are no UTF-8 with backslashes."""
    value = text(message.value)
    return f"{text(message.key)}\t{value}" if with_key else value


def document(message: awoke.Message[Any]) -> str:
    """All parts of a message as JSON."""
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
    """Bytes for people."""
    return "" if value is None else value.decode(errors="backslashreplace")
