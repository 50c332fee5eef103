"""The routes of the app beside its console: the types that decode messages, and the topics that the app reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from awoke.codecs.formats import type_of
from awoke.console.explorer.parts import RouteDecoders
from awoke.masking import Masks
from awoke.routing import Route
from awoke.topics import Topic


class Code(NamedTuple):
    """The facts of an app's code that its console uses. A console of an app that is only named knows none."""

    decoders: Mapping[str, RouteDecoders] = {}
    """By topic. A dead letter topic has those of the route that writes to it."""
    read: frozenset[str] = frozenset()
    dead_letters: frozenset[str] = frozenset()
    patterns: Collection[Any] = ()
    masks: Mapping[str, Masks] = {}
    """The secret fields, by topic; those of all routes that write to a dead letter topic."""
    masks_by_pattern: Collection[tuple[Any, Masks]] = ()

    @classmethod
    def of(cls, app: Any) -> Code:
        """Returns the facts of an `awoke.App`. Opens nothing."""
        routes: list[tuple[str, Route]] = [pair for group in app.groups.values() for pair in group.routes.items()]
        by_pattern = [pair for group in app.groups.values() for pair in group.patterns.items()]
        made = {topic: decoders_of(route) for topic, route in routes}
        letters = {str(route.dead_letter): made[topic] for topic, route in routes if route.dead_letter}
        outputs = [each for _, route in [*routes, *by_pattern] for each in route.outputs if isinstance(each, Topic)]
        masks = {
            str(each): Masks.of(type_of(each.value), type_of(each.key)) for each in (*app.topics.values(), *outputs)
        }
        for topic, route in [*routes, *by_pattern]:
            for name in {str(topic), str(route.dead_letter or topic)}:
                masks[name] = masks.get(name, Masks()) | route.masks
        return cls(
            {topic: each for topic, each in {**letters, **made}.items() if each is not None},
            frozenset(map(str, app.read_topics)),
            frozenset(letters),
            app.patterns,
            {topic: each for topic, each in masks.items() if each},
            [(pattern, route.masks) for pattern, route in by_pattern if route.masks],
        )

    def reads(self, topic: str) -> bool:
        """Tells whether a route of the app reads a topic, by its name or by a pattern."""
        return topic in self.read or any(each.matches(topic) for each in self.patterns)

    def masks_of(self, topic: str) -> Masks:
        """Returns the secret fields of a topic, by its name or by a pattern."""
        found = self.masks.get(topic, Masks())
        for pattern, each in self.masks_by_pattern:
            if pattern.matches(topic):
                found |= each
        return found

    def check_of(self, topic: str) -> Callable[[bytes], Any] | None:
        """Returns the function that reads values of a topic; None where the app has none, or it needs headers."""
        found = self.decoders.get(topic)
        return None if found is None or found.decoding.with_headers else found.decoding.value


UNKNOWN = Code()
"""The code of an app that is only named."""


def decoders_of(route: Route) -> RouteDecoders | None:
    """Returns the decoders of a route; None where it gets bytes."""
    decoding = route.decoding
    return None if decoding.value is None and decoding.key is None else RouteDecoders.of(route.types, decoding)
