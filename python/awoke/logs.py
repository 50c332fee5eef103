"""How a process of awoke's writes its log: as text for people, or one JSON document a line for programs."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec

FORMAT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"
FORMATS = ("text", "json")


class JsonFormatter(logging.Formatter):
    """One JSON document for a record: time, level, logger, text, error, and an event's name and fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        event = getattr(record, "event", None)
        parts = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage() if event is None else event.name,
            **({} if event is None else {name: value for name, value in event.fields.items() if name != "error"}),
            **({} if record.exc_info is None else {"error": self.formatException(record.exc_info)}),
        }
        return msgspec.json.encode(parts, enc_hook=str).decode()


def set_up(level: str, form: str, prefix: str = "") -> None:
    """Write to standard error from this level on; lines of text begin with the prefix.

    Raises:
        KeyError: there is no such level.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(prefix + FORMAT))
    logging.basicConfig(level=logging.getLevelNamesMapping()[level.upper()], handlers=[handler], force=bool(prefix))
