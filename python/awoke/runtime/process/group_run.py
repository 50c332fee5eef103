"""One consumer group of an app in this process: its member, its transactions, and the state of its partitions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec

from awoke import _native
from awoke._native import HookJob, Job
from awoke.declare.group_routes import OWN, GroupRoutes
from awoke.declare.routing import Route
from awoke.errors import AwokeError, ConfigError, FencedError
from awoke.observe.contexts import JobContexts
from awoke.observe.events import (
    ClientError,
    CommitFailed,
    Event,
    Events,
    EventSource,
    OffsetsCommitted,
    PartitionPaused,
    PartitionResumed,
    PartitionRewound,
    PartitionsAssigned,
    TopicMatched,
)
from awoke.observe.ledger import Ledger
from awoke.observe.metrics.recorder import Recorder
from awoke.observe.partitions import PartitionState
from awoke.observe.tracing import Tracer
from awoke.payloads.topic_formats import TopicFormats
from awoke.rpc.responder.call_log import CallLog
from awoke.runtime.failures.failures import Failures, Leaving
from awoke.runtime.jobs.alone import AloneProducer
from awoke.runtime.jobs.worker_pool import WorkerPool
from awoke.runtime.process.assigned import AssignedPartitions
from awoke.runtime.process.context import Producing, RunnableApp
from awoke.runtime.process.dependencies import ProcessDependencies
from awoke.runtime.process.joining import JoinWatch, instance_properties
from awoke.runtime.process.refusals import GROUP, Refusals
from awoke.runtime.process.stopping import (
    COMMIT_S,
    LEAVE_GRACE_S,
    EngineEvents,
    InterruptibleWait,
    LastCommits,
    remaining_s,
    running_places,
)
from awoke.runtime.process.transactions import Transactions, sends_letters, transactional_id_of
from awoke.runtime.watch.overdue import OverdueWatch
from awoke.settings import Settings, client_properties
from awoke.settings.kafka import NAMED

TURN_S_MIN = 0.01
"""A job of single messages runs at least this long before another partition has its turn."""


class Process(Protocol):
    """The parts of a running app that all of its groups share."""

    @property
    def app(self) -> RunnableApp: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def group(self) -> str:
        """The name of the app's own group."""

    @property
    def contexts(self) -> JobContexts: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def overdue(self) -> OverdueWatch: ...
    @property
    def alone(self) -> AloneProducer: ...
    @property
    def metrics(self) -> Recorder | None: ...
    @property
    def call_log(self) -> CallLog | None: ...
    @property
    def dependencies(self) -> ProcessDependencies: ...
    def schema_loads(self) -> int: ...
    def stop_app(self, error: BaseException) -> None: ...
    def on_assigned(self, group: str, topic: str, partition: int) -> None:
        """Hears of a partition that a group was given, before its first job."""


class GroupEvents(Events):
    """The events of one group. They get the name of the group, and go on to the app's events."""

    def __init__(self, events: Events, group: str) -> None:
        super().__init__()
        self._events, self._group = events, group

    def emit(self, event: Event | str, /, **fields: Any) -> None:
        """Tells the subscribers of the group, and those of the app. Blocks as long as they do."""
        assert isinstance(event, Event), "user code emits its events to the app's"
        if "group" in event.__struct_fields__:
            event = msgspec.structs.replace(event, group=self._group)
        self.tell(event)
        self._events.emit(event)


class GroupRun:
    """One consumer group of an app that runs, and the context in which the code of its routes runs.

    Any thread may call everything here.
    """

    def __init__(self, process: Process, declared: GroupRoutes, pool: WorkerPool, stop_wait: InterruptibleWait) -> None:
        self.app, self.ledger, self.contexts = process.app, process.ledger, process.contexts
        self.settings = settings_of(process.settings, declared)
        self.overdue, self.alone, self.metrics = process.overdue, process.alone, process.metrics
        self.call_log = process.call_log
        self.dependencies, self.schema_loads, self.stop_app = (
            process.dependencies,
            process.schema_loads,
            process.stop_app,
        )
        self._declared, self._pool, self._stop_wait = declared, pool, stop_wait
        self.is_own = declared.key == OWN
        """True for the app's own group: routes without `group`, and remote calls."""
        self.is_fixed = declared.key.is_fixed
        """True for named partitions, which no group assigns."""
        self.group = declared.key.name(process.group)
        """The name of the group."""
        conventions = self.settings.tracing_conventions
        self.tracer = Tracer(self.app.name, self.group, conventions) if self.settings.tracing else None
        self.member: _native.GroupMember | None = None
        self.transactions: Transactions | None = None
        """Commits results with offsets, where a route is exactly-once."""
        self.paused: dict[tuple[str, int], tuple[_native.Partition, BaseException]] = {}
        """Partitions that are paused because a message is exhausted, and why."""
        self.assigned = AssignedPartitions(partial(process.on_assigned, self.group))
        self.failures = Failures()
        """The messages that fail and are tried again, and those that are to be skipped."""
        self.refusals = Refusals(self.group, transactional_id_of(self.settings, self.group), self.stop_app)
        """The permissions that brokers deny."""
        self._heard = GroupEvents(self.app.events, self.group)
        self.last_commits = LastCommits(self._heard)
        self._join_watch = JoinWatch(self._heard, self.group, self.settings)
        self._source: EventSource | None = None
        self._end_listening: list[Callable[[], None]] = []

    @property
    def events(self) -> Events:
        """The app's events."""
        return self.app.events

    @property
    def routes(self) -> Mapping[str, Route]:
        """The routes by topic."""
        return self._declared.routes

    @property
    def has_routes(self) -> bool:
        """True if it has a route, or a pattern."""
        return bool(self._declared.all_routes)

    @property
    def topic_formats(self) -> TopicFormats:
        """The formats of the topics that have some, for what is sent to them."""
        return self.app.topic_formats

    @property
    def producer(self) -> Producing:
        """The app's producer."""
        return self.app.producer

    @property
    def box(self) -> _native.EventBox:
        """The box for the events of its clients."""
        assert self._source is not None
        return self._source.box

    def open(self) -> None:
        """Listens to the events of its clients. Does not block."""
        listen = self._heard.subscribe
        self._end_listening = [
            listen(ClientError, self.refusals.on_refused),
            listen(CommitFailed, self.refusals.on_refused),
            listen(OffsetsCommitted, self.refusals.on_group_allowed),
            listen(PartitionsAssigned, self.refusals.on_group_allowed),
            listen(PartitionRewound, self.failures.on_rewound),
        ]
        self._source = EventSource(EngineEvents(self._heard, self._is_running))

    def open_transactions(self) -> None:
        """Opens the transactions, where a route is exactly-once. Does not block."""
        rpc = self.app.rpc
        is_rpc = self.is_own and bool(rpc.methods) and rpc.settings.mode == "exactly_once"
        if is_rpc or any(route.is_exactly_once for route in self._declared.all_routes):
            self.transactions = Transactions(
                self.settings,
                self.group,
                self.app.format,
                self.app.middleware,
                self.app.topic_formats,
                self.box,
                may_send_letters=sends_letters(self._declared.all_routes),
            )

    def join(self, more: Iterable[_native.Route], topics_more: Iterable[str], partitions: int, members: int) -> None:
        """Joins the group with its routes and `more`, and watches how long that takes.

        `topics_more` are the topics of `more`, `partitions` is the number of partitions of all topics, and `members`
        the number of members that share the memory for fetched messages.
        """
        if not self.is_fixed:
            self._join_watch.start()
        routes = [engine_route(route, self.settings, self._pool.scheduler_of(route)) for route in self.routes.values()]
        named = [] if self.is_fixed else [*self._declared.subscribed, *topics_more]
        own = instance_properties(self.settings, named) if named else {}
        self.member = _native.GroupMember(
            client_properties(self.settings, **{"group.id": self.group, "client.id": self._client_id(), **own}),
            [*routes, *more],
            self.settings.for_engine(partitions, members),
            None if self.transactions is None else self.transactions.native,
            self.box,
        )

    def _client_id(self) -> str:
        """Returns the `client.id` of its member, by which the engine finds members of another app."""
        return self.settings.kafka.get("client.id", NAMED + self.app.name)

    def owns(self, route: Route) -> bool:
        """Tells whether a route belongs to the group."""
        return self.routes.get(route.topic) is route

    def read(self, route: Route) -> None:
        """Begins to read a topic that a pattern has matched."""
        self._pool.add(self, route)
        if self.member is not None:
            self.member.read(engine_route(route, self.settings, self._pool.scheduler_of(route)))
            self._heard.emit(TopicMatched(topic=route.topic))

    def running(self) -> list[Job | HookJob]:
        """Returns its jobs and hooks that run now. Does not block."""
        numbers = {route.number for route in list(self.routes.values())}
        return [work for work in self._pool.running() if work.route_number in numbers]

    def _is_running(self, topic: str, partition: int) -> bool:
        route = self.routes.get(topic)
        # The others' jobs last until their results are acknowledged, which keeps no thread.
        is_seen = route is not None and route.output is None and not route.is_exactly_once
        is_interrupted = self._stop_wait.is_interrupted
        found = running_places(self.running(), with_hooks=not is_interrupted)
        return (topic, partition) in found or not (is_seen or is_interrupted)

    def partitions(self) -> list[PartitionState]:
        """Returns the partitions that are assigned now, with their offsets. Does not block."""
        return [] if self.member is None else [PartitionState.of(state) for state in self.member.partitions()]

    def kept_back(self) -> set[tuple[str, int]]:
        """Returns the partitions from which no further messages are taken: paused, or as many as allowed are under way.

        Does not block.
        """
        return set() if self.member is None else {each[:2] for each in self.member.pulled() if each[3]}

    def stuck(self) -> list[tuple[str, int, str, bool]]:
        """Returns partitions, and topics (partition -1), that give no messages any more: why, and whether `resume`
        helps.

        Does not block.
        """
        return [] if self.member is None else self.member.stuck()

    def unowned(self) -> list[tuple[str, int]]:
        """Returns the partitions that no member of the group owns, as far as this one compares. Does not block."""
        return [] if self.member is None else self.member.unowned()

    def strangers(self) -> tuple[list[str], list[str]]:
        """Returns the names of other apps in the group, and topics of its members that this app does not read, as far
        as this member compares.

        Does not block.
        """
        return ([], []) if self.member is None else self.member.strangers()

    def failing(self) -> list[tuple[str, int]]:
        """Returns topic and partition of each message that has failed and is tried again. Does not block."""
        return [place for place, _ in self.failures.all()]

    def fetch_queue_bytes(self) -> int | None:
        """Returns the most bytes that are fetched ahead of each partition; None where librdkafka's own settings
        decide."""
        return None if self.member is None else self.member.fetch_queue_bytes()

    def why_not_ready(self) -> str | None:
        """Returns why it processes no messages, as far as it knows; None where it does. Does not block."""
        if self.member is None or not self.refusals.is_allowed(GROUP):
            if self.is_fixed:
                return "it does not read its named partitions yet"
            name = "its group" if self.is_own else f"its group {self.group}"
            return f"{name} has not given it partitions yet"
        return None

    def pause_exhausted(self, job: Job, error: BaseException) -> None:
        """Pauses a job's partition, until `app.resume` or a rebalance. Does not block."""
        with contextlib.suppress(FencedError):
            partition = job.assignment()
            partition.pause()
            self.paused[(job.topic, job.partition)] = (partition, error)
        self._heard.emit(PartitionPaused(topic=job.topic, partition=job.partition, error=error))

    def pause(self, topic: str, partition: int, why: str) -> bool:
        """Pauses a partition, until `resume` or a rebalance; returns false where it is not assigned. Does not block."""
        assignment = self.assigned.find(topic, partition)
        if assignment is None:
            return False
        try:
            assignment.pause()
        except FencedError:
            return False
        error = AwokeError(why)
        self.paused[(topic, partition)] = (assignment, error)
        self._heard.emit(PartitionPaused(topic=topic, partition=partition, error=error))
        return True

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Goes on from an offset after the running job; returns false where the partition is not assigned."""
        assignment = self.assigned.find(topic, partition)
        if assignment is None:
            return False
        try:
            assignment.seek(offset)
        except FencedError:
            return False
        return True

    def seek_time(self, topic: str, partition: int, timestamp_ms: int) -> bool:
        """Goes on from the first message at or after a time; else as `seek`. Blocks: the brokers look it up."""
        assignment = self.assigned.find(topic, partition)
        try:
            return assignment is not None and self.seek(topic, partition, assignment.offset_at(timestamp_ms))
        except FencedError:
            return False

    def retry_now(self, topic: str, partition: int) -> bool:
        """Ends the back-off of failing messages; returns false where none fails. Does not block."""
        if not self.failures.retry_now(topic, partition):
            return False
        if (topic, partition) in self.paused:
            self.resume(topic, partition)
        return True

    def dead_letter_now(self, topic: str, partition: int, offset: int) -> bool:
        """Sends a failing message to the dead letter topic at its next try; returns false where it does not fail.

        Does not block.

        Raises:
            ConfigError: Its route has no dead letter topic.
        """
        if offset not in self.failures.blocking(topic, partition):
            return False
        route = self.routes.get(topic)
        if route is None or route.dead_letter is None:
            raise ConfigError(f"the route of {topic} has no dead letter topic: skip the message instead", "dead_letter")
        return self._leave(topic, partition, offset, "dead_letter")

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
        self._heard.emit(PartitionResumed(topic=topic, partition=partition))
        return True

    def skip(self, topic: str, partition: int, offset: int) -> bool:
        """Skips a failing message at its next try; returns false where it does not fail. Does not block."""
        return self._leave(topic, partition, offset, "skip")

    def _leave(self, topic: str, partition: int, offset: int, how: Leaving) -> bool:
        if not self.failures.ask(topic, partition, offset, how):
            return False
        if (topic, partition) in self.paused:
            self.resume(topic, partition)
        return True

    def note_commits(self) -> None:
        """Notes what is stored and committed now, to compare it at the end."""
        is_rpc_exactly_once = self.app.rpc.settings.mode == "exactly_once"
        self.last_commits.note_all(self.routes, self.partitions(), is_rpc_exactly_once=is_rpc_exactly_once)

    def stop_waiting(self) -> None:
        """Ends the wait for running jobs while the group is left. Does not block."""
        if self.member is not None:
            self.note_commits()
            self.member.stop_waiting()

    def leave(self, deadline_s: float) -> bool:
        """Commits and leaves the group; returns whether all that is stored is committed. Blocks."""
        member = self.member
        if member is None:
            return True
        end = self.last_commits.watch()
        self.note_commits()
        within_s = remaining_s(deadline_s) + LEAVE_GRACE_S
        has_left = self._stop_wait.call(lambda: member.close(remaining_s(deadline_s)), False, COMMIT_S, within_s)
        is_committed = self.last_commits.report()
        end()
        return has_left and is_committed

    def close_join_watch(self) -> None:
        """Ends the watch over the join. Blocks for a moment."""
        self._join_watch.close()

    def close_transactions(self) -> None:
        """Commits the last transaction."""
        if self.transactions is not None:
            self._stop_wait.call(self.transactions.close, None, COMMIT_S)

    def close(self) -> None:
        """Stops listening. Closing again does nothing."""
        for each in self._end_listening:
            each()
        self._end_listening = []
        if self._source is not None:
            self._source.close()
            self._source = None


def settings_of(settings: Settings, declared: GroupRoutes) -> Settings:
    """Returns the settings of a group. If a transactional id is set, each group gets one of its own."""
    if declared.key == OWN or settings.transactional_id is None:
        return settings
    name = declared.key.name("")
    return msgspec.structs.replace(settings, transactional_id=f"{settings.transactional_id}.{name}")


def engine_route(route: Route, settings: Settings, scheduler: _native.Scheduler) -> _native.Route:
    """Returns the engine's route; its jobs come from this scheduler."""
    return _native.Route(
        route.topic,
        scheduler,
        messages_max=route.batch.max_messages,
        bytes_max=route.batch.max_bytes,
        wait_max_s=route.batch.max_wait_s,
        delay_s=route.flow.delay_s,
        rate_per_s=route.flow.per_s,
        weight=route.weight,
        tick_every_s=route.tick_every_s,
        start=route.start,
        concurrency=route.lanes,
        is_transactional=route.is_exactly_once,
        turn_max_s=None if route.consumer is not None else max(TURN_S_MIN, settings.commit_interval_s / 4),
        batch_time_max_s=route.batch.max_time_s,
        stores_by_hand=route.is_manual,
        jobs_max=route.jobs_max,
        number=route.number,
        partitions=list(route.partitions),
        tables=[table.native for table in route.tables],
    )
