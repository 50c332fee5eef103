"""Routes of all topics whose names match a pattern, those that are created later, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from awoke.errors import ConfigError

INTERNAL = "__"
"""The names of Kafka's own topics begin so."""


class Pattern:
    """The topics whose whole name matches a regular expression of Python's: `@app.on(awoke.pattern(r"orders\\..*"))`.

    Kafka's own topics (`__…`) are left out, and those that the route itself writes to: its outputs and its dead letter
    topic.
    """

    __slots__ = ("_matches", "may_match_nothing", "regex")

    def __init__(self, regex: str, *, may_match_nothing: bool = False) -> None:
        if not isinstance(regex, str) or not regex:
            raise ConfigError(f"pattern: {regex!r} is no regular expression, as pattern(r'orders\\..*') has", "pattern")
        try:
            self._matches = re.compile(regex).fullmatch
        except re.error as error:
            text = f"pattern: {regex!r} is no regular expression: {error}; write one as in pattern(r'orders\\..*')"
            raise ConfigError(text, "pattern") from None
        self.regex = regex
        self.may_match_nothing = may_match_nothing

    def matches(self, topic: str) -> bool:
        """Tells whether a topic is one of the pattern's."""
        return self._matches(topic) is not None and not topic.startswith(INTERNAL)

    def prefixed(self, prefix: str) -> Pattern:
        """Returns the pattern of the same names behind a prefix."""
        return Pattern(f"{re.escape(prefix)}(?:{self.regex})", may_match_nothing=self.may_match_nothing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.regex == self.regex

    def __hash__(self) -> int:
        return hash(self.regex)

    def __repr__(self) -> str:
        return f"pattern({self.regex!r})"


def pattern(regex: str, *, may_match_nothing: bool = False) -> Pattern:
    """Returns a pattern for a route: all topics whose whole name matches a regular expression.

    An app does not start if no topic matches, unless `may_match_nothing=True`. A topic that is created while the
    app runs is noticed within `topic.metadata.refresh.interval.ms` (30 s), and at once if this process creates it by
    `awoke.Admin`.

    Raises:
        ConfigError: It is no regular expression.
    """
    return Pattern(regex, may_match_nothing=may_match_nothing)


class Matches:
    """The topics that patterns have matched. One thread at a time."""

    def __init__(self) -> None:
        self._of: dict[str, Pattern] = {}

    def new(
        self, topics: Iterable[str], patterns: Mapping[Pattern, Iterable[str]], is_taken: Callable[[str], bool]
    ) -> tuple[list[tuple[str, Pattern]], list[ConfigError]]:
        """Returns the topics that match one pattern and did not before, each with it, and an error for each of several.

        `patterns` maps each pattern to the topics that its route writes to. `is_taken` tells whether a topic has a
        route of its own.
        """
        found, refused = [], []
        for topic in sorted(set(topics)):
            matching = [each for each, out in patterns.items() if each.matches(topic) and topic not in out]
            if not matching or matching == [self._of.get(topic)]:
                continue
            has_own = topic not in self._of and is_taken(topic)
            if len(matching) > 1 or has_own:
                others = ["one of its own"] if has_own else []
                names = " and ".join([*others, *map(repr, matching)])
                text = f"topic {topic!r} has two routes: {names}; make the patterns exclude each other"
                refused.append(ConfigError(text, "pattern"))
                continue
            self._of[topic] = matching[0]
            found.append((topic, matching[0]))
        return found, refused

    def without(self, patterns: Iterable[Pattern]) -> list[Pattern]:
        """Returns the patterns that have matched no topic."""
        return [each for each in patterns if each not in self._of.values()]

    def __contains__(self, topic: str) -> bool:
        return topic in self._of
