"""Formats of the log: text for people, or one JSON document a line for programs."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from awoke.printable import harmless, harmless_json, indented, shown, text_of
from awoke.runtime.handled import handled
from awoke.secrets import without_userinfo

FORMAT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"
FORMATS = ("text", "json")

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "event"}
"""The attributes of a log record that are not the user's `extra`."""


class TextFormatter(logging.Formatter):
    """Formats a record for people: one line, and the lines of its traceback and text indented.

    No content of a message, an error or a name can control a terminal or look like another record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as text."""
        record.message = record.getMessage()
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        parts = [self.formatMessage(record)]
        if record.exc_info:
            parts.append(self.formatException(record.exc_info))  # Not `exc_text`, which another formatter may have set.
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return indented(without_userinfo("\n".join(parts)))


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON document.

    It has time, level, logger, text, process and node; the fields of an event, else topic, partition, offset and
    attempt of the message that is being handled; the record's `extra`; error and traceback. Format records on the
    thread that logs.
    """

    def __init__(self, node: int | None = None) -> None:
        super().__init__()
        self._node = {} if node is None else {"node": node}

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as a line."""
        event = getattr(record, "event", None)
        parts: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage() if event is None else event.name,
            "process": record.process,
            **self._node,
            **self._error(record),
        }
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        for name, value in {**self._context(event), **extra}.items():
            if name in extra and parts.get(name) == value:
                continue  # The logger of a handler says the same.
            parts[f"extra_{name}" if name in parts else name] = value
        return _encode(parts)

    def _context(self, event: Any) -> dict[str, Any]:
        """Returns the fields of an event, or the place of the message that is being handled."""
        if event is not None:
            return {name: value for name, value in event.fields.items() if name != "error"}
        message = handled()
        return (
            {} if message is None else {name: value for name, value in message._asdict().items() if value is not None}
        )

    def _error(self, record: logging.LogRecord) -> dict[str, Any]:
        event = getattr(record, "event", None)
        error = None if event is None else event.fields.get("error")
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
        found = {} if error is None else {"error": f"{type(error).__name__}: {text_of(error)}"}
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            found["stack"] = self.formatStack(record.stack_info)
        return found


def _encode(parts: dict[str, Any]) -> str:
    try:
        return harmless_json(without_userinfo(msgspec.json.encode(parts, enc_hook=str).decode()))
    except Exception:  # A user's `extra` may hold any object; the line must be written all the same.
        shown_parts = {harmless(str(name)): shown(value) for name, value in parts.items()}
        return harmless_json(without_userinfo(msgspec.json.encode(shown_parts).decode()))


def set_up(level: str, form: str, node: int | None = None) -> None:
    """Writes to standard error from this level on; replaces what the parent of a node has set up.

    Raises:
        KeyError: there is no such level.
    """
    prefix = "" if node is None else f"node-{node} "
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(node) if form == "json" else TextFormatter(prefix + FORMAT))
    force = node is not None
    logging.basicConfig(level=logging.getLevelNamesMapping()[level.upper()], handlers=[handler], force=force)


def set_up_if_mute() -> None:
    """Writes text to standard error where neither the root logger nor awoke's has a handler: an app needs a log."""
    root, own = logging.getLogger(), logging.getLogger("awoke")
    if root.handlers or any(not isinstance(each, logging.NullHandler) for each in own.handlers):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter(FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.INFO if root.level == logging.WARNING else None)
