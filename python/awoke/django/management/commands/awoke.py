"""`manage.py awoke …`: awoke's command line inside the Django project."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from awoke.__main__ import main
from awoke.cli.main import command_line
from awoke.cli.main import main as run_command
from awoke.django.app import TARGET


class Command(BaseCommand):
    """Passes its words on; the app is that of `settings.AWOKE["app"]` where they name none."""

    help = "Runs awoke's command line: manage.py awoke run --nodes 4"

    def run_from_argv(self, argv: list[str]) -> None:
        """Runs the command, and ends the process with its exit code."""
        _take_words(argv)
        main()

    def handle(self, *words: Any, **options: Any) -> None:
        """Runs the command for `call_command`, in a program that hears signals as it likes until the app runs."""
        _take_words(["manage.py", "awoke", *words])
        run_command()


def _take_words(argv: Sequence[str]) -> None:
    """Makes the words after `manage.py` those of awoke's command line."""
    connections.close_all()  # Those of Django's own checks: none must come through a fork.
    sys.argv = [" ".join(argv[:2]), *with_target(argv[2:], getattr(settings, "AWOKE", {}).get(TARGET))]


def with_target(words: Sequence[str], target: str | None) -> list[str]:
    """Returns the words of a command with its app, where it takes one and none is named."""
    import typer.main

    group, taken = typer.main.get_command(command_line(words)), 0
    found: Any = group
    while hasattr(found, "commands") and taken < len(words) and words[taken] in found.commands:
        found, taken = found.commands[words[taken]], taken + 1
    takes_target = any(each.name == "target" for each in found.params)
    is_asked = any(word in ("--help", "-h") for word in words)
    if target is None or not takes_target or is_asked or any(_names_an_app(word) for word in words[taken:]):
        return list(words)
    return [*words[:taken], target, *words[taken:]]


def _names_an_app(word: str) -> bool:
    module, colon, attribute = word.partition(":")
    return bool(colon) and all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")])
