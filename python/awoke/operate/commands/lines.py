"""Commands and answers on a UNIX socket: one JSON object on one line.

An answer has one of the fields `done`; `error`, the reason why the command is wrong; or `failed`, the reason why it had
no effect.
"""

from __future__ import annotations

import reprlib
from typing import Any

import msgspec

from awoke.errors import ConfigError
from awoke.text.printable import harmless_json

TOPIC_MAX = 249
"""The most characters of a topic's name in Kafka."""
GROUP_MAX = 1_000
"""The most characters of a group's name in a command; Kafka has no bound."""
PARTITION_MAX = (1 << 31) - 1
OFFSETS_SHOWN_MAX = 20
"""The most offsets that an answer names."""


def encoded(answer: dict[str, Any]) -> bytes:
    """Returns an answer as one line."""
    return json_of(answer) + b"\n"


def json_of(document: Any) -> bytes:
    """Returns a document as JSON that is safe to print: other programs write the names and error texts in it."""
    return harmless_json(msgspec.json.encode(document).decode()).encode()


def decoded(request: bytes) -> dict[str, Any]:
    """Returns a command as a dictionary.

    Raises:
        ConfigError: The request is no JSON object.
    """
    try:
        found: dict[str, Any] = msgspec.json.decode(request, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"the command is no JSON object: {error}", "command") from None
    return found


def number_of(command: dict[str, Any], field: str, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """Returns a field of a command that must be a whole number.

    Raises:
        ConfigError: The field is no whole number from `least` to `most`.
    """
    value = command.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        text = f"{reprlib.repr(value)} is no {field}: it must be a whole number, at least {least} and at most {most}"
        raise ConfigError(text, field)
    return value


def place_of(command: dict[str, Any]) -> tuple[str, int]:
    """Returns the topic and the partition of a command.

    Raises:
        ConfigError: A field is missing or wrong.
    """
    topic = command.get("topic")
    if not isinstance(topic, str) or not 0 < len(topic) <= TOPIC_MAX:
        raise ConfigError(f"{reprlib.repr(topic)} is no topic", "topic")
    return topic, number_of(command, "partition", most=PARTITION_MAX)


def group_of(command: dict[str, Any]) -> str | None:
    """Returns the consumer group of a command, or None for all groups of the app.

    Raises:
        ConfigError: The field is no name.
    """
    group = command.get("group")
    if group is not None and (not isinstance(group, str) or not 0 < len(group) <= GROUP_MAX):
        raise ConfigError(f"{reprlib.repr(group)} is no consumer group", "group")
    return group


def offset_of(command: dict[str, Any]) -> int:
    """Returns the offset of a command.

    Raises:
        ConfigError: The field is missing or wrong.
    """
    return number_of(command, "offset")


def why_not_skipped(place: str, offset: int, blocking: list[int], where: str = "") -> str:
    """Returns the reason why a message was not skipped; `where` ends the sentence if no message fails."""
    if not blocking:
        return f"no message of {place} fails{where}"
    shown = ", ".join(str(each) for each in blocking[:OFFSETS_SHOWN_MAX]) + (
        "…" if blocking[OFFSETS_SHOWN_MAX:] else ""
    )
    word = "message at offset" if len(blocking) == 1 else "messages at offsets"
    return f"{place} is not held up at offset {offset}, but by the {word} {shown}"


def not_assigned(place: str, who: str) -> str:
    """Returns the reason why a command has no effect: the partition is assigned to another process, or to none."""
    return f"{who} {place}: ask the process of the group that holds it"
