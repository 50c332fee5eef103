"""`awoke replay`: runs a recording through an app's code, and compares what it sends with what it sent before."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from awoke.cli.app_types import KeepSecrets
from awoke.cli.commands import Section, command
from awoke.cli.options import AsJson, Target
from awoke.cli.output import say, say_json
from awoke.cli.tables import plural
from awoke.errors import ConfigError
from awoke.text.exit_codes import EXIT_FAILED


@command(Section.MESSAGES)
def replay(
    file: Annotated[Path, typer.Argument(help="The recording, as `awoke record` has written it.")],
    target: Target,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file with the earlier results. By default FILE.expected.")
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Write the results instead of comparing them.")] = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="A field that may differ, as in value.paid_at, headers.trace, key, error; may be repeated.",
        ),
    ] = None,
    keep_secrets: KeepSecrets = False,
    topic: Annotated[str | None, typer.Option(help="The topic of the route, if it is another one now.")] = None,
    group: Annotated[str | None, typer.Option(help="The group of the route, if several read the topic.")] = None,
    as_json: AsJson = False,
) -> None:
    """Replay a recording through an app's code, without brokers; exit with 1 if its results differ."""
    from awoke.app.application import find_app  # Here and below: they load the Kafka client.
    from awoke.declare.secret_topics import NO_SECRETS, declared_by
    from awoke.testing.recordings import comparison, recording, replay

    expected = against or Path(f"{file}.expected")
    recorded = recording.read_recording(file)
    replayed = plural(len(recorded.records), "message")
    if not update and not expected.exists():
        raise ConfigError(f"there is no {expected} to compare with; write it with --update", "--against")
    before = [] if update else replay.read_results(expected)
    app = find_app(target)
    logging.getLogger("awoke").addHandler(logging.NullHandler())  # Failures are results here, which are compared.
    after = replay.replay(recorded, app, topic=topic, group=group)
    if update:
        replay.write_results(after, expected)
        say(f"replayed {replayed}, and wrote the results into {expected}")
        return
    secrets = NO_SECRETS if keep_secrets else declared_by(app)
    found = comparison.differences(before, after, ignore or (), secrets)
    for line in () if as_json else comparison.report(recorded.topic, found):
        say(line)
    for each in found if as_json else ():
        say_json(msgspec.json.encode(each._asdict()).decode())
    count = len({(each.partition, each.offset) for each in found})
    say(f"replayed {replayed}: " + (f"{count} differ" if count else "no difference"), err=as_json)
    if count:
        raise typer.Exit(EXIT_FAILED)
