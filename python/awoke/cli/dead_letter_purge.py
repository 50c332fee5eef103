"""`awoke dead-letter purge`: deletes the oldest messages of a dead letter topic. Kafka can delete no others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

import awoke
from awoke.cli.consent import Consent, asks_first
from awoke.cli.dead_letter import app
from awoke.cli.letters import Topic
from awoke.cli.options import BootstrapServers, Kafka, Quiet, pairs
from awoke.cli.output import say_done
from awoke.cli.tables import listed, plural
from awoke.errors import ConfigError
from awoke.operate.dead_letters.letters import moment_ms, place_of


@app.command("purge")
@asks_first("deletes messages of a dead letter topic")
def purge(
    topic: Topic,
    consent: Consent,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="Delete those written before a time (2026-01-31T12:00) or an age (30m, 2h, 7d)."
        ),
    ] = None,
    until: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTITION:OFFSET",
            help="Delete up to and including this one; may be repeated, for other partitions.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete all.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    quiet: Quiet = False,
) -> None:
    """Delete the oldest messages of a dead letter topic, for good."""
    if sum((before is not None, bool(until), everything)) != 1:
        raise ConfigError("say what is to be deleted: one of --before, --until and --all", "--before")
    with awoke.Admin(bootstrap_servers, kafka=pairs(kafka, "--kafka")) as admin:
        starts, ends = admin.start_offsets(topic), admin.end_offsets(topic)
        if before is not None:
            wanted = admin.offsets_at(topic, moment_ms(before, datetime.now(UTC), "--before"))
        else:
            wanted = ends if everything else places(topic, until or [], ends)
        wanted = {each: offset for each, offset in wanted.items() if offset > starts[each]}
        count = sum(offset - starts[each] for each, offset in wanted.items())
        if not wanted:
            say_done("there is nothing to delete", is_quiet=quiet)
            return
        if not consent.to(f"delete {plural(count, 'message')} of {topic} for good"):
            return
        left = admin.delete_records(topic, wanted)
    said = listed([f"partition {each} begins at offset {offset}" for each, offset in sorted(left.items())])
    say_done(f"deleted {plural(count, 'message')} of {topic}: {said}", is_quiet=quiet)


def places(topic: str, words: list[str], ends: Mapping[int, int]) -> dict[int, int]:
    """Returns the offset after each place, by partition.

    Raises:
        ConfigError: There is no such partition, or no message at that offset yet.
    """
    found: dict[int, int] = {}
    for word in words:
        partition, offset = place_of(word)
        if partition not in ends:
            raise ConfigError(f"--until {word}: {topic} has no partition {partition}", "--until")
        if offset >= ends[partition]:
            text = f"--until {word}: {topic}[{partition}] ends before offset {ends[partition]}"
            raise ConfigError(text, "--until")
        found[partition] = max(found.get(partition, 0), offset + 1)
    return found
