"""The routes of the app beside its console: the types that decode messages, and the topics that the app reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, Union

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
        letters = [(str(route.dead_letter), route) for _, route in routes if route.dead_letter]
        return cls(
            decoders_by_topic([*letters, *routes]),
            frozenset(map(str, app.read_topics)),
            frozenset(topic for topic, _ in letters),
            app.patterns,
        )

    def reads(self, topic: str) -> bool:
        """Tells whether a route of the app reads a topic, by its name or by a pattern."""
        return topic in self.read or any(each.matches(topic) for each in self.patterns)

    def has_secrets(self, topic: str) -> bool:
        """Tells whether keys or values of a topic have fields that are marked as secret."""
        found = self.decoders.get(topic)
        return found is not None and bool(found.secret)

    def check_of(self, topic: str) -> Callable[[bytes], Any] | None:
        """Returns the function that reads values of a topic; None where the app has none, or it needs headers."""
        found = self.decoders.get(topic)
        return None if found is None or found.decoding.with_headers else found.decoding.value


UNKNOWN = Code()
"""The code of an app that is only named."""


def decoders_by_topic(routes: Iterable[tuple[str, Route]]) -> dict[str, RouteDecoders]:
    """Returns the decoders of each topic. The last route of a topic decodes it; the secret fields of all are masked."""
    found: dict[str, RouteDecoders] = {}
    for topic, route in routes:
        made, before = decoders_of(route), found.get(topic)
        if made is not None and before is not None:
            both = {
                part: Union[kind, made.secret.get(part, kind)]  # noqa: UP007
                for part, kind in before.secret.items()
            }
            made = made._replace(secret={**made.secret, **both})
        if made is not None:
            found[topic] = made
    return found


def decoders_of(route: Route) -> RouteDecoders | None:
    """Returns the decoders of a route; None where it gets bytes, none of them secret."""
    found = RouteDecoders.of(route.types, route.decoding)
    return found if found.decoding.value or found.decoding.key or found.secret else None
