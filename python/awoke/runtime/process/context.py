"""Small interfaces to the app that runs, and to the process that runs it, for the parts of the runtime.

`AppRunner` has all of it. A part takes the least of these that it needs, so that no part depends on the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, Unpack

from awoke import _native
from awoke._native import DeliveryHandle, Job
from awoke.declare.consumer import Application
from awoke.declare.group_routes import GroupKey, GroupRoutes
from awoke.declare.incoming import Incoming
from awoke.declare.injection.overrides import AppDependencies
from awoke.declare.lifecycle import BackgroundFunction, BetweenJobs, Lifecycle, Runner, StopRequests
from awoke.declare.patterns import Pattern
from awoke.declare.routing import Route
from awoke.errors import ConfigError
from awoke.observe.contexts import JobContexts
from awoke.observe.events import Events
from awoke.observe.ledger import Ledger
from awoke.observe.metrics.recorder import Recorder
from awoke.observe.tracing import Tracer
from awoke.payloads.formats.format import Format
from awoke.payloads.message import RecordOptions
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.topic_formats import TopicFormats
from awoke.payloads.topics import DeclaredTopics
from awoke.produce.middleware import Middleware
from awoke.rpc.caller.caller import Caller
from awoke.rpc.responder.methods import Rpc
from awoke.runtime.extension import Extension
from awoke.runtime.failures.failures import Failures
from awoke.runtime.process.assigned import AssignedPartitions
from awoke.runtime.process.dependencies import ProcessDependencies
from awoke.runtime.process.refusals import Refusals
from awoke.runtime.process.stopping import LastCommits
from awoke.runtime.process.transactions import Transactions
from awoke.runtime.watch.overdue import OverdueWatch
from awoke.settings import Loaded, Settings


class RunnableApp(Application, Protocol):
    """An app, as the runtime runs it; `awoke.App` is one."""

    @property
    def format(self) -> Format: ...
    @property
    def schemas(self) -> Schemas: ...
    @property
    def topic_formats(self) -> TopicFormats: ...
    @property
    def groups(self) -> Mapping[GroupKey, GroupRoutes]: ...
    @property
    def all_routes(self) -> Sequence[Route]: ...
    @property
    def patterns(self) -> Sequence[Pattern]: ...
    @property
    def read_topics(self) -> Sequence[str]: ...
    def match(self, topics: Iterable[str]) -> tuple[list[Route], list[ConfigError]]: ...
    def unmatched(self) -> list[Pattern]: ...
    @property
    def topics(self) -> DeclaredTopics: ...
    @property
    def rpc(self) -> Rpc: ...
    @property
    def lifecycle(self) -> Lifecycle: ...
    @property
    def cleanups(self) -> BetweenJobs: ...
    @property
    def dependencies(self) -> AppDependencies: ...
    @property
    def stop_requests(self) -> StopRequests: ...
    @property
    def middleware(self) -> Sequence[Middleware]: ...
    def around(self, route: Route) -> Sequence[Incoming]: ...
    def load_settings(self) -> Loaded: ...
    def use(self, **settings: Any) -> None: ...
    def extensions(self, runner: Any) -> Sequence[Extension]:
        """Makes the extensions of a runner (`AppRunner`), in the order of their start."""

    def begin_run(self) -> Callable[[], None]: ...
    def runs(self, start_background: Callable[[BackgroundFunction], object] | None, runner: Runner | None) -> None: ...
    def callers(self) -> dict[str, Caller]: ...
    def close_callers(self, timeout_s: float) -> None: ...
    def queued(self) -> tuple[int, int]: ...
    def close_producer(self, timeout_s: float | None = None) -> int: ...


class Producing(Protocol):
    """Sends records."""

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> DeliveryHandle: ...


class OutputContext(Protocol):
    """Sends results."""

    @property
    def tracer(self) -> Tracer | None: ...
    @property
    def producer(self) -> Producing: ...
    @property
    def alone(self) -> Producing:
        """Sends records that brokers could refuse because of others in their batch."""

    @property
    def topic_formats(self) -> TopicFormats:
        """The formats of the topics that have some, for what is sent to them; false where none has."""


class CommitContext(Protocol):
    """Commits offsets, and reports failures."""

    @property
    def events(self) -> Events: ...
    @property
    def member(self) -> _native.GroupMember | None:
        """None before the process has joined its group."""

    @property
    def transactions(self) -> Transactions | None:
        """None where no route is exactly-once."""

    @property
    def group(self) -> str: ...


class RecoveryContext(CommitContext, Protocol):
    """Ends jobs, and handles messages that fail."""

    @property
    def failures(self) -> Failures: ...
    @property
    def refusals(self) -> Refusals: ...
    @property
    def alone(self) -> Producing: ...
    def schema_loads(self) -> int:
        """Returns how many schemas were loaded from the registry. Does not block."""

    def pause_exhausted(self, job: Job, error: BaseException) -> None: ...
    def stop_app(self, error: BaseException) -> None:
        """Asks for the end of the app because of this error. Does not block."""


class InstanceContext(CommitContext, Protocol):
    """Makes instances of consumer classes."""

    @property
    def app(self) -> Application: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def settings(self) -> Settings: ...


class RouteContext(OutputContext, RecoveryContext, InstanceContext, Protocol):
    """Runs the code of one route."""

    @property
    def contexts(self) -> JobContexts:
        """Makes the contexts in which jobs and hooks run."""

    @property
    def app(self) -> RunnableApp: ...
    @property
    def dependencies(self) -> ProcessDependencies: ...
    @property
    def overdue(self) -> OverdueWatch: ...
    @property
    def metrics(self) -> Recorder | None: ...
    @property
    def last_commits(self) -> LastCommits: ...
    @property
    def assigned(self) -> AssignedPartitions: ...
