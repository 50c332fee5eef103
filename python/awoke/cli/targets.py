"""The topics to which dead letters may be sent again.

A letter names its topic in a header, and any client that may write to the dead letter topic may forge it. So a topic is
known only if the operator or the app names it. Every other topic is foreign, and the operator is asked about it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from awoke import checks
from awoke.cli.letters import Letter
from awoke.cli.output import ask
from awoke.errors import AwokeError, ConfigError
from awoke.printable import printable

FOREIGN_MAX = 10
"""The most foreign topics that an operator is asked about. More are refused together."""
SHOWN_MAX = 10
"""The most topics that a summary names."""
TOPIC_BYTES_MAX = 249
"""The longest name of a topic."""


class Targets:
    """The target topics of one replay, and the origin of their names."""

    def __init__(self, to: str | None, app: str | None, granted: Collection[str]) -> None:
        self._to, self._app = to, app
        self._granted = frozenset(granted)
        self._is_read = (lambda topic: False) if app is None else reads_of(app)

    def of(self, letter: Letter) -> str:
        """Returns the topic that a letter is sent to."""
        return self._to or letter.origin.topic

    def is_foreign(self, topic: str) -> bool:
        """Returns whether only dead letters name a topic."""
        return topic not in (self._to, *self._granted) and not self._is_read(topic)

    def is_granted(self, letters: Sequence[Letter]) -> bool:
        """Returns whether the operator has named every target with `--yes-to`."""
        return {self.of(each) for each in letters} <= self._granted

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

    def confirmed(self, letters: Sequence[Letter]) -> list[Letter]:
        """Asks about each foreign topic; returns the letters whose topic is known or confirmed.

        Raises:
            ConfigError: There is no terminal to ask at, or there are too many foreign topics.
        """
        foreign = self.foreign(letters)
        if not foreign:
            return list(letters)
        if len(foreign) > FOREIGN_MAX or not sys.stdin.isatty():
            raise ConfigError(self._refusal(foreign), "--yes-to")
        refused = {topic for topic, count in foreign.most_common() if not ask(self._question(topic, count))}
        return [each for each in letters if self.of(each) not in refused]

    def foreign(self, letters: Sequence[Letter]) -> Counter[str]:
        """Returns the number of letters for each foreign topic."""
        return Counter(topic for topic in map(self.of, letters) if self.is_foreign(topic))

    def _who(self) -> str:
        return "only the letters name it" if self._app is None else f"no route of {self._app} reads it"

    def _question(self, topic: str, count: int) -> str:
        return f"Send {count} to {shortened(topic)}? It is a foreign topic: {self._who()}."

    def _refusal(self, foreign: Counter[str]) -> str:
        return (
            f"foreign topics: {summary(foreign)}; any client that may write dead letters can name them. "
            "Say --app MODULE:APP, whose routes' topics are known, --yes-to TOPIC for each, or --to TOPIC for all; "
            "or answer at a terminal"
        )


def reads_of(app: str) -> Callable[[str], bool]:
    """Returns what tells whether an app's routes read a topic, by its name or by a pattern."""
    from awoke.application import find_app  # Imported here, because other commands need no app.

    found = find_app(app)
    return lambda topic: topic in found.read_topics or any(each.matches(topic) for each in found.patterns)


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
