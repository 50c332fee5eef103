"""Runs an app in one process: starts its parts in order, and stops them in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from awoke import _native
from awoke.declare.group_routes import FIXED
from awoke.declare.routing import Route
from awoke.errors import ConfigError, hear_ends
from awoke.observe import ledger
from awoke.observe.contexts import JobContexts
from awoke.observe.events import (
    AppResized,
    AppStarted,
    AppStopped,
    AppStopping,
    ClientError,
    OutputBlocked,
    OutputUnblocked,
)
from awoke.observe.ledger import Ledger
from awoke.observe.logs import keep_audible
from awoke.observe.metrics.recorder import Recorder
from awoke.rpc.responder.call_log import CallLog
from awoke.rpc.responder.responder import Responder
from awoke.runtime.extension import Extension
from awoke.runtime.jobs.alone import AloneProducer
from awoke.runtime.jobs.scope import Scope
from awoke.runtime.jobs.worker_pool import WorkerPool
from awoke.runtime.process.connections import Connections
from awoke.runtime.process.context import RunnableApp
from awoke.runtime.process.dependencies import ProcessDependencies
from awoke.runtime.process.group_run import GroupRun
from awoke.runtime.process.joining import fatal_error
from awoke.runtime.process.lifecycle import LifecycleRun, until
from awoke.runtime.process.startup_checks import check_topics
from awoke.runtime.process.steering import Steering
from awoke.runtime.process.stopping import InterruptibleWait, remaining_s, store_progress
from awoke.runtime.process.topic_watch import TopicWatch
from awoke.runtime.watch.health import BlockedOutputs
from awoke.runtime.watch.overdue import OverdueWatch
from awoke.runtime.watch.stacks import Unfinished
from awoke.waiting.drive import drive
from awoke.waiting.green_threads import check_threads

logger = logging.getLogger(__name__)

Kind = TypeVar("Kind")


class AppRunner(Steering):
    """Runs an app in this process, beside other code: `start` once, then `stop`. Any thread may call everything here.

    `app.run()`, `app.serving()` and `awoke.testing.running` make one of their own. `on_fatal_error` is called with the
    fatal error when the app can't go on; the caller is to stop it then. `on_stop` is called when `app.stop()` was
    called; without it the app is stopped on a thread of its own.
    """

    def __init__(
        self,
        app: RunnableApp,
        on_fatal_error: Callable[[BaseException], object] | None = None,
        *,
        on_stop: Callable[[], object] | None = None,
        collects_metrics: bool = False,
        serves_metrics: bool = True,
    ) -> None:
        self.app: RunnableApp = app
        self.loaded = app.load_settings()
        self.settings = self.loaded.values
        self.ledger, self.contexts = Ledger(app.name), JobContexts()
        self.overdue = OverdueWatch(app.events, self._has_limits)
        is_asked_for = collects_metrics or self.settings.metrics_port is not None or self.settings.metrics_otel
        self.metrics = Recorder() if is_asked_for else None
        self.call_log = CallLog() if self.settings.console else None
        self.alone = AloneProducer(self.settings, app.format, app.events, app.middleware, app.topic_formats)
        """Sends records that brokers could refuse because of others in their batch."""
        self.responder: Responder | None = None
        """Answers remote calls, where the app has methods."""
        self._scope = Scope(app.name, 0, app.events, self.ledger)
        self._scope.on_failure(self.stop_app)
        self.serves_metrics = serves_metrics
        """True if this process listens at `metrics_port`; of a swarm only the supervisor does."""
        self._on_fatal_error = on_fatal_error or (lambda error: None)
        self._on_stop = on_stop or self.stop_soon
        self._stop_wait = InterruptibleWait()
        self._pool = WorkerPool(app, self._stop_wait, self.stop_app)
        self.connections = Connections(self.settings)
        self.blocked_outputs = BlockedOutputs()
        self._topic_watch = TopicWatch(app, self.settings, self._read_topic)
        self._lifecycle = LifecycleRun(app.lifecycle, app.events, self._pool.call_async, self.contexts.base)
        self.dependencies = ProcessDependencies(app.dependencies, app.all_routes, app.events, self._pool.call_async)
        """The values of functions of `Depends` that live as long as this process."""
        self.groups = [GroupRun(self, each, self._pool, self._stop_wait) for each in app.groups.values()]
        """The consumer groups, first the app's own, which a process may have no routes of."""
        self.extensions: Sequence[Extension] = app.extensions(self)
        self._has_begun = False
        self._changing = threading.Lock()
        """Held while the app starts or stops: a stop that comes during the start waits for it."""
        self._asking = threading.Lock()
        """Guards `_stopper` and `fatal_error`."""
        self._stopper: threading.Thread | None = None
        self._is_clean = True
        self._ended: Future[None] = Future()
        self._end_stop_requests: Callable[[], None] | None = None
        self._end_run: Callable[[], None] = lambda: None
        self.fatal_error: BaseException | None = None
        """The error that ends the app, if there is one."""
        self.is_quiet = False
        self.began_s = time.monotonic()

    def start(self) -> None:
        """Checks the topics, starts the workers, calls the start-up functions and joins the group.

        Blocks up to `startup_timeout_s`, and for the start-up functions. Does nothing if `app.stop()` was called
        before.

        Raises:
            ConfigError: the app runs already, has no route, or two groups of one name; librdkafka refuses a setting.
            BrokerUnreachable: no broker answered.
            UnknownTopic: a topic does not exist. What a start-up function raises leaves, too.
        """
        with self._changing:
            self._end_stop_requests = self.app.stop_requests.listen(lambda: self._on_stop())
            if self._end_stop_requests is None:
                logger.info("app %s was stopped before it started", self.app.name)
                self._ended.set_result(None)
                return
            try:
                self._end_run = self.app.begin_run()
                self._start()
            except BaseException:
                self._end_stop_requests()
                self._end_run()
                self._ended.set_result(None)
                raise

    def _start(self) -> None:
        """Starts the parts of the app, each after those that it needs.

        1. Check the settings and the topics.
        2. Listen to the engine's events, and start the extensions.
        3. Start what jobs need: transactions, workers and event loop.
        4. Call the start-up functions, and the functions of `Depends` that live as long as the process.
        5. Answer calls, let the extensions prepare, join the groups, and watch for new topics of patterns.
        6. Start the background functions.

        If a step raises, the shutdown functions run and everything is ended again.
        """
        if not self.app.all_routes and not self.app.rpc.methods:
            text = f"app {self.app.name!r} has no route: decorate something with @app.on(topic), or @app.rpc.method"
            raise ConfigError(text, "routes")
        check_threads()
        keep_audible()
        self.loaded.check_member()
        self.app.schemas.check()
        self._check_groups()
        partitions = check_topics(self.app, self.settings)
        self._has_begun = True
        self._end_listening = self._listen()
        ledger.install(self.app.name)
        try:
            for extension in self.extensions:
                extension.start()
            for group in self.groups:
                group.open_transactions()
            self._pool.start((group, route) for group in self.groups for route in group.routes.values())
            self._lifecycle.start_up()
            self._lifecycle.also(self.dependencies.open, self.dependencies.close, "dependencies")
            self._pool.bind()
            if self.app.rpc.methods:
                self.responder = Responder(self.own, self.app.rpc, self.app.events, self.own.box)
                self.responder.start()
            self.app.schemas.start()
            for extension in self.extensions:
                extension.before_joining()
            self._join(partitions)
            self._topic_watch.start()
            self.app.runs(lambda each: self._scope.background(*each), self)
        except BaseException:
            self.quiet()
            self._leave_groups(time.monotonic() + self.settings.shutdown_timeout_s)
            self._lifecycle.shut_down(time.monotonic() + self.settings.shutdown_timeout_s)
            self._end(time.monotonic() + 1.0)
            raise
        names, topics = [each.group for each in self.joining], sorted(self._topics_in())
        self.app.events.emit(AppStarted(app=self.app.name, group=", ".join(names), topics=topics))

    def _has_limits(self) -> bool:
        """Tells whether a route limits the time of its jobs. At start, when the routes of patterns are known."""
        return any(route.max_processing_s is not None for route in self.app.all_routes)

    def extension(self, kind: type[Kind]) -> Kind | None:
        """Returns the extension of this class; None where the app has none. Does not block."""
        return next((each for each in self.extensions if isinstance(each, kind)), None)

    def on_assigned(self, group: str, topic: str, partition: int) -> None:
        """Tells the extensions of a partition that a group was given, before its first message."""
        for extension in self.extensions:
            extension.assigned(group, topic, partition)

    def ask_stop(self) -> None:
        """Asks for a stop in order, as `app.stop()` does. Does not block."""
        self._on_stop()

    def _check_groups(self) -> None:
        for key, routes in self.app.groups.items():
            if key.said is None:
                continue
            owner = f"route {routes.all_routes[0].topic!r}: group={key.said!r}"
            if key.said == self.group:
                raise ConfigError(f"{owner} is the app's own group already; leave group=… out", "group")
            if key.said == FIXED.name(self.group) and FIXED in self.app.groups:
                raise ConfigError(f"{owner} is the name for the offsets of named partitions; choose another", "group")

    @property
    def own(self) -> GroupRun:
        """The app's own group, which remote calls belong to."""
        return self.groups[0]

    def _join(self, partitions: Mapping[str, int]) -> None:
        _native.set_fetched_batch_max(self.settings.fetch_batch_max_mb * 1024 * 1024)
        for group in self.joining:
            responder = self.responder if group.is_own else None
            calls = [] if responder is None else [responder.topics.calls]
            total = sum(partitions[topic] for topic in [*group.routes, *calls])
            group.join([] if responder is None else [responder.route], calls, total, len(self.joining))

    def _read_topic(self, route: Route) -> None:
        """Reads a topic that a pattern has matched."""
        for group in self.groups:
            if group.owns(route):
                group.read(route)

    def _topics_in(self) -> list[str]:
        return [*self.app.read_topics, *([self.responder.topics.calls] if self.responder is not None else [])]

    @property
    def schedulers(self) -> list[_native.Scheduler]:
        """The schedulers of the worker threads, of the event loop, and of the responder."""
        more = [] if self.responder is None else [self.responder.scheduler]
        return [*self._pool.schedulers, *more]

    def quiet(self) -> None:
        """Begins no new jobs. Does not block."""
        self.is_quiet = True
        for each in self.schedulers:
            each.quiet()

    def stop_waiting(self) -> bool:
        """Makes a stop wait for running jobs no longer: what is done is committed. Does not block.

        Returns whether this is the first call.
        """
        if not self._stop_wait.interrupt():
            return False
        store_progress(self._pool.running())
        for group in self.groups:
            group.stop_waiting()
        return True

    def unfinished(self) -> list[Unfinished]:
        """Returns the user code that was called and has not returned, with its stack. Does not block."""
        return self._lifecycle.unfinished() + self._pool.unfinished()

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finishes running jobs, commits, leaves the group, delivers what was produced, and joins the workers.

        Returns whether all of it was done within `timeout_s` (None: the setting). Code that still runs is logged.
        A second call waits for the first and returns the same.
        """
        with self._changing:
            if self._has_begun:
                self._is_clean = False  # Unless it is known better.
                try:
                    self._is_clean = self._stop(timeout_s)
                finally:
                    self._end_run()
                    self._ended.set_result(None)
        with self._asking:
            stopper = self._stopper
        if stopper is not None and stopper is not threading.current_thread():
            stopper.join()  # It has stopped the app, or finds it stopped.
        return self._is_clean

    def _stop(self, timeout_s: float | None) -> bool:
        deadline_s = time.monotonic() + (self.settings.shutdown_timeout_s if timeout_s is None else timeout_s)
        self.app.events.emit(AppStopping(app=self.app.name))
        self.quiet()
        return self._end(deadline_s, is_clean=self._leave_groups(deadline_s))

    def _leave_groups(self, deadline_s: float) -> bool:
        """Commits and leaves the groups, all at once; returns whether all that is stored is committed."""
        self._topic_watch.close(remaining_s(deadline_s))
        joined = [each for each in self.groups if each.member is not None]
        are_committed: list[bool] = []

        def leave(group: GroupRun) -> None:
            are_committed.append(group.leave(deadline_s))

        # An executor takes no work when the interpreter ends.
        threads = [threading.Thread(target=leave, args=(each,), name="awoke-leaving") for each in joined[1:]]
        for thread in threads:
            thread.start()
        for each in joined[:1]:
            leave(each)
        for thread in threads:
            thread.join()
        return all(are_committed) and len(are_committed) == len(joined)

    def stop_soon(self) -> None:
        """Stops the app on a thread of its own. Does not block: a handler may call it, too."""
        with self._asking:
            if self._stopper is None and not self._ended.done():
                self._stopper = threading.Thread(target=self.stop, name="awoke-stopping", daemon=True)
                self._stopper.start()

    @property
    def has_ended(self) -> bool:
        """True if the app has stopped, or was not to start. Does not block."""
        return self._ended.done()

    async def ended(self) -> None:
        """Waits until the app has stopped, whatever stopped it.

        Raises the fatal error of the app, if it had one.
        """
        await until(self._ended)
        if self.fatal_error is not None:
            raise self.fatal_error

    def stop_app(self, error: BaseException) -> None:
        """Asks for the app's end because of a fatal error, of which the first counts. Does not block."""
        with self._asking:
            if self.fatal_error is not None:
                return
            self.fatal_error = error
        self._on_fatal_error(error)

    def _on_client_error(self, event: ClientError) -> None:
        """Ends the app after a fatal error of a client, for example a fenced one: only a new process recovers."""
        if event.is_fatal:
            self.stop_app(fatal_error(event, self.settings))

    def resize(self, workers: int) -> None:
        """Changes the number of worker threads; of too many, busy ones end after their job. Does not block.

        Raises:
            ConfigError: fewer than one.
        """
        if workers < 1:
            raise ConfigError(f"an app needs at least 1 worker, not {workers}", "workers")
        self._pool.resize(workers)
        self.app.events.emit(AppResized(app=self.app.name, workers=workers))

    def _listen(self) -> Callable[[], None]:
        events = self.app.events
        for group in self.groups:
            group.open()
        ends = [
            events.subscribe(ClientError, self._on_client_error),
            events.subscribe(ClientError, self.connections.on_error),
            hear_ends(self.stop_app),
            events.subscribe(OutputBlocked, self.blocked_outputs.on_blocked),
            events.subscribe(OutputUnblocked, self.blocked_outputs.on_unblocked),
        ]

        def end() -> None:
            for each in ends:
                each()

        return end

    def _end(self, deadline_s: float, *, is_clean: bool = True) -> bool:
        """Ends everything that `start` began; returns whether all was done in time, and was `is_clean` before.

        The partitions have been given back before, by `_leave_groups`.

        1. Look for no more topics, hear no more requests to stop, and start no more background functions.
        2. Join the workers, then the background functions.
        3. Commit the last transactions.
        4. Call the shutdown functions, then end the event loop that ran the async ones.
        5. Close callers, producers and the registry's client: what is queued is delivered.
        6. End the observers: thread ledger, extensions, events.
        """
        self._topic_watch.close(remaining_s(deadline_s))
        if self._end_stop_requests is not None:
            self._end_stop_requests()
        for group in self.groups:
            group.close_join_watch()
        self.connections.close()
        self.app.runs(None, None)
        call = self._stop_wait.call
        late = self._end_workers(deadline_s)
        late += call(lambda: drive(self._scope.close(remaining_s(deadline_s))), ["background functions"])
        for group in self.groups:
            group.close_transactions()
        shutdown_s = time.monotonic() + remaining_s(deadline_s, 1.0)
        late += call(lambda: self._lifecycle.shut_down(shutdown_s), ["shutdown functions"], 1.0)
        late += self._pool.end_loop(deadline_s)
        call(lambda: self.app.close_callers(remaining_s(deadline_s, 1.0)), None)
        undelivered = self._end_producers(deadline_s)
        call(lambda: self.app.schemas.close(remaining_s(deadline_s, 1.0)), None)
        is_clean = is_clean and not late and not undelivered
        self.app.events.emit(AppStopped(app=self.app.name, is_clean=is_clean))
        ledger.uninstall(self.app.name)
        is_clean = self._stop_extensions(deadline_s) and is_clean
        self._end_listening()
        for group in self.groups:
            group.close()
        self._has_begun = False
        return is_clean

    def _stop_extensions(self, deadline_s: float) -> bool:
        """Stops the extensions, the last first; returns whether none has failed."""
        failed = 0
        for extension in reversed(self.extensions):
            try:
                self._stop_wait.call(partial(extension.stop, remaining_s(deadline_s, 1.0)), None)
            except Exception:
                failed += 1
                logger.exception("%s could not be stopped", type(extension).__name__)
        return not failed

    def _end_producers(self, deadline_s: float) -> int:
        """Sends what is queued; returns how many messages were not acknowledged."""
        call = self._stop_wait.call
        undelivered = call(lambda: self.alone.close(remaining_s(deadline_s, 1.0)), 1)
        undelivered += call(lambda: self.app.close_producer(remaining_s(deadline_s, 1.0)), 1)
        if undelivered:
            logger.error("%d produced messages were not acknowledged before the shutdown's deadline", undelivered)
        return undelivered

    def _end_workers(self, deadline_s: float) -> list[str]:
        """Joins the threads that run jobs and calls; returns the names of those that still run at the deadline."""
        threads = self._pool.end_jobs(deadline_s)
        if self.responder is not None:
            threads += self._stop_wait.call(partial(self.responder.close, deadline_s), self.responder.threads())
        return self._pool.report_late(threads)
