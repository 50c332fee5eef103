"""Decides to which topics dead letters may be sent again.

A letter names its topic in a header, and anybody who may write to the dead letter topic may forge it. So a topic counts as
known only if the operator or the app names it. Every other one is foreign, and the operator is asked about it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Sequence

from awoke import checks
from awoke.cli.letters import Letter
from awoke.cli.output import ask
from awoke.errors import AwokeError, ConfigError
from awoke.printable import printable

FOREIGN_MAX = 10
"""The most foreign topics that an operator is asked about; more are refused together."""
SHOWN_MAX = 10
"""The most topics that a summary names."""
TOPIC_BYTES_MAX = 249
"""The longest name of a topic."""


class Targets:
    """The topics of one replay: where each letter goes, and who has named that topic."""

    def __init__(self, to: str | None, app: str | None, granted: Collection[str]) -> None:
        self._to, self._app = to, app
        self._granted = frozenset(granted)
        self._routes = frozenset() if app is None else routes_of(app)

    def of(self, letter: Letter) -> str:
        """Returns the topic that a letter is sent to."""
        return self._to or letter.origin.topic

    def is_foreign(self, topic: str) -> bool:
        """Tells whether a topic is named by nothing but dead letters."""
        return topic not in (self._to, *self._granted) and topic not in self._routes

    def is_granted(self, letters: Sequence[Letter]) -> bool:
        """Tells whether the operator has named every target as one that needs no question."""
        return {self.of(each) for each in letters} <= self._granted

    def check(self, letter: Letter) -> None:
        """Refuses a letter that can't be sent again as it was.

        Raises:
            AwokeError: it was sent without its value; ConfigError: it names no topic.
        """
        origin = letter.origin
        if origin.value_bytes is not None:
            at = f"{shortened(origin.topic)}[{origin.partition}] offset {origin.offset}"
            raise AwokeError(
                f"the letter has no value: it was too large, and lies at {at} ({origin.value_bytes} bytes)"
            )
        checks.topic("the letter", "topic", self.of(letter)[: TOPIC_BYTES_MAX + 1])

    def confirmed(self, letters: Sequence[Letter]) -> list[Letter]:
        """Asks about each foreign topic; returns the letters without those that are not to be sent.

        Raises:
            ConfigError: there is no terminal to ask at, or there are too many foreign topics.
        """
        foreign = self.foreign(letters)
        if not foreign:
            return list(letters)
        if len(foreign) > FOREIGN_MAX or not sys.stdin.isatty():
            raise ConfigError(self._refusal(foreign), "--yes-to")
        refused = {topic for topic, count in foreign.most_common() if not ask(self._question(topic, count))}
        return [each for each in letters if self.of(each) not in refused]

    def foreign(self, letters: Sequence[Letter]) -> Counter[str]:
        """Returns how many letters go to each foreign topic."""
        return Counter(topic for topic in map(self.of, letters) if self.is_foreign(topic))

    def _who(self) -> str:
        return "only the letters name it" if self._app is None else f"no route of {self._app} reads it"

    def _question(self, topic: str, count: int) -> str:
        return f"Send {count} to {shortened(topic)}? It is a foreign topic: {self._who()}."

    def _refusal(self, foreign: Counter[str]) -> str:
        return (
            f"foreign topics: {summary(foreign)}; anybody who may write dead letters can name them. "
            "Say --app MODULE:APP, whose routes' topics are known, --yes-to TOPIC for each, or --to TOPIC for all; "
            "or answer at a terminal"
        )


def routes_of(app: str) -> frozenset[str]:
    """Returns the topics that an app's routes read."""
    from awoke.application import find_app  # Here: other commands need no app.

    return frozenset(find_app(app).routes)


def summary(counts: Counter[str]) -> str:
    """Returns how many messages go to each topic; of many topics the first ones."""
    named = sorted(counts.most_common(SHOWN_MAX))
    said = ", ".join(f"{count} to {shortened(topic)}" for topic, count in named) or "none"
    rest = len(counts) - len(named)
    return f"{said}, and others to {rest} topics more" if rest else said


def shortened(topic: str) -> str:
    """Returns the name of a topic as it is shown; a forged one may be of any length."""
    name = printable(topic[: TOPIC_BYTES_MAX + 1])
    return name if len(topic) <= TOPIC_BYTES_MAX else f"{name}…"
