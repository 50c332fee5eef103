"""Writes what the commands have to say: the only module of the command line that writes to the terminal.

Everything comes out as text: no character of it is obeyed by the terminal, and `rich` parses nothing of it as markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from awoke.printable import harmless, harmless_json

KEPT = "\n\t"
"""Control characters that are shown as they are in a text of several lines."""


def say(text: str, *, err: bool = False, keep: str = "") -> None:
    """Writes a line, without the control characters in it but for those in `keep`."""
    typer.echo(harmless(text, keep), err=err)


def say_json(document: str) -> None:
    """Writes a JSON document as one line."""
    typer.echo(harmless_json(document))


def say_styled(text: str, style: str = "", *, err: bool = False, keep: str = "") -> None:
    """Writes a line in a colour, where there is a terminal."""
    Console(stderr=err, soft_wrap=True, highlight=False).print(Text(harmless(text, keep), style))


def write_raw(content: bytes) -> None:
    """Writes bytes as they are, and a newline: for other programs to read, as the user has asked."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content + b"\n")
    sys.stdout.buffer.flush()


def show_table(names: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Writes a table; a cell that is too wide is folded, for one that is cut tells nothing."""
    table = Table(*names, title=None if title is None else Text(harmless(title)))
    for row in rows:
        table.add_row(*(Text(harmless(each, "\n"), overflow="fold") for each in row))
    Console(soft_wrap=False).print(table)


def ask(question: str) -> bool:
    """Asks a question that is answered with y or n; no answer is no."""
    return typer.confirm(harmless(question))


def take_any_text() -> None:
    """Has characters that the terminal's encoding does not know written as escapes: they would end the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def drop_the_rest() -> None:
    """Drops what is still buffered: the reader of the output has gone, and the end must not complain of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
