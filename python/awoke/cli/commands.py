"""The command line as one Typer app. Each module of this package that has commands registers them here itself.

A new command is a new module: no list names it. `load` imports the modules that are named after a command. Help and
completion in the shell are made from what the commands declare.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from awoke.cli import habits

Function = TypeVar("Function", bound=Callable[..., Any])


class Section(StrEnum):
    """The sections of `awoke --help`, in this order."""

    RUN = "Run an app"
    WATCH = "Watch a running app"
    STEER = "Act on a running app"
    MESSAGES = "Messages"
    CLUSTER = "Topics, groups and schemas"
    TOOLS = "Tools"


COUNTS = frozenset(
    ["brokers", "count", "last", "limit", "nodes", "partitions", "replicas", "restarts", "threads", "workers"]
)
"""The options whose value is a number of things."""


def metavar(parameter: Any) -> str:
    """Returns the word for a parameter's value: its own, or the last word of its name, as in `--metrics-port PORT`."""
    name = str(parameter.name)
    if parameter.metavar is not None:
        return str(parameter.metavar)
    if name.endswith("_s"):
        return "SECONDS"
    return "N" if name in COUNTS or name.endswith(("_max", "_by")) else name.rpartition("_")[2].upper()


def usage(argument: Any) -> str:
    """Returns an argument as the usage has it: `TOPIC`, `[MESSAGE]...`."""
    word = metavar(argument)
    return (word if argument.required else f"[{word}]") + ("..." if argument.nargs == -1 else "")


def names_and_text(parameter: Any) -> tuple[str, str]:
    """Returns a row of the help: an option with its value or an argument, and its text with bounds and default."""
    if parameter.param_type_name == "argument":
        names = metavar(parameter)
    else:
        names = ", ".join(sorted(parameter.opts, key=len))
        names += ", ".join(["", *parameter.secondary_opts])
        names += "" if parameter.is_flag else f" {metavar(parameter)}"
    return names, " ".join([parameter.help or "", *remarks(parameter)]).strip()


def remarks(parameter: Any) -> Iterator[str]:
    """Yields what a user must know beside the text: the bounds of a number, the variable, the default."""
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if most is not None:
        yield f"({least or 0:,} to {most:,})".replace(",", "")
    elif least:
        yield f"(at least {least:g})"
    if parameter.envvar is not None:
        yield f"(or {parameter.envvar})"
    shown, default = getattr(parameter, "show_default", False), parameter.default
    if isinstance(shown, str):
        yield f"(default: {shown})"
    elif shown and not callable(default) and default not in (None, False, "", ()):
        yield f"(default: {default:g})" if isinstance(default, float) else f"(default: {default})"


def advise(error: Any, ctx: Any, subcommands: Collection[str] = ()) -> None:
    """Adds to an error about an option of another tool what to type instead."""
    option = getattr(error, "option_name", None)
    if isinstance(option, str) and error.message.startswith("No such option"):
        command = ctx.command_path.removeprefix(ctx.find_root().info_name or "").strip()
        if (advice := habits.option_advice(option, command, subcommands)) is not None:
            error.message, error.possibilities = f"{error.message}; {advice}", None


class Command(TyperCommand):
    """A command, whose help has `TOPIC` and `--kafka NAME=VALUE` instead of types of Python."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the words behind the command's name."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            advise(error, ctx)
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the words behind the command's name."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return [self.options_metavar or "", *map(usage, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options."""
        write_parameters(self, ctx, formatter)


class CommandGroup(TyperGroup):
    """A group of commands in the order of their names, or of their sections."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the words behind the group's name."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            advise(error, ctx, self.commands)
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command that the first word names."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if ctx.parent is None and args[0] in habits.COMMANDS and hasattr(error, "message"):
                error.message = f"No such command {args[0]!r}; awoke has: awoke {habits.COMMANDS[args[0]]}"
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names, sorted."""
        return sorted(super().list_commands(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes options, and the commands in their sections."""
        write_parameters(self, ctx, formatter)
        sections: dict[str, list[tuple[str, str]]] = {each: [] for each in Section}
        for name in self.list_commands(ctx):
            found = self.commands[name]
            if not found.hidden:
                section = getattr(found, "rich_help_panel", None)
                rows = sections.setdefault(section if isinstance(section, str) else "Commands", [])
                rows.append((name, found.get_short_help_str(1_000)))
        width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for section, rows in sections.items():
            if rows:
                with formatter.section(section):
                    formatter.write_dl([(f"{name:{width}}", text) for name, text in rows])


def write_parameters(found: Any, ctx: Any, formatter: Any) -> None:
    """Writes the arguments and the options of a command, in the form of `names_and_text`."""
    shown = [each for each in found.get_params(ctx) if not getattr(each, "hidden", False)]
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        rows = [names_and_text(each) for each in shown if each.param_type_name == kind]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    name="awoke",
    cls=CommandGroup,
    help="A Kafka processing framework for Python in which nothing sleeps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Its tables cut the names of options at 80 columns.
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(section: Section, name: str | None = None) -> Callable[[Function], Function]:
    """Registers a function as a command, by default of its name, in a section of `awoke --help`."""
    return app.command(name, rich_help_panel=section, cls=Command)


def group(name: str, text: str, section: Section) -> typer.Typer:
    """Registers a group of commands, as in `awoke topics create`, and returns it."""
    found = typer.Typer(help=text, cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(found, name=name, rich_help_panel=section)
    return found


def load(command: str | None = None) -> None:
    """Imports modules of this package, so that they register their commands.

    Those whose names begin with the command's, `topics` or `dead_letter_purge`; or all, where none is named so.
    """
    modules = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    begin = (command or "").replace("-", "_")
    named = [name for name in modules if name == begin or name.startswith(f"{begin}_")]
    for name in named or modules:
        importlib.import_module(f"{__package__}.{name}")
    for registered in app.registered_groups:
        for each in registered.typer_instance.registered_commands if registered.typer_instance else ():
            each.cls = Command
