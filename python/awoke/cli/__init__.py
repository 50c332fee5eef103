"""The command line: `awoke run`, `produce`, `tail`, `topics`, `doctor`."""

from awoke.cli.main import main

__all__ = ["main"]
