"""Answers the queries of other processes for the rows of an app's tables, in each process that has some of them.

A table is a service of awoke's RPC. This process reads, without a group, those partitions of its topic of requests
whose rows it has: a request comes to the owner of the row. Offsets are committed, so that the next owner of a partition
reads the requests that this one has not answered.

The thread:
1. create the topics of requests and replies that do not exist, again after an error, with a back-off;
2. whenever the partitions of tables change, end the answering, and begin it with those that are there now;
3. end at `stop`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from awoke import _native
from awoke._native import Signal
from awoke.admin import Admin
from awoke.declare.lifecycle import BetweenJobs
from awoke.errors import AwokeError, ClosedError
from awoke.observe.contexts import JobContexts
from awoke.observe.events import (
    ClientError,
    Event,
    Events,
    EventSource,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from awoke.observe.process import ThisProcess
from awoke.payloads.formats.msgpack import msgpack
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc.context import current_call
from awoke.rpc.errors import FailedPrecondition, InvalidArgument, Restoring
from awoke.rpc.protocol import ServiceTopics
from awoke.rpc.responder.endings import PartitionWithdrawn
from awoke.rpc.responder.methods import Rpc
from awoke.rpc.responder.responder import Responder
from awoke.rpc.topics import ensure_partitions
from awoke.runtime.extension import Extension
from awoke.runtime.process.runner import AppRunner
from awoke.settings import Settings, client_properties
from awoke.state.queries import (
    GET,
    KEYS_MAX,
    PAGE_BYTES_MAX,
    SCAN,
    FoundValues,
    RowLookup,
    RowOrigin,
    RowPage,
    RowScan,
    pages,
)
from awoke.state.table import Table
from awoke.waiting.backoff import Backoff
from awoke.waiting.clock import monotonic_s

logger = logging.getLogger(__name__)

TOPICS_WITHIN_S = 5.0
"""A start waits this long for the topics of queries."""
AGAIN = Backoff(1.0, 60.0)
AGAIN_S = 0.1
"""A request for a partition that is about to be given back is read again after this time, by its next owner mostly."""
CLOSE_S = 1.0
SCANS_MAX = 4
"""The scans of a table that one process executes at once: each holds the rows of a partition until it is read."""
SCAN_WAIT_S = 30.0
"""The longest time that a scan waits for its caller."""
CHANGES = (PartitionsAssigned, PartitionsRevoked, PartitionsLost)

Owned = Mapping[str, tuple[int, ...]]
"""The partitions of each table that this process has, by the name of the table; tables without any are left out."""


def process_name() -> str:
    """Returns the name of this process in answers: host, process id, and the node's number in a swarm."""
    name = f"{socket.gethostname()}.{os.getpid()}"
    return name if ThisProcess.node is None else f"{name}.{ThisProcess.node}"


class ServedTable(NamedTuple):
    """A table, and how far the topic of its route is committed."""

    table: Table[Any, Any]
    committed: Callable[[int], int | None]
    """Returns the committed offset of a partition of that topic; None before the first commit."""

    def rpc(self, partitions: tuple[int, ...], process: str, secret: bytes | None) -> Rpc:
        """Returns the methods that answer for these partitions of the table."""
        rpc = Rpc(str(self.table.changelog))
        rpc.reads_partitions = partitions
        rpc.reads_from = ("offset", 0)  # librdkafka (2.12.1) would ask for the first offset, which takes a while.
        rpc.options(secret=secret, credit_wait_s=SCAN_WAIT_S, results_max=0)  # A repeated query is asked again.
        answers = Answers(self, process)
        rpc.method(name=GET, idempotent=True, argument=msgpack(RowLookup), returns=msgpack(FoundValues))(answers.get)
        scan = rpc.method(
            name=SCAN, idempotent=True, concurrency=SCANS_MAX, argument=msgpack(RowScan), returns=msgpack(RowPage)
        )
        scan(answers.scan)
        return rpc


class Answers:
    """The answers of one process about one table, from the committed rows of the partitions that it has."""

    def __init__(self, served: ServedTable, process: str) -> None:
        self._table, self._committed, self._process = served.table, served.committed, process

    async def get(self, lookup: RowLookup) -> FoundValues:
        """Returns the rows of keys of one partition."""
        if not 1 <= len(lookup.keys) <= KEYS_MAX:
            raise InvalidArgument(f"a request is for 1 to {KEYS_MAX} keys, not for {len(lookup.keys)}")
        partition, read = self._asked_for(lookup.partition), self._table.native.committed
        origin = self._origin(partition, lookup.stale)
        values, size = list[bytes | None](), 0
        for key in lookup.keys:
            with _owned():
                value = read(partition, key)
            values.append(value)
            size += 0 if value is None else len(value)
            if size >= PAGE_BYTES_MAX:
                break
        return FoundValues(self._confirmed(origin, lookup.stale), values)

    async def scan(self, scan: RowScan) -> AsyncIterator[RowPage]:
        """Returns all rows of a partition as they are at the beginning, in no order."""
        partition = self._asked_for(scan.partition)
        origin = self._origin(partition, scan.stale)
        rows = self._table.native.committed_items(partition)
        origin, number = self._confirmed(origin, scan.stale), uuid.uuid4().bytes
        for count, page in enumerate(pages(rows)):
            yield RowPage(origin, number, count, page)

    def _asked_for(self, partition: int | None) -> int:
        """Returns the partition of the request, which is the one that it is about."""
        _, found, _ = current_call().place
        if partition not in (None, found):
            text = f"a request about partition {partition} of {self._table.changelog} has come to partition {found}"
            raise FailedPrecondition(f"{text}: the caller's `partitioner` is not that of the app")
        return found

    def _origin(self, partition: int, may_be_stale: bool) -> RowOrigin:
        """Returns where an answer comes from.

        Raises:
            PartitionWithdrawn: this process does not have the partition any more. Restoring: it is not restored.
        """
        found = next((each for each in self._table.native.partitions() if each[0] == partition), None)
        if found is None:
            raise PartitionWithdrawn(AGAIN_S)
        _, rows, _, _, is_restored = found
        if not is_restored and not may_be_stale:
            place = f"partition {partition} of table {self._table.name!r}"
            text = f"{place} is being restored by {self._process}, which has read {rows} rows"
            details = {"process": self._process, "partition": partition, "rows": rows}
            raise Restoring(f"{text}: ask again, or with stale=True for what is there", details=details)
        return RowOrigin(self._process, partition, self._committed(partition), not is_restored)

    def _confirmed(self, before: RowOrigin, may_be_stale: bool) -> RowOrigin:
        """Returns where rows come from that were read just now: the partition may have been taken away meanwhile."""
        now = self._origin(before.partition, may_be_stale)
        return msgspec.structs.replace(before, is_stale=before.is_stale or now.is_stale)


@contextlib.contextmanager
def _owned() -> Iterator[None]:
    try:
        yield
    except ClosedError:
        raise PartitionWithdrawn(AGAIN_S) from None


class QueryEvents(Events):
    """Logs the first error of the clients of queries. Their other events are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._has_warned = False

    def emit(self, event: Event | str, /, **fields: Any) -> None:
        """Does not block."""
        if isinstance(event, ClientError):
            level = logging.DEBUG if self._has_warned else logging.WARNING
            self._has_warned = True
            logger.log(level, "queries of tables may not reach this process: %s", event)


class QueryHost:
    """The process, as the responders of queries see it."""

    transactions = tracer = metrics = call_log = None

    def __init__(self, settings: Settings) -> None:
        self.settings, self.app = settings, self
        self.schemas, self.cleanups = Schemas.none(), BetweenJobs()
        self.member: _native.GroupMember | None = None
        self.contexts = JobContexts()

    def stop_app(self, error: BaseException) -> None:
        """Does nothing: a failed query does not end the app."""


class Answering:
    """The answering for some partitions: it begins when it is made, and ends with `close`."""

    def __init__(
        self, owned: Owned, served: Mapping[str, ServedTable], rpc: Rpc, settings: Settings, group: str
    ) -> None:
        self._host, self._source = QueryHost(settings), EventSource(QueryEvents())
        self._responders: list[Responder] = []
        try:
            for name, partitions in owned.items():
                methods = served[name].rpc(partitions, process_name(), rpc.settings.secret)
                responder = Responder(self._host, methods, QueryEvents(), self._source.box)
                self._responders.append(responder)
                responder.start()
            self._host.member = _native.GroupMember(
                client_properties(settings, **{"group.id": group}),
                [each.route for each in self._responders],
                settings.for_engine(sum(map(len, owned.values()))),
                None,
                self._source.box,
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Gives the requests back that are not answered, and commits. Blocks up to a second for each part."""
        if self._host.member is not None:
            self._host.member.close(CLOSE_S)
        for each in self._responders:
            each.close(monotonic_s() + CLOSE_S)
        self._source.close()


class TableQueries(Extension):
    """Answers queries as long as the app runs. Any thread."""

    def __init__(self, runner: AppRunner) -> None:
        self._runner = runner
        kafka = {name: value for name, value in runner.settings.kafka.items() if not name.startswith("transactional.")}
        self._settings = msgspec.structs.replace(
            runner.settings, kafka=kafka, instance_id=None, fetch_memory_mb=1, startup_timeout_s=TOPICS_WITHIN_S
        )
        self._served: dict[str, ServedTable] = {}
        for group in runner.groups:
            for route in group.routes.values():
                for table in route.written_tables:
                    if table is route.seen:
                        continue  # Ids are for the route alone.
                    committed = _committed_of(runner, group.group, str(route.topic))
                    self._served[table.name] = ServedTable(table, committed)
        self._changed, self._closing, self._has_topics = Signal(), threading.Event(), threading.Event()
        self._ends: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._run, name="awoke-queries", daemon=True)

    @property
    def is_needed(self) -> bool:
        """True if the app has a table that a route of its own writes."""
        return bool(self._served)

    def start(self) -> None:
        """Starts the thread. Does not block."""
        for kind in CHANGES:
            self._ends.append(self._runner.events.subscribe(kind, lambda event: self._changed.set()))
        self._thread.start()

    def before_joining(self) -> None:
        """Waits for the topics, so that others find them once the app has started. Blocks up to 5 s."""
        self._has_topics.wait(TOPICS_WITHIN_S)

    def stop(self, timeout_s: float) -> None:
        """Ends the answering and the thread. Blocks."""
        for each in self._ends:
            each()
        self._closing.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        attempt, has_topics = 0, False
        answering: Answering | None = None
        answered = dict[str, tuple[int, ...]]()
        while not self._closing.is_set():
            self._changed.clear()
            delay_s = None
            try:
                if not has_topics:
                    self._prepare()
                    has_topics = True
                    self._has_topics.set()
                if (owned := self._owned()) != answered:
                    if answering is not None:
                        answering.close()
                    answering, answered = None, {}
                    answering = self._answering(owned) if owned else None
                    answered = owned
                attempt = 0
            except Exception as error:
                attempt += 1
                delay_s = AGAIN.delay_s(attempt)
                level = logging.DEBUG if attempt > 1 else logging.WARNING
                is_own = not isinstance(error, AwokeError)  # A fault of awoke's own.
                logger.log(level, "this process answers no queries of tables: %s", error, exc_info=is_own)
                self._has_topics.set()
            if not self._closing.is_set():
                self._changed.wait(delay_s)
        if answering is not None:
            answering.close()

    def _prepare(self) -> None:
        """Creates the topics that do not exist. Blocks up to 5 s for each."""
        with Admin(settings=self._settings) as admin:
            counts = {
                str(each.table.changelog): len(admin.describe_topic(str(each.table.changelog)).partitions)
                for each in self._served.values()
            }
        for service, partitions in counts.items():
            ensure_partitions(self._settings, ServiceTopics.of(service), partitions)

    def _owned(self) -> dict[str, tuple[int, ...]]:
        found = {
            name: tuple(number for number, *_ in each.table.native.partitions()) for name, each in self._served.items()
        }
        return {name: partitions for name, partitions in found.items() if partitions}

    def _answering(self, owned: Owned) -> Answering:
        group = f"{self._runner.own.group}.tables"
        return Answering(owned, self._served, self._runner.app.rpc, self._settings, group)


def _committed_of(runner: AppRunner, group: str, topic: str) -> Callable[[int], int | None]:
    def committed(partition: int) -> int | None:
        states = [each for run in runner.groups if run.group == group for each in run.partitions()]
        return next((each.committed for each in states if (each.topic, each.partition) == (topic, partition)), None)

    return committed
