"""`awoke record`: writes a part of a topic into a file, to be replayed through new code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import awoke
from awoke.cli.app_types import KEEP_SECRETS, check_keeps
from awoke.cli.commands import Section, command
from awoke.cli.options import (
    BootstrapServers,
    End,
    First,
    Kafka,
    Last,
    Quiet,
    end_place,
    is_behind,
    pairs,
    place,
)
from awoke.cli.output import say_done, with_count
from awoke.cli.tables import plural
from awoke.errors import ConfigError

if TYPE_CHECKING:
    from awoke.declare.secret_topics import SecretPart
    from awoke.testing.recordings.masks import Masks
    from awoke.testing.recordings.recording import Recorded

SECRET = "AWOKE_MASK_KEY"
"""The environment variable with the key of the hashes, for recordings whose masks are to be equal."""


@command(Section.MESSAGES)
def record(
    topic: Annotated[str, typer.Argument(help="The topic to read.")],
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    begin: First = None,
    end: End = None,
    last: Last = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Record this partition only.")] = None,
    of_app: Annotated[
        str | None,
        typer.Option("--app", metavar="MODULE:APP", help="The app whose fields that awoke.Secret marks are masked."),
    ] = None,
    keep_secrets: Annotated[
        bool, typer.Option(KEEP_SECRETS, help="Record the app's secret fields as they are.")
    ] = False,
    mask: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Mask a field of JSON values, as in card.number; may be repeated."),
    ] = None,
    mask_header: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Mask the headers of this name; may be repeated.")
    ] = None,
    mask_key: Annotated[bool, typer.Option("--mask-key", help="Mask the keys.")] = False,
    mask_with: Annotated[
        str, typer.Option(metavar="hash|stars", help=f"hash, by the key in {SECRET} or a random one; or stars.")
    ] = "hash",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file, if it is there.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Record a part of a topic into a file, for `awoke replay`: by default all up to its present end."""
    from awoke.testing.recordings.masks import Masks  # Here and below: they load the Kafka client.
    from awoke.testing.recordings.recording import Recording, in_order, write_recording

    masks = Masks(
        mask or (),
        mask_header or (),
        key=mask_key,
        style=style_of(mask_with),
        secrets_of_app=secrets_in(of_app, topic, keep_secrets),
        hash_key=os.environ.get(SECRET, "").encode() or None,
    )
    if file.exists() and not overwrite:
        raise ConfigError(f"{file} exists already; pass --overwrite, or name another file", "file")
    until = end_place(end)
    start: Any = -last if last is not None else place(begin or "earliest")
    where = start if partition is None else {partition: start}
    properties = pairs(kafka, "--kafka")
    with awoke.Reader(topic, bootstrap_servers=bootstrap_servers, start=where, kafka=properties) as reader:
        records = in_order(masked(with_count(reader.read_until_end(), "message"), until, masks))
    if records:
        masks.check_found()
    write_recording(Recording(topic, records, masks.names), file, replaces=overwrite)
    done = f"recorded {plural(len(records), 'message')} of {topic} into {file}"
    say_done(f"{done}{summary(of_app, masks.secrets, keep_secrets)}", is_quiet=quiet)


def secrets_in(target: str | None, topic: str, keeps_secrets: bool) -> list[SecretPart]:
    """Returns the secret fields that an app declares for a topic; none without an app, or if they are kept.

    Raises:
        ConfigError: They are to be kept, and no app is named. AppNotFound: There is no such app.
    """
    check_keeps(target, keeps_secrets)
    if target is None:
        return []
    from awoke.app.application import find_app
    from awoke.declare.secret_topics import declared_by

    found = declared_by(find_app(target))
    return [] if keeps_secrets else [*found.of(topic, "value"), *found.of(topic, "key")]


def summary(target: str | None, masked: Sequence[str], keeps_secrets: bool) -> str:
    """Returns the end of the line about a recording: what became of the app's secret fields."""
    if target is None:
        return ""
    if keeps_secrets:
        return f"; the secret fields of {target} are in it as they were"
    return f"; masked the secret fields of {target}: {', '.join(masked)}" if masked else "; it has no secret fields"


def style_of(name: str) -> Literal["hash", "stars"]:
    """Returns the style of masks.

    Raises:
        ConfigError: there is none of this name.
    """
    if name == "hash":
        return "hash"
    if name == "stars":
        return "stars"
    raise ConfigError(f"--mask-with is hash or stars, not {name!r}", "--mask-with")


def masked(messages: Iterator[awoke.Message[Any]], until: int | datetime | None, masks: Masks) -> Iterator[Recorded]:
    """Yields the records before the end, of each partition, masked."""
    from awoke.testing.recordings.recording import recorded

    ended: set[int] = set()
    for message in messages:
        if message.partition in ended:
            continue
        if is_behind(message, until):
            ended.add(message.partition)
        else:
            yield masks.masked(recorded(message))
