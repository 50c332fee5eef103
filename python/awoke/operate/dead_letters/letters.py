"""The dead letters of a topic, and the filter that selects some of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from awoke.errors import AwokeError, ConfigError
from awoke.text.printable import printable

if TYPE_CHECKING:
    from awoke._native import Message
    from awoke.payloads import dead_letter

UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

Place = tuple[int, int]
"""Partition and offset."""


class Letter(NamedTuple):
    """A dead letter, and its origin."""

    message: Message[bytes | None]
    origin: dead_letter.LetterOrigin

    @property
    def place(self) -> Place:
        """Partition and offset in the dead letter topic."""
        return self.message.partition, self.message.offset

    @property
    def error(self) -> str:
        """Type and text of the error."""
        return f"{self.origin.error_type}: {self.origin.error_text}"


class Filter(NamedTuple):
    """The dead letters that a command selects; a field that is `None` selects all."""

    from_ms: int | None = None
    """The time of the first failure that is selected."""
    to_ms: int | None = None
    """The time of the first failure that is not selected any more."""
    error: str | None = None
    handler: str | None = None
    key: str | None = None

    @classmethod
    def of(cls, begin: str | None, end: str | None, error: str | None, handler: str | None, key: str | None) -> Filter:
        """Returns the filter for these options.

        Raises:
            ConfigError: `--from` or `--to` is neither a time nor a duration.
        """
        now = datetime.now(UTC)
        from_ms = None if begin is None else moment_ms(begin, now, "--from")
        return cls(from_ms, None if end is None else moment_ms(end, now, "--to"), error, handler, key)

    @property
    def is_any(self) -> bool:
        """True if every dead letter is selected."""
        return all(each is None for each in self)

    def wants(self, letter: Letter) -> bool:
        """Returns whether a dead letter is selected."""
        origin = letter.origin
        return (
            (self.from_ms is None or origin.failed_at_ms >= self.from_ms)
            and (self.to_ms is None or origin.failed_at_ms < self.to_ms)
            and (self.error is None or self.error.lower() in letter.error.lower())
            and (self.handler is None or self.handler == origin.handler)
            and (self.key is None or (letter.message.key is not None and self.key in texts_of(letter.message.key)))
        )


def texts_of(key: bytes) -> tuple[str, str]:
    """Returns a key as it is, and as the commands show it."""
    return key.decode(errors="backslashreplace"), printable(key)


def moment_ms(word: str, now: datetime, option: str = "--from") -> int:
    """Returns a moment in milliseconds since 1970: `30m` is half an hour before `now`.

    Raises:
        ConfigError: The word is neither a time nor a duration.
    """
    match = re.fullmatch(r"(\d{1,9})([smhd])", word)
    try:
        if match is not None:
            moment = now - timedelta(seconds=int(match[1]) * UNITS_S[match[2]])
        else:
            moment = datetime.fromisoformat(word).astimezone()
    except (ValueError, OverflowError):
        text = f"{option} takes a time (2026-01-31T12:00) or how long ago (30m, 2h, 7d), not {word!r}"
        raise ConfigError(text, option) from None
    return int(moment.timestamp() * 1_000)


def letter_of(message: Message[Any]) -> Letter:
    """Returns a message as a dead letter.

    Raises:
        AwokeError: It is no dead letter.
    """
    from awoke.payloads import dead_letter

    origin = dead_letter.origin(message)
    if origin is None:
        at = f"{message.topic}[{message.partition}] offset {message.offset}"
        raise AwokeError(f"{at} is no dead letter: it has no header {dead_letter.TOPIC}")
    return Letter(message, origin)


def place_of(word: str) -> Place:
    """Returns partition and offset of a word such as `0:42`.

    Raises:
        ConfigError: The word has another form.
    """
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,18})", word)
    if match is None:
        raise ConfigError(f"a place is PARTITION:OFFSET, as in 0:42, not {word!r}", "place")
    return int(match[1]), int(match[2])
