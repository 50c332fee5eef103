"""One process of an app: group member, schedulers, workers; started and stopped in order."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

from awoke import _native
from awoke.app import App
from awoke.errors import ConfigError, FencedError
from awoke.events import (
    AppResized,
    AppStarted,
    AppStopped,
    AppStopping,
    ClientError,
    CommitFailed,
    EventSource,
    OffsetsCommitted,
    PartitionPaused,
    PartitionResumed,
    PartitionRewound,
    PartitionsAssigned,
)
from awoke.metrics.recorder import Recorder
from awoke.rpc.responder.responder import Responder
from awoke.runtime import ledger
from awoke.runtime.alone import AloneProducer
from awoke.runtime.async_executor import AsyncExecutor
from awoke.runtime.connections import Connections
from awoke.runtime.engine_routes import engine_route
from awoke.runtime.exactly_once import Transactions, transactional_id_of
from awoke.runtime.executor import Executor
from awoke.runtime.failures import Failures
from awoke.runtime.joining import JoinWatch, fatal_error, instance_properties
from awoke.runtime.ledger import Ledger
from awoke.runtime.lifecycle import LifecycleRun, until
from awoke.runtime.observed import Observed
from awoke.runtime.overdue import OverdueWatch, stack_of
from awoke.runtime.own_thread import executor_of
from awoke.runtime.refusals import Refusals
from awoke.runtime.scope import Scope
from awoke.runtime.startup_checks import check_topics
from awoke.runtime.stopping import (
    COMMIT_S,
    LEAVE_GRACE_S,
    EngineEvents,
    InterruptibleWait,
    LastCommits,
    join_all,
    remaining_s,
    running_places,
    store_progress,
)
from awoke.runtime.worker import AsyncWorker, Worker, async_jobs_of, workers_of
from awoke.settings import client_properties
from awoke.tracing import Tracer
from awoke.web.endpoint import Endpoint

logger = logging.getLogger(__name__)


class AppRunner(Observed):
    """Runs an app in this process, beside other code: `start` once, then `stop`. Any thread may call everything here.

    `app.run()`, `app.serving()` and `awoke.testing.running` make one of their own. `on_give_up` is called with the error
    when the app can't go on; the caller is to stop it then. `on_stop` is called when `app.stop()` was called; without it
    the app is stopped on a thread of its own.
    """

    def __init__(
        self,
        app: App,
        on_give_up: Callable[[BaseException], object] | None = None,
        *,
        on_stop: Callable[[], object] | None = None,
        collects_metrics: bool = False,
        serves_metrics: bool = True,
    ) -> None:
        self.app = app
        self.settings = app.settings
        self.member: _native.GroupMember | None = None
        self.ledger = Ledger()
        self.overdue = OverdueWatch(app.events)
        self.tracer = Tracer(app.name, self.group) if self.settings.tracing else None
        is_asked_for = collects_metrics or self.settings.metrics_port is not None
        self.metrics = Recorder() if is_asked_for else None
        self.transactions: Transactions | None = None
        """Where a route is exactly-once: what commits results with offsets."""
        self.alone = AloneProducer(app)
        """Sends what would otherwise be refused for the sake of other records."""
        self.responder: Responder | None = None
        """Where the app has methods that others may call: what answers."""
        self.endpoint: Endpoint | None = None
        """Where metrics and health are served, if they are."""
        self._scope = Scope(app.name, 0, app.events, self.ledger)
        self._scope.on_failure(self.give_up)
        self._serves_metrics = serves_metrics
        """Whether this process listens at `metrics_port`; of a swarm only the supervisor does."""
        self._on_give_up = on_give_up or (lambda error: None)
        self._on_stop = on_stop or self.stop_soon
        self._scheduler = _native.Scheduler()
        self._async_scheduler = _native.Scheduler()
        self._workers: list[Worker] = []
        self._loop_worker: AsyncWorker | None = None
        self._worker_numbers = itertools.count(1)
        self._workers_wanted = workers_of(app)
        self._executors: dict[str, Executor] = {}
        self._resizing = threading.Lock()
        self.paused: dict[tuple[str, int], tuple[_native.Partition, BaseException]] = {}
        """Partitions that were left alone when a message was given up, and why."""
        self.failures = Failures()
        """The messages that fail and are tried again, and those that are to be skipped."""
        self.refusals = Refusals(self.group, transactional_id_of(self.settings, self.group), self.give_up)
        """What the brokers do not allow."""
        self.connections = Connections(app.settings)
        self._join_watch = JoinWatch(app.events, self.group, self.settings)
        self._lifecycle = LifecycleRun(app.lifecycle, app.events, self._call_async)
        self._source: EventSource | None = None
        self._changing = threading.Lock()
        """Held while the app starts or stops: a stop that comes during the start waits for it."""
        self._asking = threading.Lock()
        """Guards `_stopper`."""
        self._stopper: threading.Thread | None = None
        self._stop_wait = InterruptibleWait()
        self.last_commits = LastCommits(app.events)
        self._is_clean = True
        self._ended: Future[None] = Future()
        self._end_stop_requests: Callable[[], None] | None = None
        self.given_up: BaseException | None = None
        """Why the app stopped itself, if it did."""
        self.is_quiet = False
        self.began_s = time.monotonic()

    def start(self) -> None:
        """Checks the topics, starts the workers, calls the start-up functions and joins the group.

        Blocks up to `startup_timeout_s`, and for the start-up functions. Does nothing if `app.stop()` was called before.

        Raises:
            ConfigError: no route, or a setting that librdkafka refuses; BrokerUnreachable; UnknownTopic; what a
            start-up function raises.
        """
        with self._changing:
            self._end_stop_requests = self.app.stop_requests.listen(lambda: self._on_stop())
            if self._end_stop_requests is None:
                logger.info("app %s was stopped before it started", self.app.name)
                self._ended.set_result(None)
                return
            try:
                self._start()
            except BaseException:
                self._end_stop_requests()
                self._ended.set_result(None)
                raise

    def _start(self) -> None:
        if not self.app.routes and not self.app.rpc.methods:
            text = f"app {self.app.name!r} has no route: decorate something with @app.on(topic), or @app.rpc.method"
            raise ConfigError(text, "routes")
        self.app.load_settings().check_member()
        self._partitions_total = check_topics(self.app, self.settings)
        self._source = EventSource(EngineEvents(self.app.events, self._is_running))
        self._end_listening = self._listen()
        ledger.install()
        try:
            self._open_endpoint()
            if any(route.max_processing_s is not None for route in self.app.routes.values()):
                self.overdue.start()
            if self._has_transactions:
                self.transactions = Transactions(self, self._source.box)
            self._start_workers()
            self._lifecycle.start_up()
            if self.app.rpc.methods:
                self.responder = Responder(self, self.app.rpc, self.app.events, self._source.box)
                self.responder.start()
            self._join_watch.start()
            self.member = self._join()
            self.app.runs(lambda each: self._scope.background(*each), self)
        except BaseException:
            self._lifecycle.shut_down(time.monotonic() + self.settings.shutdown_timeout_s)
            self._end(time.monotonic() + 1.0)
            raise
        self.app.events.emit(AppStarted(app=self.app.name, group=self.group, topics=sorted(self._topics_in())))

    def _topics_in(self) -> list[str]:
        return [*self.app.routes, *([self.responder.topics.calls] if self.responder is not None else [])]

    @property
    def _has_transactions(self) -> bool:
        rpc = self.app.rpc
        is_rpc = bool(rpc.methods) and rpc.settings.mode == "exactly_once"
        return is_rpc or any(route.is_exactly_once for route in self.app.routes.values())

    @property
    def schedulers(self) -> list[_native.Scheduler]:
        """Of the worker threads, of the event loop, and of the responder."""
        more = [] if self.responder is None else [self.responder.scheduler]
        return [self._scheduler, self._async_scheduler, *more]

    def quiet(self) -> None:
        """Begin no new jobs. Does not block."""
        self.is_quiet = True
        for each in self.schedulers:
            each.quiet()

    def hurry(self) -> bool:
        """Makes a stop wait for running jobs no longer: what is done is committed. Does not block.

        Returns whether this is the first call.
        """
        if not self._stop_wait.hurry():
            return False
        store_progress(*self._work())
        if self.member is not None:
            self.last_commits.note_all(self.app, self.partitions())
            self.member.stop_waiting()
        return True

    def _work(self) -> tuple[list[threading.Thread], list[Any]]:
        """Returns the threads and the coroutines that run jobs and hooks."""
        threads = [worker.thread for worker in self._workers]
        for executor in self._executors.values():
            threads += executor.threads()
        loop = self._loop_worker
        return (threads, []) if loop is None else ([*threads, loop.thread], loop.coroutines())

    def _is_running(self, topic: str, partition: int) -> bool:
        route = self.app.routes.get(topic)
        # The others' jobs last until their results are acknowledged, which keeps no thread.
        is_seen = route is not None and route.output is None and not route.is_exactly_once
        is_hurried = self._stop_wait.is_hurried
        found = running_places(*self._work(), with_hooks=not is_hurried)
        return (topic, partition) in found or not (is_seen or is_hurried)

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish running jobs, commit, leave the group, deliver what was produced, join the workers.

        Whether all of it was done within `timeout_s` (None: the setting); what was still running is logged with its stack.
        A second call waits for the first and returns the same.
        """
        with self._changing:
            if self._source is not None:
                try:
                    self._is_clean = self._stop(timeout_s)
                finally:
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
        return self._end(deadline_s, is_clean=self._leave_group(deadline_s))

    def _leave_group(self, deadline_s: float) -> bool:
        """Commits and leaves the group; returns whether all that is stored is committed."""
        member = self.member
        if member is None:
            return True
        end = self.last_commits.watch()
        self.last_commits.note_all(self.app, self.partitions())
        within_s = remaining_s(deadline_s) + LEAVE_GRACE_S
        has_left = self._stop_wait.call(lambda: member.close(remaining_s(deadline_s)), False, COMMIT_S, within_s)
        is_committed = self.last_commits.report()
        end()
        return has_left and is_committed

    def stop_soon(self) -> None:
        """Stops the app on a thread of its own. Does not block: a handler may call it, too."""
        with self._asking:
            if self._stopper is None and not self._ended.done():
                self._stopper = threading.Thread(target=self.stop, name="awoke-stopping", daemon=True)
                self._stopper.start()

    @property
    def has_ended(self) -> bool:
        """Whether the app has stopped, or was not to start. Does not block."""
        return self._ended.done()

    async def ended(self) -> None:
        """Waits until the app has stopped, whatever stopped it.

        Raises the error with which the app gave up, if it did.
        """
        await until(self._ended)
        if self.given_up is not None:
            raise self.given_up

    def give_up(self, error: BaseException) -> None:
        """Ask for the app's end because of this error."""
        if self.given_up is None:
            self.given_up = error
            self._on_give_up(error)

    def _on_client_error(self, event: ClientError) -> None:
        """A client that can't go on (fenced by another instance, say) never recovers: whoever runs us must start anew."""
        if event.is_fatal:
            self.give_up(fatal_error(event, self.settings))

    def resize(self, workers: int) -> None:
        """Have so many worker threads from now on; of too many, busy ones end after their job. Does not block.

        Raises:
            ConfigError: fewer than one.
        """
        if workers < 1:
            raise ConfigError(f"an app needs at least 1 worker, not {workers}", "workers")
        with self._resizing:
            more = workers - self._workers_wanted
            self._workers_wanted = workers
            self._workers = [worker for worker in self._workers if worker.thread.is_alive()]
            if self._executors and more > 0:
                self._add_workers(more)
            elif self._executors and more < 0:
                self._scheduler.dismiss(-more)
        self.app.events.emit(AppResized(app=self.app.name, workers=workers))

    def pause_exhausted(self, job: _native.Job, error: BaseException) -> None:
        """Leave a job's partition alone, until `app.resume` or a rebalance."""
        with contextlib.suppress(FencedError):
            partition = job.assignment()
            partition.pause()
            self.paused[(job.topic, job.partition)] = (partition, error)
        self.app.events.emit(PartitionPaused(topic=job.topic, partition=job.partition, error=error))

    def resume(self, topic: str, partition: int) -> bool:
        """Resumes a partition that is paused or stuck; returns whether it was. Does not block."""
        assignment, _ = self.paused.pop((topic, partition), (None, None))
        is_paused = assignment is not None and assignment.is_current  # A rebalance has ended an earlier pause.
        is_stuck = self.member is not None and self.member.resume(topic, partition)
        if not is_paused and not is_stuck:
            return False
        if assignment is not None:
            with contextlib.suppress(FencedError):
                assignment.resume()
        self.app.events.emit(PartitionResumed(topic=topic, partition=partition))
        return True

    def skip(self, topic: str, partition: int, offset: int) -> bool:
        """Skips a message that fails, at its next try; returns false where it does not fail. Does not block."""
        if not self.failures.ask(topic, partition, offset):
            return False
        if (topic, partition) in self.paused:
            self.resume(topic, partition)
        return True

    def blocking(self, topic: str, partition: int) -> list[int]:
        """Returns the offsets of the messages that fail and are tried again, in order. Does not block."""
        return self.failures.blocking(topic, partition)

    def _listen(self) -> Callable[[], None]:
        events = self.app.events
        ends = [
            events.subscribe(ClientError, self.refusals.on_refused),
            events.subscribe(CommitFailed, self.refusals.on_refused),
            events.subscribe(OffsetsCommitted, self.refusals.on_group_allowed),
            events.subscribe(PartitionsAssigned, self.refusals.on_group_allowed),
            events.subscribe(ClientError, self._on_client_error),
            events.subscribe(ClientError, self.connections.on_error),
            events.subscribe(PartitionRewound, self.failures.on_rewound),
        ]
        if self.metrics is not None:
            ends.append(self.app.events.subscribe("*", self.metrics.on_event))

        def end() -> None:
            for each in ends:
                each()

        return end

    def _open_endpoint(self) -> None:
        if self.metrics is not None:
            self.metrics.attach(self)
        if self.settings.metrics_port is not None and self._serves_metrics:
            host, names = self.settings.metrics_host, self.settings.metrics_allowed_hosts
            self.endpoint = Endpoint(self.settings.metrics_port, self, host, names)
            self.endpoint.start()
            logger.info("metrics, health and threads at http://%s:%d", host, self.endpoint.port)

    def _end(self, deadline_s: float, *, is_clean: bool = True) -> bool:
        """Ends everything that `start` began; returns whether all was done in time, and was `is_clean` before."""
        assert self._source is not None
        if self._end_stop_requests is not None:
            self._end_stop_requests()
        self._join_watch.close()
        self.connections.close()
        self.app.runs(None, None)
        call = self._stop_wait.call
        late = self._end_workers(deadline_s)
        late += call(lambda: self._scope.close(remaining_s(deadline_s)), ["background functions"])
        if self.transactions is not None:
            call(self.transactions.close, None, COMMIT_S)
        shutdown_s = time.monotonic() + remaining_s(deadline_s, 1.0)
        late += call(lambda: self._lifecycle.shut_down(shutdown_s), ["shutdown functions"], 1.0)
        late += self._end_loop(deadline_s)
        call(lambda: self.app.close_callers(remaining_s(deadline_s, 1.0)), None)
        undelivered = self._end_producers(deadline_s)
        is_clean = is_clean and not late and not undelivered
        self.app.events.emit(AppStopped(app=self.app.name, is_clean=is_clean))
        if self.overdue.is_started:
            self.overdue.close()
        ledger.uninstall()
        if self.endpoint is not None:
            self.endpoint.close()
        self._end_listening()
        self._source.close()
        self._source = None
        return is_clean

    def _end_producers(self, deadline_s: float) -> int:
        """Sends what is queued; returns how many messages were not acknowledged."""
        call = self._stop_wait.call
        undelivered = call(lambda: self.alone.close(remaining_s(deadline_s, 1.0)), 1)
        undelivered += call(lambda: self.app.close_producer(remaining_s(deadline_s, 1.0)), 1)
        if undelivered:
            logger.error("%d produced messages were not acknowledged before the shutdown's deadline", undelivered)
        return undelivered

    def _start_workers(self) -> None:
        routes = self.app.routes.values()
        self._executors = {route.topic: executor_of(self, route) for route in routes if not route.is_async}
        if self._executors:
            self._add_workers(self._workers_wanted)
        executors = {route.topic: AsyncExecutor(self, route) for route in routes if route.is_async}
        if executors or self.app.lifecycle.has_async:
            jobs_max = async_jobs_of(app=self.app)
            self._loop_worker = AsyncWorker("awoke-loop", self._async_scheduler, executors, jobs_max)
            self._loop_worker.start()

    def _add_workers(self, count: int) -> None:
        for _ in range(count):
            name = f"awoke-worker-{next(self._worker_numbers)}"
            worker = Worker(name, self._scheduler, self._executors)
            self._workers.append(worker)
            worker.start()

    def _join(self) -> _native.GroupMember:
        assert self._source is not None
        routes = [
            engine_route(route, self.settings, self._async_scheduler if route.is_async else self._scheduler)
            for route in self.app.routes.values()
        ]
        if self.responder is not None:
            routes.append(self.responder.route)
        _native.set_fetched_batch_max(self.settings.fetch_batch_max_mb * 1024 * 1024)
        return _native.GroupMember(
            client_properties(
                self.settings, **{"group.id": self.group, **instance_properties(self.settings, self._topics_in())}
            ),
            routes,
            self.settings.for_engine(self._partitions_total),
            None if self.transactions is None else self.transactions.native,
            self._source.box,
        )

    def _end_workers(self, deadline_s: float) -> list[str]:
        """Join the workers; the names of those that are still running at the deadline."""
        self._scheduler.close()
        self._async_scheduler.close()
        with self._resizing:
            threads = [worker.thread for worker in self._workers]
        self._stop_wait.call(partial(join_all, threads, deadline_s), None)
        for executor in self._executors.values():
            threads += self._stop_wait.call(partial(executor.close, deadline_s), executor.threads())
        loop = self._loop_worker
        if loop is not None and not self._stop_wait.call(lambda: loop.join_jobs(remaining_s(deadline_s)), False):
            threads.append(loop.thread)
        if self.responder is not None:
            threads += self._stop_wait.call(partial(self.responder.close, deadline_s), self.responder.threads())
        late_threads = [thread for thread in threads if thread.is_alive()]
        for thread in late_threads:
            logger.error("%s is still running:\n%s", thread.name, stack_of(thread))
        return [thread.name for thread in late_threads]

    def _end_loop(self, deadline_s: float) -> list[str]:
        """Ends the event loop, which has run the async shutdown functions; its name if it does not end in time."""
        loop = self._loop_worker
        if loop is None:
            return []
        loop.finish()
        if not loop.join_jobs(0.0):
            return []  # A job is late, which was said.
        return [] if loop.join(remaining_s(deadline_s, 1.0)) else [loop.thread.name]

    def _call_async(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
        assert self._loop_worker is not None, "an async function was registered during the start"
        return self._loop_worker.call(function)
