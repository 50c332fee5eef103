"""The one rule of the commands that do what can't be undone: they ask first. `asks_first` makes a command one of them.

`--yes` answers the question, `--dry-run` only shows what would be done, and without a terminal a command refuses.
`ASKING` is their table.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from awoke.cli.output import ask, say
from awoke.errors import ConfigError

Function = TypeVar("Function", bound=Callable[..., Any])

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
ASKING: dict[Callable[..., Any], str] = {}
"""What each of these commands does, by its function."""


class Consent(NamedTuple):
    """The user's answer to the question of a command that asks first."""

    is_given: bool
    is_dry_run: bool

    def to(self, act: str, *, err: bool = False) -> bool:
        """Asks whether to do something, as in `delete topic orders`; returns false if it is only to be shown.

        A dry run writes what it would do; with `err`, to standard error, beside JSON.

        Raises:
            ConfigError: The command does not run in a terminal, so it can't ask.
            typer.Abort: The answer is no.
        """
        if self.is_dry_run:
            say(f"dry run: would {act}", err=err)
            return False
        if self.is_given:
            return True
        if not is_asked_at_terminal():
            raise ConfigError(
                f"this would {act}, and there is no terminal to ask at; pass --yes, or --dry-run to look first", "--yes"
            )
        if not ask(f"{act[0].upper()}{act[1:]}?"):
            raise typer.Abort
        return True


def is_asked_at_terminal() -> bool:
    """Returns whether a person can answer a question."""
    return sys.stdin.isatty()


def asks_first(what: str) -> Callable[[Function], Function]:
    """Enters a command into `ASKING`, with what it does, as in `deletes topics with all their messages`.

    The command has a parameter `consent`, in whose place it gets the options `--dry-run` and `--yes`.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def asking(*given: Any, yes: bool = False, dry_run: bool = False, **named: Any) -> Any:
            return function(*given, consent=Consent(yes, dry_run), **named)

        hints = get_type_hints(function, include_extras=True)
        options = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
            for name, annotation in (("dry_run", DryRun), ("yes", Yes))
        ]
        parameters: list[inspect.Parameter] = []
        for each in inspect.signature(function).parameters.values():
            replaced = each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name])
            parameters += options if each.name == "consent" else [replaced]
        asking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        asking.__annotations__ = {each.name: each.annotation for each in parameters}
        ASKING[asking] = what
        return asking  # type: ignore[return-value]

    return decorate
