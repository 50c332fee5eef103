"""Commands as they come over a UNIX socket, one JSON object a line, and their answers.

An answer has `done`, or `error` (the command is wrong) or `failed` (it had no effect), with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from awoke.errors import AwokeError, ConfigError

if TYPE_CHECKING:
    from awoke.app import App


def encoded(answer: dict[str, Any]) -> bytes:
    """Returns an answer as it is sent."""
    return msgspec.json.encode(answer) + b"\n"


def place_of(command: dict[str, Any]) -> tuple[str, int]:
    """Returns the topic and the partition that a command names.

    Raises:
        ConfigError: it names none.
    """
    topic, partition = command.get("topic"), command.get("partition")
    if not isinstance(topic, str) or not topic:
        raise ConfigError(f"{topic!r} is no topic", "topic")
    if not isinstance(partition, int) or isinstance(partition, bool) or partition < 0:
        raise ConfigError(f"{partition!r} is no partition: they are numbered from 0", "partition")
    return topic, partition


def resumed(app: App, topic: str, partition: int) -> bool:
    """Resumes a partition of an app in this process; returns false when it was neither paused nor stuck."""
    try:
        return app.resume(topic, partition)
    except AwokeError:
        return False  # The partition is taken away, or the app stops: nothing is left to resume here.
