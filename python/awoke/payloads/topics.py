"""Topics that know the types of their keys and values, so that all who send to them or read them encode alike.

They may also declare how the topic shall be on its cluster (`awoke topics apply`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from awoke.errors import ConfigError
from awoke.payloads.declared_topics.declaration import Declaration, declaration_of
from awoke.preconditions import checks
from awoke.settings.config_values import ConfigValue


class Topic(str):
    """The name of a topic, with the types of its keys and values; it is used wherever a topic's name is.

    `value` and `key` are types or formats (`awoke.avro(Order)`), as in the options of a route. None: a route says it,
    and what is sent is encoded by its own type. `partitions`, `replication` and `config` declare the topic: an app
    compares them with its cluster at start, and `awoke topics apply` makes them so.
    """

    value: Any
    key: Any
    declaration: Declaration | None
    """The topic as it shall be on its cluster; None if that is not declared."""

    def __new__(
        cls,
        name: str,
        *,
        value: Any = None,
        key: Any = None,
        partitions: int | None = None,
        replication: int | None = None,
        config: Mapping[str, ConfigValue] | None = None,
    ) -> Self:
        if not isinstance(name, str) or not name:
            raise ConfigError(f"a topic needs a name, not {name!r}", "topic")
        checks.topic("a topic", "topic", name)
        self = super().__new__(cls, name)
        self.value, self.key = value, key
        self.declaration = declaration_of(name, partitions, replication, config)
        return self

    @property
    def partitions(self) -> int | None:
        """The declared number of partitions; None if the brokers choose."""
        return None if self.declaration is None else self.declaration.partitions

    @property
    def replication(self) -> int | None:
        """The declared number of replicas of each partition; None if the brokers choose."""
        return None if self.declaration is None else self.declaration.replication

    @property
    def config(self) -> Mapping[str, str] | None:
        """The declared settings, as Kafka writes them; None if nothing is declared."""
        return None if self.declaration is None else self.declaration.config

    def prefixed(self, prefix: str) -> Self:
        """Returns the topic with a prefix before its name, with the same types and the same declaration."""
        return type(self)(prefix + str(self), **self._options())

    def _options(self) -> dict[str, Any]:
        declared = {} if self.declaration is None else self.declaration._asdict()
        return {"value": self.value, "key": self.key, **declared}

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (str(self),), self._options()


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
