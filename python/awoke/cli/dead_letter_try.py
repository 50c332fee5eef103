"""`awoke dead-letter try`: runs a dead letter through the app's present code, and sends nothing."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from awoke.cli import letters
from awoke.cli.dead_letter import app
from awoke.cli.options import BootstrapServers, Kafka
from awoke.cli.output import say
from awoke.errors import AwokeError
from awoke.operate.dead_letters.letters import letter_of, place_of
from awoke.text.exit_codes import EXIT_FAILED
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke.declare.secret_topics import SecretPart


@app.command("try")
def try_one(
    topic: letters.Topic,
    place: letters.Place,
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The app whose code is tried, as in shop:app.")],
    route: Annotated[
        str | None, typer.Option("--topic", help="The topic of the route, not the one that it came from.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="The group of the route, if several read the topic.")] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
) -> None:
    """Run a dead letter through the app's present code; exit with 1 if it fails again.

    Messages that the handler sends are shown and not sent. Its other effects are real: try no handler on a database
    that must not change.
    """
    from awoke.app.application import find_app  # Here and below: they load the Kafka client.
    from awoke.declare.secret_topics import declared_by
    from awoke.testing.letter_trial import try_letter

    wanted = place_of(place)
    found = next(
        (each for each in letters.messages(topic, bootstrap_servers, kafka) if (each.partition, each.offset) == wanted),
        None,
    )
    if found is None:
        raise AwokeError(f"{topic}[{wanted[0]}] has no message at offset {wanted[1]}")
    logging.getLogger("awoke").addHandler(logging.NullHandler())  # A failure is the result here, which is shown.
    app_to_try = find_app(target)
    secrets = declared_by(app_to_try)
    trial = try_letter(app_to_try, letter_of(found), topic=route, group=group)
    for each in trial.outputs:
        value = "no value" if each.data is None else value_of(each.data, secrets.of(each.topic, "value"))
        say(f"it would send to {printable(each.topic)}: {value}")
    if trial.is_handled:
        say(f"{place} is handled")
        return
    error = "" if trial.error is None else f": {type(trial.error).__name__}: {printable(str(trial.error))}"
    say(f"{place} is {trial.state} after {trial.attempts} attempts{error}")
    raise typer.Exit(EXIT_FAILED)


def value_of(data: bytes, secrets: Collection[SecretPart]) -> str:
    """Returns a value for people, without the fields that the app marks as secret."""
    if not secrets:
        return printable(data)
    from awoke.declare.secret_topics import masked_json

    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if all(each.form == "json" for each in secrets) and (found := masked_json(data, secrets)) is not None:
            return printable(found)
    return f"{len(data)} bytes with secret fields, which are not shown"
