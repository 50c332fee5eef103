"""Where reading begins, where no offset is committed."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from awoke.errors import ConfigError

Start = Literal["earliest", "latest"] | int | datetime
"""Where reading begins: an end, an offset, or a time."""


def start_of(start: Start | None) -> tuple[str, int] | None:
    """Returns the start of reading, as the engine takes it.

    Raises:
        ConfigError: it is neither an end, nor an offset, nor a time that knows its time zone.
    """
    if start is None or start in ("earliest", "latest"):
        return None if start is None else (str(start), 0)
    if isinstance(start, datetime) and start.tzinfo is not None:
        return "time", int(start.timestamp() * 1_000)
    if isinstance(start, int) and not isinstance(start, bool):
        return ("last", -start) if start < 0 else ("offset", start)
    text = f"reading starts at 'earliest', 'latest', a number or a datetime with a time zone, not {start!r}"
    raise ConfigError(text, "start")
