"""The routes of one consumer group of an app."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from awoke.declare.patterns import Matches, Pattern
from awoke.declare.routing import Route
from awoke.errors import ConfigError

RouteOf = Callable[[str], Route]
"""Makes the route of a pattern for one of its topics."""


class GroupKey(NamedTuple):
    """Identifies a group of an app, when the name of the app's own group is not known yet."""

    said: str | None = None
    """The name that the routes say; None for the app's own group."""
    is_fixed: bool = False
    """True for routes with named partitions: no group assigns them, and offsets have a name of their own."""

    @classmethod
    def of(cls, route: Route) -> GroupKey:
        """Returns the key of the group that a route belongs to."""
        return cls(route.group, bool(route.partitions))

    def name(self, own: str) -> str:
        """Returns the name of the group; `own` is the name of the app's own group."""
        return f"{own}.partitions" if self.is_fixed else self.said or own


OWN = GroupKey()
FIXED = GroupKey(is_fixed=True)


class GroupRoutes:
    """The routes that one member reads. No method blocks."""

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.routes: dict[str, Route] = {}
        """The routes by topic. Those of a pattern are added when it matches a topic."""
        self.patterns: dict[Pattern, Route] = {}
        """The routes of patterns, which have no topic yet."""
        self._made_by: dict[Pattern, RouteOf] = {}
        self._matches = Matches()

    def check(self, topic: str | Pattern, route: Route) -> None:
        """Checks that a route can be added.

        Raises:
            ConfigError: The topic, or the pattern, has a route already; the route of a pattern names partitions.
        """
        earlier = self.patterns.get(topic) if isinstance(topic, Pattern) else self.routes.get(route.topic)
        if earlier is not None:
            group = "" if self.key.said is None else f" in group {self.key.said!r}"
            name = topic if isinstance(topic, Pattern) else route.topic
            text = "join their partitions=… in one" if self.key.is_fixed else "use awoke.Handlers, or another group=…"
            raise ConfigError(f"topic {name!r} has a route already{group}: {earlier.name}; {text}", "topic")
        if isinstance(topic, Pattern) and route.partitions:
            text = f"route {topic!r}: partitions=… names those of one topic, and a pattern may match several"
            raise ConfigError(text, "partitions")

    def add(self, topic: str | Pattern, route: Route, route_of: RouteOf) -> None:
        """Adds a route that was checked. For a pattern, `route_of` makes the route of each topic."""
        if isinstance(topic, Pattern):
            self.patterns[topic], self._made_by[topic] = route, route_of
        else:
            self.routes[route.topic] = route

    @property
    def all_routes(self) -> Sequence[Route]:
        """The routes of topics, and the route of each pattern, which has no topic yet."""
        return [*self.routes.values(), *self.patterns.values()]

    @property
    def subscribed(self) -> Sequence[str]:
        """The topics and patterns that its routes name; a part of the member's instance id."""
        named = (topic for topic in self.routes if topic not in self._matches)
        return [*named, *(each.regex for each in self.patterns)]

    def match(self, topics: Iterable[str]) -> tuple[list[Route], list[ConfigError]]:
        """Makes and adds a route for each topic that a pattern matches and that has no route.

        Returns the new routes, and an error for each topic that would have two routes; it gets none. To be called by
        one thread at a time.
        """
        written = {pattern: route.topics_out for pattern, route in self.patterns.items()}
        found = []
        new, refused = self._matches.new(topics, written, self.routes.__contains__)
        for topic, pattern in new:
            route = self.routes[topic] = self._made_by[pattern](topic)
            found.append(route)
        return found, refused

    def unmatched(self) -> list[Pattern]:
        """Returns the patterns that have matched no topic yet."""
        return self._matches.without(self.patterns)
