"""Messages that no broker has sent, as a reader gives them."""

from __future__ import annotations

from typing import Any

from awoke import Message
from awoke.testing import message


def stored_message(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    topic: str = "orders.dead",
    partition: int = 0,
    offset: int = 7,
    *,
    timestamp_ms: int | None = 1_760_000_000_000,
) -> Message[bytes | None]:
    """Returns a message of bytes."""
    place = {"partition": partition, "offset": offset}
    return message(value, key=key, headers=headers, topic=topic, timestamp_ms=timestamp_ms, **place)


def changed(message: Message[Any], **fields: Any) -> Message[bytes | None]:
    """Returns a copy of a message with other fields of `stored_message`."""
    names = ("key", "value", "headers", "topic", "partition", "offset", "timestamp_ms")
    return stored_message(**{**{name: getattr(message, name) for name in names}, **fields})
