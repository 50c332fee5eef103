"""A process without brokers: what the code of one route sees of the app that runs, of its group and its clients."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, cast

import msgspec

from awoke._native import GroupMember, Job
from awoke.app.app import App
from awoke.declare.routing import Route
from awoke.errors import ConfigError
from awoke.observe import ledger
from awoke.observe.contexts import JobContexts
from awoke.observe.events import Event, Events, PartitionPaused
from awoke.produce.producer import Producer
from awoke.runtime.failures.failures import Failures
from awoke.runtime.process.assigned import AssignedPartitions
from awoke.runtime.process.dependencies import ProcessDependencies
from awoke.runtime.process.refusals import Refusals
from awoke.runtime.process.stopping import LastCommits
from awoke.runtime.process.transactions import Transactions
from awoke.runtime.watch.overdue import OverdueWatch
from awoke.testing.memory.producing import MemoryMember, MemoryProducer, MemoryTransactions, Sent


class MemoryEvents(Events):
    """Keeps the events of a run, and passes them on to the app's."""

    def __init__(self, events: Events, stop_app: Callable[[BaseException], object]) -> None:
        super().__init__()
        self._events, self._stop_app = events, stop_app
        self.seen: list[Event] = []

    def emit(self, event: Event | str, /, **fields: Any) -> None:
        """Tells the app's subscribers. Blocks as long as they do.

        An outcome of pytest's, as `pytest.fail` in a handler, is no failure of the message: it ends the run.
        """
        assert isinstance(event, Event), "user code emits its events to the app's"
        self.seen.append(event)
        outcomes, error = sys.modules.get("_pytest.outcomes"), getattr(event, "error", None)
        if outcomes is not None and isinstance(error, outcomes.OutcomeException):
            self._stop_app(error)
        self._events.emit(event)


class MemoryProcess:
    """The context in which the code of one route runs (`RouteContext`). Any thread."""

    tracer = None
    metrics = None

    def __init__(self, app: App, route: Route, sent: Callable[[Sent], object]) -> None:
        self.stopped_by: BaseException | None = None
        """The error that has ended the app, if there is one."""
        self.app, self.route = app, without_jitter(route)
        self.settings, self.topic_formats = app.settings, app.topic_formats
        self.group = route.group or self.settings.group or app.name
        self.events = MemoryEvents(app.events, self.stop_app)
        self.memory = MemoryProducer(app, sent)
        self.producer = self.alone = cast("Producer", self.memory)
        self.member = cast("GroupMember", MemoryMember())
        is_exactly_once = route.is_exactly_once
        self.transactions = cast("Transactions", MemoryTransactions(self.memory)) if is_exactly_once else None
        self.ledger, self.contexts = ledger.Ledger(), JobContexts()
        self.overdue = OverdueWatch(self.events)
        self.failures, self.assigned = Failures(), AssignedPartitions()
        self.refusals = Refusals(self.group, "", self.stop_app)
        self.last_commits = LastCommits(self.events)
        self.dependencies = ProcessDependencies(app.dependencies, [self.route], self.events, _no_thread)

    def schema_loads(self) -> int:
        """Returns how many schemas were loaded from the registry."""
        return self.app.schemas.loads

    def stop_app(self, error: BaseException) -> None:
        """Ends the run because of this error."""
        self.stopped_by = self.stopped_by or error

    def pause_exhausted(self, job: Job, error: BaseException) -> None:
        """Pauses the job's partition."""
        job.assignment().pause()
        self.events.emit(PartitionPaused(group=self.group, topic=job.topic, partition=job.partition, error=error))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Has the app's own producer be the one in memory, and records threads that are started."""
        ledger.install()
        try:
            with self.app.sending_by(self.producer):
                yield
        finally:
            ledger.uninstall()


def without_jitter(route: Route) -> Route:
    """Returns the route with delays that are the same in each run."""
    found = copy.copy(route)
    found.retry = msgspec.structs.replace(route.retry, jitter=0.0)
    return found


def _no_thread(make: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
    raise AssertionError("dependencies are opened on the thread of the run")


def route_of(app: App, topic: str, group: str | None = None) -> Route:
    """Returns the app's route of a topic, in this group, or in the only one that reads it.

    Raises:
        ConfigError: there is none, or there are several.
    """
    app.match([topic])
    groups = [each for key, each in app.groups.items() if group in (None, key.said)]
    found = [each.routes[topic] for each in groups if topic in each.routes]
    if len(found) == 1:
        return found[0]
    if found:
        named = sorted(str(each.group) for each in found)
        raise ConfigError(f"topic {topic!r} is read by the groups {named}: say group=…", "group")
    known = ", ".join(sorted(app.read_topics)) or "none"
    raise ConfigError(f"app {app.name!r} has no route for topic {topic!r}; it reads: {known}", "topic")
