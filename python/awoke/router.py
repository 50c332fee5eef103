"""Declares routes: by an app itself, or by a router that an app includes, so that an app grows in modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, Unpack, cast

import msgspec

from awoke import handlers
from awoke.codecs.codec import Codec, Decoder
from awoke.codecs.formats import Coding
from awoke.consumer import Consumer
from awoke.errors import ConfigError
from awoke.routing import KindOptions, Route, RouteOptions
from awoke.topics import Topic

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type[Consumer])


class Declared(NamedTuple):
    """A route as it was declared."""

    topic: str
    target: Callable[..., Any] | type[Consumer]
    options: RouteOptions
    own: KindOptions
    around: FrameType | None = None
    """The frame in which the handler was defined; None if its annotation was read already."""

    def route(self, coding: Coding) -> Route:
        """Makes the route, with what encodes and decodes for its app.

        Raises:
            ConfigError: An option is wrong, or the handler can't be called.
        """
        return Route(self.topic, self.target, self.options, self.own, around=self.around, coding=coding)

    def with_types(self, value: Any, key: Any) -> Declared:
        """Returns the route with the types that its annotation says, which needs no frame any more."""
        options = cast("RouteOptions", {**self.options, "value": value, "key": key})
        return self._replace(options=options, around=None)

    def prefixed(self, prefix: str) -> Declared:
        """Returns the route with a prefix before the names of its topics: its own, output, dead letter topic."""
        if not prefix:
            return self
        dead_letter, output = self.options.get("dead_letter"), self.own.output
        options = cast("RouteOptions", {**self.options, "dead_letter": dead_letter and prefix_of(dead_letter, prefix)})
        own = msgspec.structs.replace(self.own, output=output and prefix_of(output, prefix))
        return self._replace(topic=prefix_of(self.topic, prefix), options=options, own=own)


class UnknownCodec(Codec):
    """Stands for the codec of an app that will include a router: that one decides which types it takes."""

    def encode(self, value: Any) -> bytes:
        """Raises NotImplementedError: no route of a router runs."""
        raise NotImplementedError

    def decoder(self, value_type: Any) -> Decoder:
        """Returns a function that is never called."""
        return self.encode


UNKNOWN = UnknownCodec()


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

    def on(
        self,
        topic: str | Sequence[str],
        *,
        output: str | None = None,
        ordered: bool = False,
        forward_headers: bool | Collection[str] = False,
        **options: Unpack[RouteOptions],
    ) -> Callable[[Function], Function]:
        """Calls the decorated function, `def` or `async def`, once for each message of a topic, or of several.

        With `output`, what the function returns is sent to that topic, under the message's key, and acknowledged
        before the message counts as done. An `awoke.Record`, or a list of them, is sent as it is. With
        `forward_headers` results carry on the message's headers: all (True), or those of these names. Where
        several messages of a partition are worked on at once (`concurrency`), results are sent as they come, or,
        with `ordered`, in the order of the messages. With `exactly_once`, results, dead letters and offsets are
        one transaction. The other options are those of `awoke.routing.RouteOptions`.

        Raises:
            ConfigError: the topic has a route already; a wrong option; the function can't be called with one
            message, is a generator, or its annotation `Message[...]` contradicts `value`.
        """
        handlers.check_topic(topic, f"@{self._called}.on")

        def decorate(function: Function) -> Function:
            if isinstance(function, type):
                handlers.check_function(function, f"route {topic!r}: {function.__qualname__}")
            around = sys._getframe(1)  # An annotation may name a class of the function around the handler.
            own = KindOptions(output=output, ordered=ordered, forward_headers=forward_headers)
            for each in topics_of(topic):
                self._declare(Declared(each, function, options, own, around))
            return function

        return decorate

    def consumer(
        self,
        topic: str | Sequence[str],
        *,
        offsets: Literal["auto", "manual"] = "auto",
        tick_every_s: float | None = None,
        own_thread: bool = False,
        **options: Unpack[RouteOptions],
    ) -> Callable[[Class], Class]:
        """Makes one instance of the decorated class for each partition of these topics that is assigned.

        With `offsets="manual"` only `mark` moves the offset. With `tick_every_s`, `tick` is called so far apart between
        batches. With `own_thread`, `__init__`, all hooks and `consume` of an instance run on one thread, which
        belongs to its assignment: for connections that only the thread which opened them may use. The other
        options are those of `awoke.routing.RouteOptions`.

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
                self._declare(Declared(each, target, options, own, around))
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
        router._is_included = True
        for each in router._declared:
            self._declare(each.prefixed(prefix + router._prefix))

    def _declare(self, declared: Declared) -> None:
        """Takes a route. Checks it at once, so that an error comes where it is written."""
        if self._is_included:
            text = f"topic {declared.topic!r}: its router was included before; declare all routes first"
            raise ConfigError(text, "router")
        route = declared.route(Coding(UNKNOWN))
        if route.topic in [each.topic for each in self._declared]:
            raise ConfigError(f"topic {route.topic!r} has a route already in this router", "topic")
        self._declared.append(declared.with_types(*route.types))


def topics_of(topic: str | Sequence[str]) -> Sequence[str]:
    """Returns the topics that a decorator names.

    Raises:
        ConfigError: It names none, or one twice.
    """
    if isinstance(topic, str):
        return [topic]
    topics = list(topic)
    if not topics or len(set(topics)) < len(topics):
        raise ConfigError(f"a route needs at least one topic, and each once, not {topics!r}", "topic")
    return topics


def prefix_of(topic: str, prefix: str) -> str:
    """Returns a topic with a prefix before its name; its types stay."""
    if isinstance(topic, Topic):
        return Topic(prefix + topic, value=topic.value, key=topic.key)
    return prefix + topic
