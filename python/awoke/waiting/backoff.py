"""The delays between attempts: one value for routes, calls, background functions and the nodes of a swarm."""

from __future__ import annotations

import random

import msgspec

from awoke.errors import ConfigError
from awoke.preconditions import checks


class Backoff(msgspec.Struct, frozen=True):
    """Delays that grow from attempt to attempt, up to a maximum.

    Raises:
        ConfigError: A value is no number, or is out of its range.
    """

    first_s: float = 0.1
    """The delay after the first attempt that failed, in seconds."""
    maximum_s: float = 30.0
    """The longest delay, in seconds; at least `first_s`."""
    factor: float = 2.0
    """Each delay is this multiple of the one before it; at least 1."""
    jitter: float = 0.2
    """Each delay is shortened by a random part, up to this share (0 to 1), to spread attempts that failed together."""

    def __post_init__(self) -> None:
        numbers = (self.first_s, self.maximum_s, self.factor, self.jitter)
        is_valid = all(map(checks.is_number, numbers)) and self.factor >= 1 and 0 <= self.jitter <= 1
        if not is_valid or not 0 <= self.first_s <= self.maximum_s:
            text = f"0 <= first_s <= maximum_s, factor at least 1, jitter from 0 to 1; not {self!r}"
            raise ConfigError(f"Backoff: {text}", "backoff")

    def delay_s(self, attempt: int) -> float:
        """Returns the delay after this attempt (from 1) has failed, in seconds. Any thread; does not block."""
        try:
            grown_s = self.first_s * self.factor ** (attempt - 1)
        except OverflowError:  # After about a thousand attempts.
            grown_s = self.maximum_s
        return min(self.maximum_s, grown_s) * (1.0 - self.jitter * random.random())
