"""The output of the commands. No other module of the command line writes to the terminal.

All output is plain text: it has no control characters for the terminal, and `rich` parses no markup in it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

import msgspec
import typer

from awoke.cli.tables import aligned
from awoke.text.printable import harmless, harmless_json, printable

Item = TypeVar("Item")

REFRESH_S = 0.1
"""The interval of what shows progress. An update for each message would cost more than the message."""

KEPT = "\n\t"
"""Control characters that stay as they are in a text of several lines."""


def say(text: str, *, err: bool = False, keep: str = "") -> None:
    """Writes a line; escapes its control characters, except those in `keep`."""
    typer.echo(harmless(text, keep), err=err)


def say_done(text: str, *, is_quiet: bool, err: bool = False) -> None:
    """Writes what a command has done, unless its user wants to read of failures only."""
    if not is_quiet:
        say(text, err=err)


def say_json(document: str) -> None:
    """Writes a JSON document as one line. Characters that the encoding of the output lacks are escaped as in JSON."""
    text, encoding = harmless_json(document), getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = NO_ASCII.sub(escaped_json, text)
    typer.echo(text)


NO_ASCII = re.compile(r"[^\x00-\x7f]")


def escaped_json(found: re.Match[str]) -> str:
    """Returns a character as JSON writes it in ASCII: as one or two units of UTF-16."""
    return json.dumps(found[0])[1:-1]


def say_styled(text: str, style: str = "", *, err: bool = False, keep: str = "") -> None:
    """Writes a line, in a colour if there is a terminal."""
    from rich.console import Console  # Here and below: most commands write plain lines only.
    from rich.text import Text

    Console(stderr=err, soft_wrap=True, highlight=False).print(Text(harmless(text, keep), style))


def write_raw(content: bytes) -> None:
    """Writes bytes as they are, and a newline. Only for `--raw`, whose output other programs read."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content + b"\n")
    sys.stdout.buffer.flush()


def show_list(names: Sequence[str], rows: Iterable[Sequence[Any]], as_json: bool) -> None:
    """Writes a list: for people in columns, for programs a JSON document for each row, with the same names."""
    if as_json:
        for document in documents(names, rows):
            say_json(msgspec.json.encode(document).decode())
    else:
        show_table(names, [tuple(map(cell, row)) for row in rows])


def documents(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Returns the rows of a list as JSON has them."""
    keys = [name.replace(" ", "_") for name in names]
    return [dict(zip(keys, row, strict=True)) for row in rows]


def cell(value: Any) -> str:
    """Returns a value for people, on one line: `-` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def show_table(names: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Writes rows in columns below their names. A cell is never cut; one of several lines continues below itself."""
    if title is not None:
        say(title)
    lines: list[Sequence[str]] = [names]
    for row in rows:
        lines += zip_longest(*(harmless(each, "\n").split("\n") for each in row), fillvalue="")
    for line in aligned(lines):
        say(line)


def with_count(items: Iterable[Item], noun: str) -> Iterator[Item]:
    """Yields items, and shows how many there were: at a terminal, as long as it lasts. Nothing else may be written."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    columns = (TextColumn("{task.completed:,} {task.description}"), TimeElapsedColumn())
    # Its own thread would still run when it is closed.
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task, shown_s = bar.add_task(f"{noun}s read", total=None), 0.0
        for number, item in enumerate(items, 1):
            if (now_s := time.monotonic()) - shown_s >= REFRESH_S:
                shown_s = now_s
                bar.update(task, completed=number, refresh=True)
            yield item


def is_terminal() -> bool:
    """Returns whether people read the output, and not a program."""
    return sys.stdout.isatty()


def ask(question: str) -> bool:
    """Asks a question for y or n; returns false for no answer."""
    return typer.confirm(harmless(question))


def take_any_text() -> None:
    """Makes streams escape characters that the terminal's encoding lacks: they would end the command with an error.

    A stream that was closed before the start drops what is written, and has nothing to read. Its number is taken, so
    that no connection gets it: what another library prints would be sent there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def drop_the_rest() -> None:
    """Drops buffered output: its reader has gone, or the disk is full. The end of the process must not report that."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
