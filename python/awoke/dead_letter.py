"""What a dead letter looks like: the message as it was, and in its headers where it came from and why it was given up."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from awoke._native import Message
from awoke.producer import Record

TOPIC = "awoke-original-topic"
PARTITION = "awoke-original-partition"
OFFSET = "awoke-original-offset"
TIMESTAMP = "awoke-original-timestamp-ms"
GROUP = "awoke-group"
ATTEMPTS = "awoke-attempts"
ERROR_TYPE = "awoke-error-type"
ERROR_TEXT = "awoke-error-message"
FAILED_AT = "awoke-failed-at-ms"
HANDLER = "awoke-handler"
HEADERS = (TOPIC, PARTITION, OFFSET, TIMESTAMP, GROUP, ATTEMPTS, ERROR_TYPE, ERROR_TEXT, FAILED_AT, HANDLER)
"""The headers that awoke adds, in this order, behind the message's own."""

ERROR_TEXT_MAX = 1_000
"""Characters of the error's text that are kept."""


class Origin(NamedTuple):
    """Where a dead letter came from and why it was given up."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    """Of the original message."""
    group: str
    attempts: int
    error_type: str
    error_text: str
    failed_at_ms: int
    """Milliseconds since 1970."""
    handler: str = ""
    """The name of the handler that failed; empty in dead letters of older versions."""


def letter(message: Message[Any], group: str, attempts: int, error: BaseException, handler: str = "") -> Record:
    """The dead letter of a message: key, value and headers untouched, and awoke's headers behind them."""
    kind = type(error)
    said: list[tuple[str, bytes | str | None]] = [
        (TOPIC, message.topic),
        (PARTITION, str(message.partition)),
        (OFFSET, str(message.offset)),
        (TIMESTAMP, str(message.timestamp_ms if message.timestamp_ms is not None else "")),
        (GROUP, group),
        (ATTEMPTS, str(attempts)),
        (ERROR_TYPE, f"{kind.__module__}.{kind.__qualname__}"),
        (ERROR_TEXT, str(error)[:ERROR_TEXT_MAX]),
        (FAILED_AT, str(time.time_ns() // 1_000_000)),
        (HANDLER, handler),
    ]
    return Record(message.raw_value, message.key, [*message.headers, *said])


def origin(message: Message[Any]) -> Origin | None:
    """What the headers of a dead letter say; None for a message that is none of awoke's dead letters."""
    found = {name: (value or b"").decode(errors="replace") for name, value in message.headers if name in HEADERS}
    try:
        return Origin(
            found[TOPIC],
            int(found[PARTITION]),
            int(found[OFFSET]),
            int(found[TIMESTAMP]) if found[TIMESTAMP] else None,
            found[GROUP],
            int(found[ATTEMPTS]),
            found[ERROR_TYPE],
            found[ERROR_TEXT],
            int(found[FAILED_AT]),
            found.get(HANDLER, ""),
        )
    except (KeyError, ValueError):
        return None


def original(message: Message[Any]) -> Record:
    """The message that a dead letter was made of, to be sent again."""
    headers = [(name, value) for name, value in message.headers if name not in HEADERS]
    return Record(message.raw_value, message.key, headers)
