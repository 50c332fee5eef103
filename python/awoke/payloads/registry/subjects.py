"""Naming strategies: the subject of a topic's keys or values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from awoke.errors import ConfigError

Part = Literal["key", "value"]
"""The part of a message that a schema describes."""
SubjectName = Callable[[str, Part, str | None], str]
"""Returns the subject for a topic, a part, and the full name of the record (None when the schema has none)."""


def topic_name(topic: str, part: Part, record: str | None = None) -> str:
    """Returns `orders-value` or `orders-key`: one kind of value a topic. The default of Confluent's clients, too."""
    return f"{topic}-{part}"


def record_name(topic: str, part: Part, record: str | None) -> str:
    """Returns the full name of the record, as in `shop.Order`: one schema for all topics.

    Raises:
        ConfigError: The schema has no name.
    """
    return _name(topic, part, record)


def topic_record_name(topic: str, part: Part, record: str | None) -> str:
    """Returns `orders-shop.Order`: several kinds of values in a topic, each with versions of its own.

    Raises:
        ConfigError: The schema has no name.
    """
    return f"{topic}-{_name(topic, part, record)}"


def _name(topic: str, part: Part, record: str | None) -> str:
    if not record:
        text = f"topic {topic!r}: the schema of the {part} has no name; name it, or use the strategy topic_name"
        raise ConfigError(text, "subject")
    return record
