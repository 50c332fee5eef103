"""Text in columns of equal width, and times for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime


def time_of(ms: int) -> str:
    """Returns milliseconds since 1970 as a time in this machine's zone; a number out of range with its unit."""
    try:
        return datetime.fromtimestamp(ms / 1_000, UTC).astimezone().isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def aligned(rows: Sequence[Sequence[str]], is_left: bool = False) -> list[str]:
    """Returns rows as lines with columns of equal width; text that does not fit a terminal is never cut."""
    from rich.cells import cell_len  # Here, because few commands show columns.

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for cell, width in zip(row, widths, strict=True):
            padding = " " * (width - cell_len(cell))
            cells.append(cell + padding if is_left else padding + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun: `1 message`, `2 messages`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
