"""The topics that one app declares: by `app.topic`, and by the routes that name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from awoke.errors import ConfigError
from awoke.payloads.topics import Topic


class DeclaredTopics(Mapping[str, Topic]):
    """The declared topics of an app by name, in the order in which they were declared."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self.typed: list[Topic] = []
        """All that were added with types, also those whose state on the cluster is not declared."""

    def __getitem__(self, name: str) -> Topic:
        return self._topics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def __repr__(self) -> str:
        return repr(self._topics)

    def add(self, topic: str | None) -> None:
        """Adds a topic, if it is declared. One that is declared alike a second time changes nothing.

        Raises:
            ConfigError: It is declared already, and differently.
        """
        if not isinstance(topic, Topic):
            return
        if topic.value is not None or topic.key is not None:
            self.typed.append(topic)
        if topic.declaration is None:
            return
        known = self._topics.setdefault(str(topic), topic)
        first, second = known.declaration, topic.declaration
        if first is None or first == second:
            return
        parts = [
            f"{name} {one if one is not None else 'not given'} and {two if two is not None else 'not given'}"
            for name, one, two in zip(first._fields, first, second, strict=True)
            if one != two
        ]
        text = f"topic {str(topic)!r} is declared twice, and differently: {', '.join(parts)}"
        raise ConfigError(f"{text}; declare it once, and use that object everywhere", "topic")
