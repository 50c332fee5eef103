"""Formats of the log: lines for people, or one JSON document a line for programs; and the context of a line."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec

from awoke.observe.handled import CONTEXT, WithContext, context
from awoke.observe.process import ThisProcess
from awoke.text.frames import traceback_text
from awoke.text.printable import harmless, harmless_json, indented, shown, text_of
from awoke.text.secrets import without_userinfo

__all__ = [
    "CONTEXT",
    "FORMAT",
    "FORMATS",
    "ConsoleFormatter",
    "JsonFormatter",
    "WithContext",
    "add_context",
    "context",
    "keep_audible",
    "set_up",
    "set_up_if_mute",
]

logger = logging.getLogger(__name__)

FORMAT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"
FORMATS = ("console", "json")
ON_CONSOLE = ("method", "topic", "partition", "offset", "attempt", "key_hash", "trace_id")
"""The context at the end of a line for people."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "awoke"}
"""The attributes of a log record that are not the user's `extra`."""


ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class ConsoleFormatter(logging.Formatter):
    """Formats a record for people: one line with its context, and its traceback and further text indented.

    No content of a message, an error or a name can control a terminal or look like another record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as text. Format records on the thread that logs."""
        record.message = record.getMessage()
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        parts = [self.formatMessage(record) + self._context(record)]
        if record.exc_info:
            parts.append(self.formatException(record.exc_info))  # Not `exc_text`, which another formatter may have set.
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return indented(without_userinfo("\n".join(parts)))

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802  The name is Python's.
        return _traceback(ei)

    def _context(self, record: logging.LogRecord) -> str:
        if _event(record) is not None:
            return ""  # Its text has its fields.
        found = context()
        return "".join(f" {name}={found[name]}" for name in ON_CONSOLE if name in found)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON document.

    It has time, level, logger, text and process; the fields of an event, or else the context (`CONTEXT`); the record's
    `extra`; error and traceback. Format records on the thread that logs.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as a line."""
        event = _event(record)
        parts: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage() if event is None else event["event"],
            "process": record.process,
            **self._error(record),
        }
        for name, value in {**self._context(event), **_extra(record)}.items():
            parts[f"extra_{name}" if name in parts else name] = value
        return _encode(parts)

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802  The name is Python's.
        return _traceback(ei)

    def _context(self, event: dict[str, Any] | None) -> dict[str, Any]:
        """Returns the fields of an event with its process, or all that is known of the running code."""
        found = context()
        if event is None:
            return found
        of_process = {name: found[name] for name in ("app", "node") if name in found}
        return {**of_process, **{name: value for name, value in event["fields"].items() if name != "error"}}

    def _error(self, record: logging.LogRecord) -> dict[str, Any]:
        event = _event(record)
        text = None if event is None else event["fields"].get("error")
        if record.exc_info and (error := record.exc_info[1]) is not None:
            text = f"{type(error).__name__}: {text_of(error)}"
        found = {} if text is None else {"error": text}
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            found["stack"] = self.formatStack(record.stack_info)
        return found


def _event(record: logging.LogRecord) -> dict[str, Any] | None:
    """Returns the event that a record tells of, as `awoke.observe.events.bus.write` has left it; None of others."""
    event = getattr(record, "awoke", None)
    return event if isinstance(event, dict) and event.keys() == {"event", "fields"} else None


def _traceback(info: ExceptionInfo) -> str:
    return "NoneType: None" if info[1] is None else traceback_text(info[1], info[2])


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """Returns the user's `extra`, without the empty attributes that `WithContext` has set."""
    extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {name: value for name, value in extra.items() if not (value is None and name in CONTEXT)}


def add_context(logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Adds what is known of the running code to a line of structlog's: one of its processors. Does not block."""
    for name, value in context().items():
        fields.setdefault(name, value)
    return fields


def _encode(parts: dict[str, Any]) -> str:
    try:
        return harmless_json(without_userinfo(msgspec.json.encode(parts, enc_hook=str).decode()))
    except Exception:  # A user's `extra` may hold any object; the line must be written all the same.
        shown_parts = {harmless(str(name)): shown(value) for name, value in parts.items()}
        return harmless_json(without_userinfo(msgspec.json.encode(shown_parts).decode()))


def set_up(level: str, form: str) -> None:
    """Writes to standard error from this level on, unless the root logger has handlers. Lines of a node begin with it.

    Raises:
        KeyError: there is no such level.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else _NodeFormatter(FORMAT))
    logging.basicConfig(level=logging.getLevelNamesMapping()[level.upper()], handlers=[handler])


class _NodeFormatter(ConsoleFormatter):
    """Begins lines for people with the node that writes them, which is not known before the app is imported."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  The name is Python's.
        node = ThisProcess.node
        return super().formatMessage(record) if node is None else f"node-{node} {super().formatMessage(record)}"


def keep_audible() -> None:
    """Enables awoke's loggers that a logging configuration has disabled.

    `logging.config` disables all loggers that there are and that it does not name, unless it is told not to. Failures
    of messages would be silent then. A level silences a logger, and is left alone.
    """
    loggers = [each for name, each in logging.root.manager.loggerDict.items() if f"{name}.".startswith("awoke.")]
    disabled = [each for each in loggers if isinstance(each, logging.Logger) and each.disabled]
    for each in disabled:
        each.disabled = False
    if disabled:
        logger.warning(
            "a logging configuration had disabled the loggers of awoke: they are on again; set "
            "disable_existing_loggers to False in it, and a level for awoke to hear less"
        )


def set_up_if_mute() -> None:
    """Writes lines for people to standard error where neither the root logger nor awoke's has a handler."""
    root, own = logging.getLogger(), logging.getLogger("awoke")
    if root.handlers or any(not isinstance(each, logging.NullHandler) for each in own.handlers):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ConsoleFormatter(FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.INFO if root.level == logging.WARNING else None)
