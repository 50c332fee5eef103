"""Files to which other processes append lines while a test reads them."""

from __future__ import annotations

from pathlib import Path


def whole_lines(file: Path) -> list[str]:
    """The lines that were written to their end; none when there is no such file yet.

    A reader may see the first half of a line: the kernel appends a line that crosses a page in two steps.
    """
    whole, _, _ = file.read_text().rpartition("\n") if file.exists() else ("", "", "")
    return whole.splitlines()
