"""The commands together, and how their errors are shown."""

from __future__ import annotations

import platform
import sys
from typing import Annotated

import typer

import awoke
from awoke.cli import broker, dead_letter, doctor, failures, output, produce, rpc, run, swarm, tail, threads, topics
from awoke.errors import AwokeError
from awoke.exit_codes import EXIT_GAVE_UP

app = typer.Typer(
    name="awoke",
    help="A Kafka processing framework for Python in which nothing sleeps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Its tables cut the names of options at 80 columns.
    add_completion=False,
)
app.command("run")(run.run)
app.command("broker")(broker.broker)
app.command("produce")(produce.produce)
app.command("tail")(tail.tail)
app.add_typer(topics.app, name="topics")
app.add_typer(dead_letter.app, name="dead-letter")
app.add_typer(rpc.app, name="rpc")
app.command("threads")(threads.threads)
for command in (swarm.status, swarm.stop, swarm.quiet, swarm.reload, swarm.scale, swarm.dump, swarm.resume, swarm.skip):
    app.command(command.__name__)(command)
app.command("doctor")(doctor.doctor)


def versions() -> str:
    """What is running, in one line."""
    return f"awoke {awoke.__version__} (librdkafka {awoke.librdkafka_version()}, Python {platform.python_version()})"


def _show_version(wanted: bool) -> None:
    if wanted:
        output.say(versions())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and end.")
    ] = False,
    with_traceback: Annotated[bool, typer.Option("--traceback", help="Show errors with their traceback.")] = False,
) -> None:
    """Options before the command; `--traceback` is read by `main`."""


def main() -> None:
    """Run the command line; errors are one line, without a traceback unless it is asked for."""
    output.take_any_text()
    try:
        app()
    except AwokeError as error:
        failures.show(error)
        sys.exit(failures.code_of(error))
    except BrokenPipeError:
        output.drop_the_rest()
        sys.exit(EXIT_GAVE_UP)
