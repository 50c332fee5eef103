"""The topics to which dead letters may be sent again.

A letter names its topic in a header, and any client that may write to the dead letter topic may forge it. So a topic is
known only if the operator or the app names it. Every other topic is foreign: an operator has to name it first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from awoke.errors import AwokeError
from awoke.operate.dead_letters.letters import Letter
from awoke.preconditions import checks
from awoke.text.printable import printable

SHOWN_MAX = 10
"""The most topics that a summary names."""
TOPIC_BYTES_MAX = 249
"""The longest name of a topic."""


class ReplayTargets:
    """The target topics of one replay, and the origin of their names. `is_read` tells the topics that the app reads."""

    def __init__(self, to: str | None, is_read: Callable[[str], bool], granted: Collection[str] = ()) -> None:
        self._to, self._is_read = to, is_read
        self._granted = frozenset(granted)

    def of(self, letter: Letter) -> str:
        """Returns the topic that a letter is sent to."""
        return self._to or letter.origin.topic

    def is_foreign(self, topic: str) -> bool:
        """Returns whether only dead letters name a topic."""
        return topic not in (self._to, *self._granted) and not self._is_read(topic)

    def check(self, letter: Letter) -> None:
        """Checks that a letter can be sent again unchanged.

        Raises:
            AwokeError: The letter has no value: it was too large.
            ConfigError: Its topic is no valid name.
        """
        origin = letter.origin
        if origin.value_bytes is not None:
            at = f"{shortened(origin.topic)}[{origin.partition}] offset {origin.offset}"
            raise AwokeError(
                f"the letter has no value: it was too large, and lies at {at} ({origin.value_bytes} bytes)"
            )
        checks.topic("the letter", "topic", self.of(letter)[: TOPIC_BYTES_MAX + 1])

    def foreign(self, letters: Iterable[Letter]) -> Counter[str]:
        """Returns the number of letters for each foreign topic."""
        return Counter(topic for topic in map(self.of, letters) if self.is_foreign(topic))


def summary(counts: Counter[str]) -> str:
    """Returns the number of messages for each topic as text; of many topics only the most frequent ones."""
    named = sorted(counts.most_common(SHOWN_MAX))
    said = ", ".join(f"{count} to {shortened(topic)}" for topic, count in named) or "none"
    rest = len(counts) - len(named)
    return f"{said}, and others to {rest} topics more" if rest else said


def shortened(topic: str) -> str:
    """Returns the name of a topic, harmless and shortened: a forged one may have any length."""
    name = printable(topic[: TOPIC_BYTES_MAX + 1])
    return name if len(topic) <= TOPIC_BYTES_MAX else f"{name}…"
