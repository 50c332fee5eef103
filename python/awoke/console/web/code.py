"""The routes of the app beside its console: the types that decode messages, and the topics that the app reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from awoke.console.explorer.parts import RouteDecoders
from awoke.routing import Route


class Code(NamedTuple):
    """The facts of an app's code that its console uses. A console of an app that is only named knows none."""

    decoders: Mapping[str, RouteDecoders] = {}
    """By topic. A dead letter topic has those of the route that writes to it."""
    read: frozenset[str] = frozenset()
    dead_letters: frozenset[str] = frozenset()
    patterns: Collection[Any] = ()

    @classmethod
    def of(cls, app: Any) -> Code:
        """Returns the facts of an `awoke.App`. Opens nothing."""
        routes: list[tuple[str, Route]] = [pair for group in app.groups.values() for pair in group.routes.items()]
        made = {topic: decoders_of(route) for topic, route in routes}
        letters = {str(route.dead_letter): made[topic] for topic, route in routes if route.dead_letter}
        return cls(
            {topic: each for topic, each in {**letters, **made}.items() if each is not None},
            frozenset(map(str, app.read_topics)),
            frozenset(letters),
            app.patterns,
        )

    def reads(self, topic: str) -> bool:
        """Tells whether a route of the app reads a topic, by its name or by a pattern."""
        return topic in self.read or any(each.matches(topic) for each in self.patterns)

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
