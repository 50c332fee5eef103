"""Asks the operator about the foreign topics of a replay: those that only dead letters name."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from awoke.cli.output import ask
from awoke.errors import ConfigError
from awoke.operate.dead_letters.letters import Letter
from awoke.operate.dead_letters.targets import ReplayTargets, shortened, summary

FOREIGN_MAX = 10
"""The most foreign topics that an operator is asked about. More are refused together."""


class Targets(ReplayTargets):
    """The target topics of one replay, and the questions about them."""

    def __init__(self, to: str | None, app: str | None, granted: Collection[str]) -> None:
        super().__init__(to, (lambda topic: False) if app is None else reads_of(app), granted)
        self._app = app

    def is_granted(self, letters: Sequence[Letter]) -> bool:
        """Returns whether the operator has named every target with `--yes-to`."""
        return {self.of(each) for each in letters} <= self._granted

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
    from awoke.app.application import find_app  # Imported here, because other commands need no app.

    found = find_app(app)
    return lambda topic: topic in found.read_topics or any(each.matches(topic) for each in found.patterns)
