"""Schemas, as a registry keeps them: their ids and references, and the subjects under which they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from awoke.errors import ConfigError

AVRO = "AVRO"
UNKNOWN_ID = -1

Part = Literal["key", "value"]
"""The part of a message that a schema describes."""
SubjectName = Callable[[str, Part, str | None], str]
"""Returns the subject for a topic, a part, and the full name of the record (None when the schema has none)."""


class Reference(NamedTuple):
    """A reference of one schema to another, which is a version of a subject."""

    name: str
    """The name by which the schema refers to it: an Avro record, a JSON address, or a Protobuf file."""
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema; hashable."""

    text: str
    """The schema in its own language: JSON for Avro and JSON Schema, a `.proto` file for Protobuf."""
    kind: str = AVRO
    """The language: `AVRO`, `JSON` or `PROTOBUF`."""
    references: tuple[Reference, ...] = ()


class RegisteredSchema(NamedTuple):
    """A schema that a registry has; hashable."""

    schema: Schema
    id: int
    """The number in the wire format; -1 when the registry does not tell, because it was asked by GUID."""
    guid: str | None = None
    """The GUID in the wire format; None when the registry does not have GUIDs, or does not tell."""
    subject: str | None = None
    """None when the registry was asked by id or by GUID: a schema may be in several subjects."""
    version: int | None = None
    """The version in `subject`, from 1; None as `subject`."""


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
