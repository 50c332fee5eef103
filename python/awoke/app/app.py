"""The app: routes, settings and a producer, with methods to run them."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from weakref import WeakSet

from awoke.declare import handlers
from awoke.declare.group_routes import OWN, GroupKey, GroupRoutes
from awoke.declare.incoming import Incoming
from awoke.declare.injection.overrides import AppDependencies
from awoke.declare.injection.sources import GIVEN
from awoke.declare.lifecycle import BackgroundFunction, BetweenJobs, Lifecycle, Runner, StopRequests
from awoke.declare.patterns import Pattern
from awoke.declare.router import Declared, Router
from awoke.declare.routing import Route
from awoke.errors import ConfigError
from awoke.observe.events import Events
from awoke.observe.handled import logger_with_context
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import Format, checked_default
from awoke.payloads.registry.schemas import Schemas, open_registry
from awoke.payloads.topic_formats import TopicFormats
from awoke.payloads.topics import DeclaredTopics, Topic
from awoke.preconditions import checks
from awoke.produce.middleware import Middleware
from awoke.produce.producer import Producer
from awoke.rpc.caller.caller import Caller
from awoke.rpc.responder.methods import Rpc
from awoke.settings import KafkaValue, Loaded, Settings, load
from awoke.settings.config_values import ConfigValue
from awoke.state.table import ReferenceTable, Table
from awoke.waiting.drive import is_in_event_loop

if TYPE_CHECKING:
    from awoke.runtime.extension import Extension
    from awoke.runtime.process.runner import AppRunner

Hook = TypeVar("Hook", bound=Callable[[], object])
Background = TypeVar("Background", bound=Callable[..., object])
MiddlewareFunction = TypeVar("MiddlewareFunction", bound=Middleware)

NAME_MAX = 200
"""The most characters of an app's name."""
IMPORTING: list[str] = []
"""The modules of apps that awoke imports now, in order to run the app itself."""
APPS: WeakSet[App] = WeakSet()
"""The apps of this process that are alive: for tests, which find the app of a handler."""


class App(Router):
    """Routes from topics to code, with settings and a producer. Making one opens nothing: no thread, no connection.

    Keyword arguments are settings (see `awoke.settings.Settings`): arguments win over `AWOKE_*` of the
    environment, that over a file, that over defaults.
    """

    _called = "app"

    def __init__(
        self, name: str, *, kafka: Mapping[str, KafkaValue] | None = None, format: Format = BY_TYPE, **settings: Any
    ) -> None:
        if not name or not isinstance(name, str):
            raise ConfigError("an app needs a name; it is also its consumer group where none is set", "name")
        if not name.isprintable() or len(name) > NAME_MAX:
            text = f"an app's name has at most {NAME_MAX} characters, none of which controls a terminal or ends a line"
            raise ConfigError(f"{text}: manifests and units have it", "name")
        super().__init__()
        self.name = name
        self.format = checked_default(format)
        """The format of what the app sends and what its handlers get, where no other is said; not of bytes and text."""
        self.events = Events()
        self.groups: dict[GroupKey, GroupRoutes] = {OWN: GroupRoutes(OWN)}
        """The routes by their consumer group, first those of the app's own."""
        self.rpc = Rpc(name)
        """The methods that others may call over Kafka: see `awoke.rpc`."""
        self._arguments: dict[str, Any] = {**settings, "kafka": kafka}
        self._settings: Settings | None = None
        """Those that were loaded last; None where a later `use` has changed them."""
        self._producer: Producer | None = None
        self._callers: dict[str, Caller] = {}
        self._making_caller = threading.Lock()
        self._lock = threading.Lock()
        self._backgrounds: list[BackgroundFunction] = []
        self._start_background: Callable[[BackgroundFunction], object] | None = None
        self.lifecycle = Lifecycle()
        self.cleanups = BetweenJobs()
        """The functions that are called before and after each job."""
        self.stop_requests = StopRequests()
        self._runner: Runner | None = None
        self._is_running = False
        """True from the start of a runner until its end: one at a time runs the app in a process."""
        self.before_forks: list[Callable[[], object]] = []
        self.after_forks: list[Callable[[], object]] = []
        self._outgoing: list[Middleware] = []
        self.schemas = Schemas(lambda: open_registry(self.settings), lambda: self.settings.registry_register)
        """The schemas of the registry in the settings, for all formats of the app."""
        self.topic_formats = TopicFormats((), self.format, self.schemas)
        """The formats of the topics that have some, for what is sent to them."""
        self._topics = DeclaredTopics()
        self.tables: dict[str, Table[Any, Any]] = {}
        """Its tables, by name."""
        self.dependencies = AppDependencies(self)
        """The functions of `Depends` that its handlers need."""
        APPS.add(self)

    @overload
    def background(
        self,
        function: Background,
        *arguments: Any,
        on_error: Literal["log", "fail", "restart"] = "log",
        name: str | None = None,
    ) -> Background: ...

    @overload
    def background(
        self, *, on_error: Literal["log", "fail", "restart"] = "log", name: str | None = None
    ) -> Callable[[Background], Background]: ...

    def background(
        self,
        function: Any = None,
        *arguments: Any,
        on_error: Literal["log", "fail", "restart"] = "log",
        name: str | None = None,
    ) -> Any:
        """Runs a function on a thread that the app owns, from the app's start until its stop; returns the function.

        It is a decorator, too: `@app.background`, or `@app.background(on_error="restart")`. An `async def` runs on an
        event loop of its own on that thread, and is cancelled at the stop.

        A parameter `stop` of the function gets the token that tells it to end. An exception is the event
        `background.failed`, and `on_error` says what follows: nothing (`log`), the app ends (`fail`), or the
        function runs again after a back-off (`restart`). Does not block: before the app runs, the function waits
        for its start.

        Raises:
            ConfigError: it is no function, or is a generator.
        """
        if function is None:
            return partial(self.background, on_error=on_error, name=name)
        if handlers.kind_of(function) != "async def":
            handlers.check_plain(function, "app.background")
        job = BackgroundFunction(function, arguments, on_error, name)
        with self._lock:
            self._backgrounds.append(job)
            start = self._start_background
        if start is not None:
            start(job)
        return function

    def before_fork(self, function: Hook) -> Hook:
        """Calls the decorated function once before the nodes of a swarm are forked, after the app's import.

        What it loads is shared by all nodes until they write to it. It must start no thread and make no Kafka client.
        """
        handlers.check_plain(function, "@app.before_fork")
        self.before_forks.append(function)
        return function

    def after_fork(self, function: Hook) -> Hook:
        """Calls the decorated function in each node of a swarm, before it starts: the place for connections of its
        own."""
        handlers.check_plain(function, "@app.after_fork")
        self.after_forks.append(function)
        return function

    def between_jobs(self, function: Hook) -> Hook:
        """Calls the decorated function before and after each job, on the thread that runs it: to clean up after user
        code.

        A `def` is called around jobs of `def` handlers, an `async def` around those of `async def` handlers. A job is
        a batch, a hook, or a remote call. What it raises before a job fails the job, and is logged after one.

        Raises:
            ConfigError: the function needs arguments, or is a generator function.
        """
        self.cleanups.add(function)
        return function

    def on_startup(self, function: Hook) -> Hook:
        """Calls the decorated function, `def` or `async def`, in each process before the app's first message.

        Functions are called in order of registration. What one raises ends the start with that error, after the
        shutdown functions of those that had succeeded. A `def` runs on the thread that starts the app, an `async
        def` on the event loop of the async handlers.

        Raises:
            ConfigError: the function needs arguments, or is a generator function.
        """
        self.lifecycle.add_startup(function)
        return function

    def on_shutdown(self, function: Hook) -> Hook:
        """Calls the decorated function, `def` or `async def`, after the app's last message is done and committed.

        Functions are called in reverse order of registration, each whatever the others raise, which is the event
        `shutdown.failed`. A function belongs to the first start-up function before it that has none yet, and is not
        called if that one was not called or failed. A `def` runs on a thread of its own, an `async def` on the
        event loop of the async handlers. Together they have what is left of `shutdown_timeout_s`, and at least a
        second.

        Raises:
            ConfigError: the function needs arguments, or is a generator function.
        """
        self.lifecycle.add_shutdown(function)
        return function

    def outgoing(self, function: MiddlewareFunction) -> MiddlewareFunction:
        """Passes every message that the app sends through the decorated function, which returns the message to send.

        It takes and returns an `awoke.Outgoing`, on the thread that sends. An exception prevents the sending. To be
        registered before the app's producer is used.
        """
        handlers.check_plain(function, "@app.outgoing")
        self._outgoing.append(function)
        return function

    @property
    def middleware(self) -> Sequence[Middleware]:
        """The functions that every outgoing message passes through, in this order; the formats of topics follow."""
        return list(self._outgoing)

    def logger(self, name: str) -> logging.Logger:
        """Returns a logger whose records know the message that is handled when they are written.

        They have the attributes `topic`, `partition`, `offset` and so on (`awoke.logs.CONTEXT`), which are None where
        there is no value. A handler's parameter of the type `logging.Logger` gets one under the handler's name. Does
        not block.
        """
        return logger_with_context(name)

    def around(self, route: Route) -> Sequence[Incoming]:
        """Returns the middleware around a route's handler, the outermost first."""
        return [*(self._incoming if route.consumer is None else self._incoming_batches), *route.incoming]

    def override(
        self, function: Callable[..., object], other: Callable[..., object]
    ) -> contextlib.AbstractContextManager[None]:
        """Calls another function in place of one that handlers depend on (`Depends`): for tests, around the app's run.

        Raises:
            ConfigError: From the block: a parameter of the other has no annotation that says its argument.
        """
        return self.dependencies.override(function, other)

    def topic(
        self,
        name: str,
        *,
        value: Any = None,
        key: Any = None,
        partitions: int | None = None,
        replication: int | None = None,
        config: Mapping[str, ConfigValue] | None = None,
    ) -> Topic:
        """Returns a topic whose keys and values have types or formats, for routes, outputs and `produce`.

        What the app sends to it, by this object or by its name, is encoded so. To be called before the app's producer
        is used. `partitions`, `replication` and `config` declare the topic: see `topics`.

        Raises:
            ConfigError: the name, a number or a setting is none of Kafka's; the topic is declared already, and
                differently; the app's producer was used before.
        """
        topic = Topic(name, value=value, key=key, partitions=partitions, replication=replication, config=config)
        self._topics.add(topic)
        self._encode(topic)
        return topic

    def table(self, name: str, *, key: Any = None, value: Any = None, ttl_s: float | None = None) -> Table[Any, Any]:
        """Returns a table: a dictionary that survives, for the functions of routes that name it (`tables=[…]`).

        `key` and `value` are types or formats, as those of a topic; bytes where they are left out. Its changes go to
        the compacted topic `APP.table.NAME`, which the app makes at its start if it does not exist. With `ttl_s` a row
        is gone that many seconds after it was written last.

        Raises:
            ConfigError: the name is not one for a topic, or the app has a table of this name; a type can't be written;
                `ttl_s` is no time.
        """
        checks.topic("a table", "name", f"{self.name}.table.{name}")
        checks.optional_seconds(f"table {name!r}", "ttl_s", ttl_s, "ttl_s", is_zero_allowed=False)
        if name in self.tables:
            raise ConfigError(f"app {self.name!r} has a table {name!r} already", "table")
        changelog = Topic(f"{self.name}.table.{name}", value=value, key=key)
        table = Table[Any, Any](name, changelog, key, value, self.format, self.schemas, ttl_s)
        self.tables[name] = table
        return table

    def reference(self, topic: str, *, key: Any = None, value: Any = None) -> ReferenceTable[Any, Any]:
        """Returns a table that others write, in this compacted topic, for routes that name it (`tables=[…]`).

        `key` and `value` are types or formats; those of the topic (`awoke.Topic`), or else bytes, where they are left
        out.

        Raises:
            ConfigError: the name is not one of a topic; a type can't be read.
        """
        named = topic if isinstance(topic, Topic) else Topic(topic)
        said = (named.key if key is None else key, named.value if value is None else value)
        return ReferenceTable(str(named), named, *said, self.format, self.schemas)

    @property
    def topics(self) -> DeclaredTopics:
        """The topics that the app declares by name: those of `topic`, and those that its routes read and write.

        `awoke topics apply` makes the cluster's topics so. The setting `topics_check` says what follows at start if
        they differ.
        """
        return self._topics

    def _encode(self, topic: str) -> None:
        """Encodes what is sent to a topic from now on, if it has types of its own."""
        with self._in_time(topic):
            self.topic_formats.add(topic)

    @contextlib.contextmanager
    def _in_time(self, topic: str) -> Iterator[None]:
        """Refuses the first format of any topic, if the app's producer was made without one."""
        had_none = not self.topic_formats
        yield
        if had_none and self.topic_formats and self._producer is not None:
            text = (
                f"topic {topic!r}: its types come too late: the app's producer was used before; make the topic earlier"
            )
            raise ConfigError(text, "topic")

    def resume(self, topic: str, partition: int, *, group: str | None = None) -> bool:
        """Resumes a partition that its route has paused, or that is stuck; returns whether it was.

        Where several groups of the app read it, in all of them, or in the one of this name.
        A stuck partition is read from its first message. Does not block. Any thread. See `awoke resume`, too.

        Raises:
            ConfigError: The app that runs has no group of this name.
        """
        return self._steer(group, lambda run: run.resume(topic, partition))

    def skip(self, topic: str, partition: int, offset: int, *, group: str | None = None) -> bool:
        """Skips a failing message that blocks its partition, or its key; returns false where it does not fail.

        Where it fails in several groups of the app, in all of them, or in the one of this name.
        It is skipped at once instead of being tried again: its back-off ends. The partition goes on behind it,
        with the event `message.skipped`. Does not block. Any thread. See `awoke skip`.
        """
        return self._steer(group, lambda run: run.skip(topic, partition, offset))

    def _steer(self, group: str | None, change: Callable[[Any], bool]) -> bool:
        return self._runner is not None and self._runner.steer(group, change)

    def blocking(self, topic: str, partition: int, *, group: str | None = None) -> list[int]:
        """Returns the offsets of a partition's messages that fail and are tried again, in order. Does not block."""
        return [] if self._runner is None else self._runner.blocking(topic, partition, group)

    def is_assigned(self, topic: str, partition: int) -> bool:
        """Returns whether a partition is assigned to this process now. Does not block."""
        return self._runner is not None and self._runner.is_assigned(topic, partition)

    def threads(self) -> Sequence[tuple[str, str, str]]:
        """Returns owner, name and place of start of each thread; empty where the app does not run. Does not block."""
        return [] if self._runner is None else self._runner.threads()

    @property
    def actions(self) -> Any:
        """Executes the commands of operators (`Actions`); None where the app does not run. Does not block."""
        from awoke.app.extensions import actions_of

        return None if self._runner is None else actions_of(self._runner)

    def _declare(self, declared: Declared) -> None:
        route, topic = declared.route(self.format, self.schemas, app=self.name), declared.topic
        self._check_incoming(route)
        group = self.groups.get(GroupKey.of(route)) or GroupRoutes(GroupKey.of(route))
        group.check(topic, route)
        for named in ([] if isinstance(topic, Pattern) else [route.topic]) + list(route.topics_out):
            self._topics.add(named)
        read = declared.read(route)
        group.add(topic, route, lambda name: read.route(self.format, self.schemas, name, self.name))
        self.groups[group.key] = group
        for each in route.topics_out:
            self._encode(each)
        with self._in_time(str(topic)):
            self.topic_formats.add_read(_read_topics(topic, route), *route.types)

    def _known(self) -> list[Route]:
        return self.all_routes

    @property
    def routes(self) -> Mapping[str, Route]:
        """The routes of the app's own group by topic; those of patterns are there when a topic was found."""
        return self.groups[OWN].routes

    @property
    def all_routes(self) -> list[Route]:
        """The routes of topics in all groups, and one for each pattern, which no topic belongs to."""
        return [route for group in self.groups.values() for route in group.all_routes]

    @property
    def patterns(self) -> list[Pattern]:
        """The patterns of all groups."""
        return [pattern for group in self.groups.values() for pattern in group.patterns]

    @property
    def read_topics(self) -> list[str]:
        """The topics that are read, each once; those of patterns when a topic was found."""
        return list(dict.fromkeys(topic for group in self.groups.values() for topic in group.routes))

    def match(self, topics: Iterable[str]) -> tuple[list[Route], list[ConfigError]]:
        """Makes the routes of topics that patterns match and that had none, and adds them to their groups.

        Returns them, and an error for each topic that would have two routes in a group, which gets none. Does not
        block. One thread at a time: the runtime calls it.
        """
        names = list(topics)
        each = [group.match(names) for group in self.groups.values()]
        return [route for found, _ in each for route in found], [error for _, refused in each for error in refused]

    def unmatched(self) -> list[Pattern]:
        """Returns the patterns that have matched no topic yet. Does not block."""
        return [pattern for group in self.groups.values() for pattern in group.unmatched()]

    def load_settings(self) -> Loaded:
        """Reads the settings anew, from arguments, environment and file; `settings` returns them from now on.

        Raises:
            ConfigError: a setting that does not exist or has a wrong value.
        """
        loaded = load(self._arguments)
        self._settings = loaded.values
        return loaded

    @property
    def settings(self) -> Settings:
        """The settings, as they were read last: on first use, after `use`, and at each start of the app.

        Raises:
            ConfigError: a setting that does not exist or has a wrong value.
        """
        return self._settings or self.load_settings().values

    @contextlib.contextmanager
    def sending_by(self, producer: Producer) -> Iterator[None]:
        """Has the app send by another producer within the block: for tests, around what runs without brokers."""
        with self._lock:
            before, self._producer = self._producer, producer
        try:
            yield
        finally:
            with self._lock:
                self._producer = before

    @property
    def producer(self) -> Producer:
        """The app's producer, made on first use and closed when the app stops."""
        with self._lock:
            if self._producer is None:
                settings = self.settings
                self._producer = Producer(
                    settings=settings,
                    events=self.events,
                    idle_after_s=settings.producer_idle_s,
                    middleware=self.middleware,
                    topics=self.topic_formats,
                    format=self.format,
                )
            return self._producer

    def caller(self, service: str, **options: Any) -> Caller:
        """Returns a caller of another service, under this app's name and settings; for options and errors see `Caller`.

        Made on first use, which blocks, and closed by the runtime when it stops; what it counts is among the
        metrics. On the thread of a running event loop it does not block: there the caller's first call opens it.
        """
        with self._making_caller:
            if service not in self._callers:
                options = {"name": self.name, "schemas": self.schemas, **options}
                self._callers[service] = Caller(service, settings=self.settings, events=self.events, **options)
            return self._callers[service]

    def callers(self) -> dict[str, Caller]:
        """Returns the callers that were made, by service. Does not block."""
        return dict(self._callers)

    def close_callers(self, timeout_s: float) -> None:
        """Closes all callers; the next use makes new ones. Blocks up to `timeout_s` for each."""
        with self._making_caller:
            callers, self._callers = self._callers, {}
        for each in callers.values():
            each.close(timeout_s)

    def extensions(self, runner: AppRunner) -> list[Extension]:
        """Makes what is added to the runtime of this app: metrics, console, commands. For the runner that is given."""
        from awoke.app.extensions import extensions_of

        return extensions_of(runner)

    def runs(self, start_background: Callable[[BackgroundFunction], object] | None, runner: Runner | None) -> None:
        """Connects the app with the runtime that runs it, and starts the background functions; None when it stops."""
        with self._lock:
            self._start_background, self._runner = start_background, runner
            backgrounds = list(self._backgrounds) if start_background is not None else []
        for each in backgrounds:
            assert start_background is not None
            start_background(each)

    def begin_run(self) -> Callable[[], None]:
        """Notes that a runner starts the app; returns the function that notes its end. Does not block.

        Raises:
            ConfigError: The app runs in this process already.
        """
        with self._lock:
            if self._is_running:
                text = f"app {self.name!r} runs in this process already; a second run would share its producer and its"
                raise ConfigError(f"{text} member's name: stop the first, or make another App", "run")
            self._is_running = True

        def end() -> None:
            self._is_running = False

        return end

    def use(self, **settings: Any) -> None:
        """Overrides settings, as the command line does; to be called before anything runs.

        Raises:
            ConfigError: The app runs: its parts have read their settings.
        """
        names = sorted(name for name, value in settings.items() if value)
        if self._is_running and names:
            text = f"app {self.name!r} runs already, and reads {', '.join(names)} no more: call use() before its run"
            raise ConfigError(text, names[0])
        kafka = {**(self._arguments.get("kafka") or {}), **(settings.pop("kafka", None) or {})}
        self._arguments.update({name: value for name, value in settings.items() if value is not None})
        self._arguments["kafka"] = kafka
        self._settings = None

    def keep_settings(self) -> Callable[[], None]:
        """Keeps the settings as they are, and returns the function that puts them back, as a test does."""
        before = dict(self._arguments)

        def put_back() -> None:
            self._arguments, self._settings = before, None

        return put_back

    def queued(self) -> tuple[int, int]:
        """Returns the messages and bytes of the app's producer that wait for their delivery report. Does not block."""
        with self._lock:
            return (0, 0) if self._producer is None else self._producer.queued()

    def close_producer(self, timeout_s: float | None = None) -> int:
        """Closes the producer, if there is one; returns the number of undelivered messages. The next use makes a new
        one."""
        with self._lock:
            producer, self._producer = self._producer, None
        return 0 if producer is None else producer.close(timeout_s)

    def run(
        self,
        *,
        bootstrap_servers: str | None = None,
        workers: int | None = None,
        embedded: bool = False,
        kafka: Mapping[str, KafkaValue] | None = None,
    ) -> int:
        """Runs until SIGINT or SIGTERM, `stop`, or until a fatal error ends the app; returns the exit code.

        Blocks. On the main thread it handles signals: the first stops gracefully, a second one waits for no job.

        Raises:
            ConfigError: also in a thread with a running event loop, which it would block.
            BrokerUnreachable: no broker answered.
            UnknownTopic: a topic does not exist. What a start-up function raises leaves, too. Nothing was processed.
        """
        if is_in_event_loop():
            raise ConfigError(
                "app.run() would block the event loop of this thread: use async with app.serving()", "run"
            )
        if IMPORTING:
            text = (
                f"app {self.name!r}: app.run() at the level of a module that awoke imports would run it twice; put it"
            )
            raise ConfigError(f"{text} below `if __name__ == '__main__':`, or leave it out: awoke run runs it", "run")
        from awoke.runtime.process.signals import run

        return run(self, bootstrap_servers=bootstrap_servers, workers=workers, embedded=embedded, kafka=kafka)

    def serving(
        self,
        *,
        bootstrap_servers: str | None = None,
        workers: int | None = None,
        embedded: bool = False,
        kafka: Mapping[str, KafkaValue] | None = None,
    ) -> contextlib.AbstractAsyncContextManager[AppRunner]:
        """Runs the app beside other code of an event loop: `async with app.serving() as runner:`.

        Neither the start nor the stop blocks the loop. The block begins when the app has started, and ends when it has
        stopped in order. Handlers run on awoke's own threads and loop, not on this one. Signals are left to other code.
        A fatal error stops the app; `await runner.ended()` raises the error at once, and the end of the block
        raises it.

        Raises:
            ConfigError: a setting or a route is wrong.
            BrokerUnreachable: no broker answered.
            UnknownTopic: a topic does not exist. What a start-up function raises leaves, too. Nothing was processed.
        """
        from awoke.runtime.process.embedding import serving

        return serving(self, bootstrap_servers=bootstrap_servers, workers=workers, embedded=embedded, kafka=kafka)

    def stop(self) -> None:
        """Asks the app to stop in order, as SIGTERM does. Does not block. Any thread, handlers too.

        Calling it again does nothing. Called before the app has ever run, it ends the first start at once.
        """
        self.stop_requests.request()


def _read_topics(topic: str | Pattern, route: Route) -> Callable[[str], bool]:
    """Returns which topics a route reads: a pattern's are without those that the route itself writes to."""
    if not isinstance(topic, Pattern):
        return str(topic).__eq__
    own = set(map(str, route.topics_out))
    return lambda name: name not in own and topic.matches(name)


GIVEN[App] = lambda app: app
