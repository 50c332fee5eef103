"""Text in columns of equal width, and times for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime


def time_of(ms: int) -> str:
    """Returns milliseconds since 1970 as a time in this machine's zone; a number out of range with its unit."""
    try:
        return datetime.fromtimestamp(ms / 1_000, UTC).astimezone().isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines with columns of equal width; text that does not fit a terminal is never cut.

    A column in which all but the first cell are numbers stands to the right.
    """
    from rich.cells import cell_len  # Here, because few commands show columns.

    columns = list(zip(*rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    are_right = [len(column) > 1 and all(map(NUMBER.fullmatch, column[1:])) for column in columns]
    lines = []
    for row in rows:
        cells = []
        for cell, width, is_right in zip(row, widths, are_right, strict=True):
            padding = " " * (width - cell_len(cell))
            cells.append(padding + cell if is_right else cell + padding)
        lines.append("  ".join(cells).rstrip())
    return lines


NUMBER = re.compile(r"-|-?[\d,]+(\.\d+)?")


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun: `1 message`, `2 messages`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(words: Sequence[str]) -> str:
    """Returns words as people list them: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
