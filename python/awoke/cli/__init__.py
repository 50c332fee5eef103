"""The command line: `awoke run`, `produce`, `tail`, `topics` and so on, each command in a module of its own."""

from awoke.cli.main import main

__all__ = ["main"]
