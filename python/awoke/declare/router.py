"""Declares routes: by an app itself, or by a router that an app includes, so that an app grows in modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, Unpack, cast

import msgspec

from awoke.declare import handlers
from awoke.declare.choosing import Handlers
from awoke.declare.consumer import Consumer
from awoke.declare.incoming import Incoming, check_incoming
from awoke.declare.patterns import Pattern
from awoke.declare.route_options import KindOptions, RouteOptions
from awoke.declare.routing import HandlerNotes, Route
from awoke.errors import ConfigError
from awoke.payloads.formats.format import Format
from awoke.payloads.registry.schemas import NO_SCHEMAS, Schemas
from awoke.payloads.topics import Topic

Function = TypeVar("Function", bound=Callable[..., Any])
Middle = TypeVar("Middle", bound=Incoming)
Class = TypeVar("Class", bound=type[Consumer])


class Declared(NamedTuple):
    """A route as it was declared."""

    topic: str | Pattern
    target: Callable[..., Any] | type[Consumer] | Handlers
    options: RouteOptions
    own: KindOptions
    notes: HandlerNotes = HandlerNotes()

    @property
    def place(self) -> tuple[str | Pattern, str | None, bool]:
        """The topic, its group, and whether the route names partitions: each has one route."""
        return self.topic, self.options.get("group"), bool(self.options.get("partitions"))

    def route(
        self, default: Format, schemas: Schemas = NO_SCHEMAS, topic: str | None = None, app: str = "app"
    ) -> Route:
        """Makes the route, for an app with this name and default format; that of a pattern for one of its topics.

        Raises:
            ConfigError: An option is wrong, or the handler can't be called.
        """
        name = topic or (ANY if isinstance(self.topic, Pattern) else self.topic)
        return Route(
            name, self.target, self.options, self.own, notes=self.notes, default=default, schemas=schemas, app=app
        )

    def read(self, route: Route) -> Declared:
        """Returns it with what the route has read of its handler's annotations, which needs no frame any more."""
        value, key = route.types
        options = cast("RouteOptions", {**self.options, "value": value, "key": key})
        notes = self.notes._replace(around=None, parameters=route.parameters, result_type=route.result_type)
        return self._replace(options=options, notes=notes)

    def within(self, incoming: Iterable[Incoming]) -> Declared:
        """Returns it with the middleware of a router around what it has."""
        return self._replace(notes=self.notes._replace(incoming=(*incoming, *self.notes.incoming)))

    def prefixed(self, prefix: str) -> Declared:
        """Returns the route with a prefix before the names of its topics: its own, output, dead letter topic."""
        if not prefix:
            return self
        dead_letter, output = self.options.get("dead_letter"), self.own.output
        options = cast("RouteOptions", {**self.options, "dead_letter": dead_letter and prefix_of(dead_letter, prefix)})
        if output is not None:
            output = (
                prefix_of(output, prefix) if isinstance(output, str) else [prefix_of(each, prefix) for each in output]
            )
        own = msgspec.structs.replace(self.own, output=output)
        topic = self.topic.prefixed(prefix) if isinstance(self.topic, Pattern) else prefix_of(self.topic, prefix)
        return self._replace(topic=topic, options=options, own=own)


ANY = "any-topic-of-a-pattern"
"""The name under which the route of a pattern is checked, before a topic matches."""


UNKNOWN = Format()
"""Stands for the default format of an app that will include a router, which decides which types it takes. It is never
used, because no route of a router runs."""


class Router:
    """Routes of one module of an app, which includes them: `app.include(router)`. An `awoke.App` is one, too.

    `prefix` comes before the names of all topics that its routes name: their own, outputs, dead letter topics. What
    handlers send by themselves is not changed.
    """

    _called: ClassVar[str] = "router"
    """The name of the object in the texts of errors."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._declared: list[Declared] = []
        self._is_included = False
        self._incoming: list[Incoming] = []
        self._incoming_batches: list[Incoming] = []

    def incoming(self, function: Middle) -> Middle:
        """Calls the decorated function around each message of all functions (`on`): around decoding and handler.

        It takes the message and the function that goes on with it, `call_next(message)`, and returns the result of
        `call_next`, or another result. Without that call the message counts as done, and its handler is not called. An
        exception is the message's failure. The first function is outermost; those of an app are around those of a
        router, and these around those of the route (`incoming=[…]`).

        An `async def` function serves both kinds of handlers: around a `def` it may await `call_next` only. A `def`
        function serves `def` handlers.

        Raises:
            ConfigError: It does not take two arguments, or a route does not suit it.
        """
        self._add_incoming(function, self._incoming, f"@{self._called}.incoming", is_batch=False)
        return function

    def incoming_batch(self, function: Middle) -> Middle:
        """As `incoming`, around each call of `consume` of all classes (`consumer`); it takes the batch.

        Raises:
            ConfigError: As `incoming`.
        """
        self._add_incoming(function, self._incoming_batches, f"@{self._called}.incoming_batch", is_batch=True)
        return function

    def _add_incoming(self, function: Incoming, to: list[Incoming], where: str, *, is_batch: bool) -> None:
        check_incoming(function, where)
        if self._is_included:
            raise ConfigError(f"{where}: the router was included before; decorate it earlier", "router")
        for route in self._known():
            if (route.consumer is not None) is is_batch:
                route.check_incoming(function)
        to.append(function)

    def _known(self) -> list[Route]:
        """Returns the routes that there are."""
        return [each.route(UNKNOWN) for each in self._declared]

    def on(
        self,
        topic: str | Pattern | Sequence[str | Pattern],
        *,
        output: str | Sequence[str] | None = None,
        ordered: bool = False,
        forward_headers: bool | Collection[str] = False,
        **options: Unpack[RouteOptions],
    ) -> Callable[[Function], Function]:
        """Calls the decorated function, `def` or `async def`, once for each message of a topic, or of several.

        `awoke.pattern` is all topics whose names match.

        With `output`, what the function returns is sent to that topic, under the message's key, and acknowledged
        before the message counts as done. An `awoke.Record`, or a list of them, is sent as it is; an `awoke.Outgoing`
        names a topic of its own. All that a generator yields is sent when it has ended. Of several topics in `output`,
        which are looked up at the start, the first is for results that name none. With `forward_headers` results carry
        on the message's headers: all (True), or those of these names. Where several messages of a partition are
        worked on at once (`concurrency`), results are sent as they come, or, with `ordered`, in the order of the
        messages. With `exactly_once`, results, dead letters and offsets are one transaction. The other options are
        those of `awoke.declare.route_options.RouteOptions`.

        The function's other parameters get what their annotations say: see `awoke.declare.injection`. Instead of a
        function, `awoke.Handlers` are several, of which each message goes to one.

        Raises:
            ConfigError: the topic has a route already; a wrong option; the function can't be called with one
                message, is a generator without an `output`, or its annotation `Message[...]` contradicts `value`.
        """
        handlers.check_topic(topic, f"@{self._called}.on")

        def decorate(function: Function) -> Function:
            if isinstance(function, type):
                handlers.check_function(function, f"route {topic!r}: {function.__qualname__}")
            around = sys._getframe(1)  # An annotation may name a class of the function around the handler.
            own = KindOptions(output=output, ordered=ordered, forward_headers=forward_headers)
            for each in topics_of(topic):
                self._declare(Declared(each, function, options, own, HandlerNotes(around)))
            return function

        return decorate

    def consumer(
        self,
        topic: str | Pattern | Sequence[str | Pattern],
        *,
        offsets: Literal["auto", "manual"] = "auto",
        tick_every_s: float | None = None,
        own_thread: bool = False,
        **options: Unpack[RouteOptions],
    ) -> Callable[[Class], Class]:
        """Makes one instance of the decorated class for each partition of these topics that is assigned.

        `awoke.pattern` is all topics whose names match.

        With `offsets="manual"` only `mark` moves the offset. With `tick_every_s`, `tick` is called about that often,
        between batches. With `own_thread`, `__init__`, all hooks and `consume` of an instance run on one thread, which
        belongs to its assignment: for connections that only the thread which opened them may use. The other
        options are those of `awoke.declare.route_options.RouteOptions`.

        Raises:
            ConfigError: the topic has a route already; the class does not derive from `awoke.Consumer`; a wrong option;
                there is no `consume`, a method can't be called or would not run, or `Batch[...]` contradicts `value`.
        """
        handlers.check_topic(topic, f"@{self._called}.consumer")

        def decorate(target: Class) -> Class:
            if not (isinstance(target, type) and issubclass(target, Consumer)):
                raise ConfigError(f"{target!r} must be a class that derives from awoke.Consumer", "consumer")
            own = KindOptions(offsets=offsets, tick_every_s=tick_every_s, own_thread=own_thread)
            around = sys._getframe(1)
            for each in topics_of(topic):
                self._declare(Declared(each, target, options, own, HandlerNotes(around)))
            return target

        return decorate

    def include(self, router: Router, *, prefix: str = "") -> None:
        """Includes the routes of a router, with one more prefix before the names of their topics.

        Include it when it has all of its routes. A router may be included in several apps, and in another router.

        Raises:
            ConfigError: A topic has a route already; it is an app, or this router itself.
        """
        if type(router) is not Router or router is self:
            raise ConfigError(f"{self._called}.include takes another awoke.Router, not {router!r}", "router")
        if not isinstance(prefix, str):
            raise ConfigError(f"{self._called}.include: prefix is a text, as in prefix='eu.', not {prefix!r}", "prefix")
        router._is_included = True
        for each in router._declared:
            around = router._incoming_batches if isinstance(each.target, type) else router._incoming
            included = each.prefixed(prefix + router._prefix)
            self._declare(included.within(around))

    def _check_incoming(self, route: Route) -> None:
        for each in self._incoming if route.consumer is None else self._incoming_batches:
            route.check_incoming(each)

    def _declare(self, declared: Declared) -> None:
        """Takes a route. Checks it at once, so that an error comes where it is written."""
        if self._is_included:
            text = f"topic {declared.topic!r}: its router was included before; declare all routes first"
            raise ConfigError(text, "router")
        route = declared.route(UNKNOWN)
        self._check_incoming(route)
        if declared.place in [each.place for each in self._declared]:
            raise ConfigError(f"topic {declared.topic!r} has a route already in this router", "topic")
        self._declared.append(declared.read(route))


def topics_of(topic: str | Pattern | Sequence[str | Pattern]) -> Sequence[str | Pattern]:
    """Returns the topics that a decorator names.

    Raises:
        ConfigError: It names none, or one twice.
    """
    if isinstance(topic, str | Pattern):
        return [topic]
    topics = list(topic)
    if not topics or len(set(topics)) < len(topics):
        raise ConfigError(f"a route needs at least one topic, and each once, not {topics!r}", "topic")
    return topics


def prefix_of(topic: str, prefix: str) -> str:
    """Returns a topic with a prefix before its name; its types stay."""
    if isinstance(topic, Topic):
        return topic.prefixed(prefix)
    return prefix + topic


def surround(router: Router, each_message: Incoming, each_batch: Incoming) -> Callable[[], None]:
    """Puts middleware around all other of a router, as a test does; returns the function that takes it away."""
    router._incoming.insert(0, each_message)
    router._incoming_batches.insert(0, each_batch)

    def take_away() -> None:
        router._incoming.remove(each_message)
        router._incoming_batches.remove(each_batch)

    return take_away
