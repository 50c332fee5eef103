"""The options that select dead letters, and how a command reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import typer

import awoke
from awoke.cli.options import pairs
from awoke.cli.output import with_count
from awoke.operate.dead_letters.letters import Letter

READ_TIMEOUT_S = 60.0

Topic = Annotated[str, typer.Argument(help="The dead letter topic.")]
Place = Annotated[
    str, typer.Argument(metavar="PARTITION:OFFSET", help="Its partition and offset in the dead letter topic.")
]
FailedFrom = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PLACE",
        help="Only those that failed at or after a time (2026-01-31T12:00) or an age (30m, 2h, 7d).",
    ),
]
FailedTo = Annotated[
    str | None, typer.Option("--to", metavar="PLACE", help="Only those that failed before a time or an age.")
]
Error = Annotated[
    str | None, typer.Option("--error", metavar="TEXT", help="Only those whose error's type or text contains this.")
]
Handler = Annotated[str | None, typer.Option(help="Only those of this handler.")]
Key = Annotated[str | None, typer.Option(help="Only those with this key.")]


def read(
    topic: str,
    bootstrap_servers: str | None,
    kafka: list[str] | None,
    on_stranger: Callable[[], object] | None = None,
    *,
    is_counted: bool = True,
) -> Iterator[Letter]:
    """Yields the dead letters of a topic, up to its present end; calls `on_stranger` for each other message. Blocks.

    At a terminal, it shows how many messages it has read, unless that would disturb what is written meanwhile.
    """
    found: Iterator[awoke.Message[bytes | None]] = messages(topic, bootstrap_servers, kafka)
    for message in with_count(found, "message") if is_counted else found:
        origin = awoke.dead_letter.origin(message)
        if origin is not None:
            yield Letter(message, origin)
        elif on_stranger is not None:
            on_stranger()


def messages(
    topic: str, bootstrap_servers: str | None, kafka: list[str] | None
) -> Iterator[awoke.Message[bytes | None]]:
    """Yields all messages of a topic, up to its present end. Blocks."""
    with awoke.Reader(topic, bootstrap_servers=bootstrap_servers, kafka=pairs(kafka, "--kafka")) as reader:
        yield from reader.read_until_end(READ_TIMEOUT_S)
