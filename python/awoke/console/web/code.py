"""The routes of the app beside its console: the types that decode messages, and the topics that the app reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from awoke.console.explorer.parts import RouteDecoders
from awoke.declare.patterns import Pattern
from awoke.declare.routing import Route
from awoke.declare.secret_topics import SecretTopics, declared_by
from awoke.operate.dead_letters.letters import Letter
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import Format
from awoke.payloads.registry.schemas import NO_SCHEMAS, Schemas
from awoke.payloads.topic_formats import TopicFormats
from awoke.payloads.topics import Topic


class TopicDecoders(Mapping[str, RouteDecoders]):
    """The decoders of topics, by their names or by the patterns that match them. Its length is that of the names."""

    def __init__(self, by_name: Mapping[str, RouteDecoders], by_pattern: Iterable[tuple[Pattern, Route]]) -> None:
        self._by_name = by_name
        self._by_pattern = [(each, route) for each, route in by_pattern if decoders_of(route) is not None]

    def __getitem__(self, topic: str) -> RouteDecoders:
        if topic in self._by_name:
            return self._by_name[topic]
        for pattern, route in self._by_pattern:
            if pattern.matches(topic) and (found := decoders_of(route, topic)) is not None:
                return found
        raise KeyError(topic)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


class LetterTrial(Protocol):
    """The result of a dead letter that the app's present code has tried."""

    @property
    def is_handled(self) -> bool: ...
    @property
    def state(self) -> str: ...
    @property
    def attempts(self) -> int: ...
    @property
    def error(self) -> BaseException | None: ...
    @property
    def outputs(self) -> Sequence[Any]: ...


TryLetter = Callable[[Letter], LetterTrial]
"""Runs a dead letter through the app's code, and sends nothing. Blocks."""


class Code(NamedTuple):
    """The facts of an app's code that its console uses. A console of an app that is only named knows none."""

    decoders: Mapping[str, RouteDecoders] = {}
    """By topic. A dead letter topic has those of the route that writes to it."""
    read: frozenset[str] = frozenset()
    dead_letters: frozenset[str] = frozenset()
    patterns: Collection[Any] = ()
    try_letter: TryLetter | None = None
    secrets: SecretTopics | None = None
    """None of an app that is only named: the reports of its processes tell them."""
    formats: TopicFormats | None = None
    """What is sent to the app's topics has these formats."""

    @classmethod
    def of(cls, app: Any, try_letter: TryLetter | None = None) -> Code:
        """Returns the facts of an `awoke.App`. Opens nothing."""
        routes: list[tuple[str, Route]] = [pair for group in app.groups.values() for pair in group.routes.items()]
        by_pattern = [pair for group in app.groups.values() for pair in group.patterns.items()]
        all_routes = [route for _, route in (*routes, *by_pattern)]
        letters = [(str(route.dead_letter), route) for route in all_routes if route.dead_letter]
        outputs = [each for route in all_routes for each in route.outputs if isinstance(each, Topic)]
        secrets = declared_by(app)
        sent = {str(each): each for each in (*app.topics.typed, *outputs) if secrets.has(str(each))}
        hidden = [(name, decoders_of_sent(each)) for name, each in sent.items()]
        found = [(name, decoders_of(route)) for name, route in (*letters, *routes)]
        tables = {str(each.changelog): each.changelog for route in all_routes for each in route.tables}
        rows = [(name, decoders_of_rows(each, app.format, app.schemas)) for name, each in tables.items()]
        return cls(
            TopicDecoders(decoders_by_topic([*hidden, *rows, *found]), by_pattern),
            frozenset(map(str, app.read_topics)),
            frozenset(topic for topic, _ in letters),
            app.patterns,
            try_letter,
            secrets,
            app.topic_formats,
        )

    def reads(self, topic: str) -> bool:
        """Tells whether a route of the app reads a topic, by its name or by a pattern."""
        return topic in self.read or any(each.matches(topic) for each in self.patterns)

    def check_of(self, topic: str) -> Callable[[bytes], Any] | None:
        """Returns the function that reads values of a topic; None where the app has none, or it needs headers."""
        found = self.decoders.get(topic)
        if found is None or found.reads_headers or found.decode_value is None:
            return None
        decode = found.decode_value
        return lambda data: decode(data, ())


UNKNOWN = Code()
"""The code of an app that is only named."""


def decoders_by_topic(decoders: Iterable[tuple[str, RouteDecoders | None]]) -> dict[str, RouteDecoders]:
    """Returns the decoders of each topic: the last ones, or the last ones of types with secrets, if there are any."""
    known = [(topic, each) for topic, each in decoders if each is not None]
    return dict(sorted(known, key=lambda pair: bool(pair[1].key_secrets) + bool(pair[1].value_secrets)))


def decoders_of_sent(topic: Topic) -> RouteDecoders:
    """Returns the decoders of a topic whose types the app declares, and which it may only write."""
    return RouteDecoders.of((topic.value, topic.key), BY_TYPE, str(topic), NO_SCHEMAS)


def decoders_of_rows(changelog: Topic, default: Format, schemas: Schemas) -> RouteDecoders:
    """Returns the decoders of the rows of a table, or of a reference."""
    return RouteDecoders.of((changelog.value, changelog.key), default, str(changelog), schemas)


def decoders_of(route: Route, topic: str | None = None) -> RouteDecoders | None:
    """Returns the decoders of a route, for one of the topics of its pattern if it has one; None where it gets bytes."""
    found = RouteDecoders.of(route.types, route.default_format, topic or str(route.topic), route.schemas)
    return found if found.decode_value or found.decode_key else None
