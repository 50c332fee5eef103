"""Makes the reports of one process from the readable state of its app. Nothing here blocks."""

from __future__ import annotations

import collections
import os
import platform
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Protocol

import awoke
from awoke._native import HookJob, Job, library_versions
from awoke.console.reported_clients import AbortedTransactions, FullQueue, ReportedOutputs, StableOffsets, client_of
from awoke.console.views import (
    INTERVAL_MS,
    BlockedPartition,
    CallAtWork,
    CallerCounts,
    Calls,
    CallTimes,
    Failing,
    Handler,
    History,
    Memory,
    MethodCalls,
    Partition,
    Report,
    Running,
    Sample,
    SecretFields,
    SettingView,
    SharedGroup,
    TablePartition,
    UnownedPartitions,
)
from awoke.declare.routing import Route
from awoke.errors import AwokeError
from awoke.observe.events import Event
from awoke.observe.metrics.recorder import Health, Owned
from awoke.observe.partitions import UNOWNED_MAX, PartitionState
from awoke.operate.commands.verbs import REMOTE, allowed
from awoke.operate.commands.views import MAJOR, MINOR, SwarmNode
from awoke.rpc.responder.call_log import MethodTimes, Times
from awoke.settings import Loaded
from awoke.text.printable import text_of
from awoke.text.records import encode
from awoke.text.secrets import key_hash, shown_value
from awoke.waiting.clock import monotonic_s, wall_ms

PARTITIONS_MAX = 1_000
"""The most partitions of a report; those with failing messages and pauses come first."""
FAILING_MAX = 20
"""The most failing messages of a partition in a report; the oldest failures come first."""
TEXT_MAX = 500
HANDLERS_MAX = 200
LANES_MAX = 1_000
"""The most partitions whose running lanes tell their keys."""
REPORT_BYTES_MAX = 900_000
"""Brokers refuse larger messages than 1 MB by default."""
AT_WORK_MAX = 100
"""The most calls at work of a report; those that began first come in front."""
CALLERS_MAX = 100
BLOCKED_MAX = 100
"""The most partitions to which nothing can be written of a report."""
NAME_MAX = 200
SAMPLE_S = 5.0
SAMPLES = 60
MINUTE = round(60 / SAMPLE_S)
"""The samples that make a minute."""
Place = tuple[str, str, int]
"""Group, topic and partition."""
ROLLUP = Path("/proc/self/smaps_rollup")
MEMORY_SAMPLES = 12
"""It is read with each twelfth sample: once a minute."""


class FailingMessage(Protocol):
    """A message that has failed and is tried again."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def error(self) -> str: ...
    @property
    def since_s(self) -> float: ...
    @property
    def next_s(self) -> float: ...


class ShownFailures(Protocol):
    """The failing messages of a group."""

    def all(self) -> Sequence[tuple[tuple[str, int], Any]]: ...


class ShownGroup(Protocol):
    """A consumer group of the app."""

    @property
    def group(self) -> str: ...
    @property
    def failures(self) -> ShownFailures: ...
    @property
    def paused(self) -> Mapping[tuple[str, int], tuple[Any, BaseException]]: ...
    def partitions(self) -> Sequence[PartitionState]: ...
    def stuck(self) -> Sequence[tuple[str, int, str, bool]]: ...
    def unowned(self) -> Sequence[tuple[str, int]]: ...
    def strangers(self) -> tuple[list[str], list[str]]: ...
    def running(self) -> Sequence[Job | HookJob]: ...
    @property
    def routes(self) -> Mapping[str, Route]: ...
    def kept_back(self) -> Set[tuple[str, int]]:
        """Returns the partitions from which no further messages are taken now."""


class ShownConnections(Protocol):
    """The connections to brokers."""

    def why_not_ready(self) -> str | None: ...


class ShownOutput(Protocol):
    """A partition to which nothing can be written."""

    def _asdict(self) -> dict[str, Any]: ...


class ShownOutputs(Protocol):
    """The partitions to which nothing can be written."""

    def all(self) -> Sequence[ShownOutput]: ...


class Shown(Protocol):
    """The app that is reported."""

    @property
    def blocked_outputs(self) -> ShownOutputs: ...
    @property
    def joining(self) -> Sequence[ShownGroup]: ...
    @property
    def connections(self) -> ShownConnections: ...
    @property
    def is_quiet(self) -> bool: ...
    def health(self) -> Health: ...
    def why_not_ready(self) -> str | None: ...
    def queued(self) -> tuple[int, int]: ...
    def threads(self) -> Sequence[Owned]: ...
    @property
    def call_log(self) -> CallSource | None: ...
    @property
    def has_methods(self) -> bool: ...
    def callers(self) -> Mapping[str, Mapping[str, int]]: ...


class Origin:
    """The process that reports."""

    def __init__(self, app: str, number: int | None, loaded: Loaded, secrets: list[SecretFields] | None = None) -> None:
        self.app, self.number, self.secrets = app, number, secrets
        self.host, self.pid = socket.gethostname(), os.getpid()
        self.node = f"{self.host}.{self.pid}" if number is None else f"{self.host}.{self.pid}.{number}"
        """The key of its reports."""
        self.started_at_ms = wall_ms()
        self.kafka = loaded.values.kafka
        self.commands = [verb for verb in REMOTE if verb in allowed(loaded.values)]
        self.explained = explained_of(loaded)
        self.settings = {each.name: each.value for each in loaded.explain() if each.origin != "default"}
        librdkafka = dict(library_versions())["librdkafka"]
        self.versions = {"awoke": awoke.__version__, "python": platform.python_version(), "librdkafka": librdkafka}


class Reports:
    """Makes the reports of one process. One thread."""

    def __init__(self, origin: Origin, shown: Shown) -> None:
        self._origin, self._shown = origin, shown
        self._sequence = 0
        self.swarm: tuple[int | None, list[SwarmNode]] = (None, [])
        """The process of the supervisor and its nodes, as it last said; none for a process alone."""
        self._history, self._memory = HistoryRing(), MemoryReader()
        self._positions: dict[Place, int] | None = None
        """Those of the last sample."""
        self._rates: dict[Place, float] = {}
        self._failures = 0
        self.stable, self.outputs, self.aborted = StableOffsets(), ReportedOutputs(), AbortedTransactions()
        self._full = FullQueue(origin.kafka)
        self.failures_by_handler: Counter[str] = Counter()
        """The failures of user code since the start. The thread of the failure adds to it."""
        self._began: dict[tuple[str, str, int, int, int], int] = {}
        """When each running message was first seen at work: group, place, offset and attempt."""

    def on_statistics(self, event: Event) -> bool:
        """Takes librdkafka's statistics; returns whether they tell something that is worth a report.

        One thread at a time.
        """
        client = client_of(event)
        return client is not None and (self.stable.take(client) or self.outputs.take(client))

    def sample(self, failures: int) -> None:
        """Adds a sample to the history; `failures` are those since the start."""
        self._full.look(*self._shown.queued())
        states = [(group.group, each) for group in self._shown.joining for each in group.partitions()]
        now = {
            (group, each.topic, each.partition): each.position for group, each in states if each.position is not None
        }
        moved = {} if self._positions is None else advanced(self._positions, now)
        self._rates = {place: offsets / SAMPLE_S for place, offsets in moved.items()}
        self._positions = now
        lag = sum(each.lag or 0 for _, each in states)
        self._history.add(Sample(wall_ms(), sum(moved.values()), failures - self._failures, lag, memory_bytes()))
        self._failures = failures
        self._memory.sample()

    def make(self, failures: int, dropped: int, *, is_stopping: bool = False) -> Report:
        """Returns a report of now."""
        origin, shown = self._origin, self._shown
        self._sequence += 1
        began = self._began
        self._began = {}
        partitions = [each for group in shown.joining for each in self._partitions(group, began)]
        partitions.sort(key=lambda each: (each.paused_because is None and not each.failing, each.topic, each.partition))
        messages, size_bytes = shown.queued()
        self._full.look(messages, size_bytes)
        return Report(
            major=MAJOR,
            minor=MINOR,
            node=origin.node,
            app=origin.app,
            host=origin.host,
            pid=origin.pid,
            number=origin.number,
            started_at_ms=origin.started_at_ms,
            at_ms=wall_ms(),
            sequence=self._sequence,
            interval_ms=INTERVAL_MS,
            state="stopping" if is_stopping else "quiet" if shown.is_quiet else "running",
            groups=[each.group for each in shown.joining],
            not_ready_because=cut(shown.why_not_ready()),
            brokers_away_because=cut(shown.connections.why_not_ready()),
            unhealthy_because=[each[:TEXT_MAX] for each in shown.health().reasons[:FAILING_MAX]],
            memory_bytes=memory_bytes(),
            memory=self._memory.memory(),
            threads=dict(Counter(each.owner for each in shown.threads())),
            queued_messages=messages,
            queued_bytes=size_bytes,
            queue_full_since_ms=self._full.since_ms,
            outputs=self.outputs.waiting(with_slow=self._full.since_ms is not None),
            aborted=self.aborted.all(),
            failures=failures,
            errors_dropped=dropped,
            versions=origin.versions,
            settings=origin.settings,
            commands=origin.commands,
            explained=origin.explained,
            handlers=self._handlers(),
            secrets=origin.secrets,
            calls=calls_of(shown.call_log) if shown.call_log is not None and shown.has_methods else None,
            callers=callers_of(shown.callers()),
            supervisor_pid=self.swarm[0],
            swarm=self.swarm[1],
            unowned=[
                UnownedPartitions(group=group.group, partitions=list(unowned[:UNOWNED_MAX]), total=len(unowned))
                for group in shown.joining
                if (unowned := group.unowned())
            ],
            blocked=[BlockedPartition(**each._asdict()) for each in shown.blocked_outputs.all()[:BLOCKED_MAX]],
            shared=[
                SharedGroup(group=group.group, apps=apps[:UNOWNED_MAX], topics=topics[:UNOWNED_MAX])
                for group in shown.joining
                for apps, topics in [group.strangers()]
                if apps or topics
            ],
            tables=self._tables()[:PARTITIONS_MAX],
            partitions=partitions[:PARTITIONS_MAX],
            partitions_total=len(partitions),
            history=self._history.view(),
        )

    def encoded(self, report: Report) -> bytes:
        """Returns a report as JSON of at most `REPORT_BYTES_MAX`: details are left out until it fits.

        First the history of minutes, then partitions, of which the ones with problems come first.
        """
        data = encode(report)
        while len(data) > REPORT_BYTES_MAX and not (report.is_cut and not report.partitions):
            if not report.is_cut:
                report.history, report.is_cut = History(of_5_s=report.history.of_5_s), True
            else:
                report.partitions = report.partitions[: len(report.partitions) // 2]
            data = encode(report)
        return data

    def _tables(self) -> list[TablePartition]:
        routes = [route for group in self._shown.joining for route in group.routes.values()]
        tables = {table.name: table for route in routes for table in route.written_tables}
        found = [
            TablePartition(
                table=name,
                topic=str(table.changelog),
                partition=partition,
                rows=rows,
                size_bytes=size_bytes,
                memory_bytes=memory,
                is_restored=is_restored,
            )
            for name, table in sorted(tables.items())
            for partition, rows, size_bytes, memory, is_restored in table.native.partitions()
        ]
        return sorted(found, key=lambda each: each.is_restored)

    def _handlers(self) -> list[Handler]:
        found = []
        for group in self._shown.joining:
            for route in list(group.routes.values())[:HANDLERS_MAX]:
                rates = [
                    rate for (of, topic, _), rate in self._rates.items() if (of, topic) == (group.group, route.topic)
                ]
                found.append(
                    Handler(
                        name=route.name,
                        group=group.group,
                        topic=route.topic,
                        is_async=route.is_async,
                        concurrency=route.concurrency.jobs,
                        exactly_once=route.is_exactly_once,
                        dead_letter=route.dead_letter,
                        output=route.output,
                        messages_per_s=sum(rates) if rates else None,
                        failures=self.failures_by_handler[route.name],
                    )
                )
        return found

    def _partitions(self, group: ShownGroup, began: Mapping[Any, int]) -> list[Partition]:
        failing: dict[tuple[str, int], list[FailingMessage]] = {}
        for place, each in sorted(group.failures.all(), key=lambda found: found[1].since_s):
            failing.setdefault(place, []).append(each)
        running = self._running(group, began)
        stuck = {(topic, partition): text for topic, partition, text, _ in group.stuck()}
        paused = {place: text_of(error) for place, (at, error) in list(group.paused.items()) if at.is_current}
        found = []
        kept_back = group.kept_back()
        for state in group.partitions():
            place = (state.topic, state.partition)
            jobs, gap = running.get(place, []), state.commit_gap
            stable, route = self.stable.find(*place), group.routes.get(state.topic)
            in_flight = sum(each.remaining for each in jobs) if gap is None else gap.messages - gap.done
            found.append(
                Partition(
                    group=group.group,
                    topic=state.topic,
                    partition=state.partition,
                    position=state.position,
                    committed=state.committed,
                    end_offset=state.end_offset,
                    in_flight=in_flight,
                    offsets_per_s=self._rates.get((group.group, *place)),
                    oldest_offset=None if gap is None else gap.oldest_offset,
                    paused_because=cut(paused.get(place)),
                    stuck_because=cut(stuck.get(place)),
                    failing=[failing_of(each) for each in failing.get(place, [])[:FAILING_MAX]],
                    running=jobs,
                    last_stable_offset=None if stable is None else stable.offset,
                    transaction_open_since_ms=None if stable is None else stable.open_since_ms,
                    read_offset=None if stable is None else stable.read_offset,
                    has_room=place not in kept_back,
                    commit_gap=None if gap is None else gap.messages,
                    commit_gap_max=None if gap is None or route is None else route.concurrency.commit_gap,
                )
            )
        return found

    def _running(self, group: ShownGroup, began: Mapping[Any, int]) -> dict[tuple[str, int], list[Running]]:
        found: dict[tuple[str, int], list[Running]] = {}
        for job in group.running():
            if isinstance(job, HookJob):
                continue
            try:
                offset, attempt, remaining = job.first_offset, job.attempt, job.remaining
            except AwokeError:
                continue  # It has just ended.
            place = (group.group, job.topic, job.partition, offset, attempt)
            since_ms = self._began[place] = began.get(place, wall_ms())
            running = Running(offset=offset, attempt=attempt, remaining=remaining, since_ms=since_ms)
            if job.is_of_lanes and len(found) < LANES_MAX:
                running.key_hash = key_of(job)
            found.setdefault((job.topic, job.partition), []).append(running)
        return found


def key_of(job: Job) -> str | None:
    """Returns the hash of the key of a lane's first message; None without a key, or if the job has just ended."""
    try:
        batch = job.batch()
        return key_hash(batch[0].key) if len(batch) else None
    except AwokeError:
        return None


def explained_of(loaded: Loaded) -> list[SettingView]:
    """Returns the settings that are not defaults, and librdkafka's properties, with their origins and no secrets."""
    found = [
        SettingView(name=each.name, value=each.value[:TEXT_MAX], origin=each.origin)
        for each in loaded.explain()
        if each.origin != "default"
    ]
    for name, value in sorted(loaded.values.kafka.items()):
        origin = loaded.origin_of(f"kafka.{name}")
        shown = str(shown_value(name, value))[:TEXT_MAX]
        found.append(SettingView(name=f"kafka.{name}", value=shown, origin=origin))
    return found


def failing_of(message: FailingMessage) -> Failing:
    """Returns a failing message as a report shows it: without its key."""
    return Failing(
        offset=message.offset,
        key_hash=key_hash(message.key),
        attempts=message.attempts,
        error=message.error[:TEXT_MAX],
        since_ms=at_ms(message.since_s),
        next_ms=at_ms(message.next_s),
    )


def at_ms(moment_s: float) -> int:
    """Returns a moment of the clock as milliseconds since 1970."""
    return wall_ms() + round((moment_s - monotonic_s()) * 1_000)


def cut(text: str | None) -> str | None:
    """Returns a text, or the beginning of a long one."""
    return None if text is None else text[:TEXT_MAX]


def memory_bytes() -> int:
    """Returns the resident memory of this process; 0 where the system does not tell it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


class ShownCall(Protocol):
    """A call whose method runs."""

    @property
    def method(self) -> str: ...
    @property
    def caller(self) -> str: ...
    @property
    def place(self) -> tuple[str, int, int]: ...
    @property
    def until_s(self) -> float: ...
    @property
    def is_cancelled(self) -> bool: ...


class CallSource(Protocol):
    """The calls that are noted in a process."""

    @property
    def count(self) -> Callable[[], Mapping[str, int]]: ...
    def methods(self) -> Sequence[MethodTimes]: ...
    def at_work(self) -> Sequence[ShownCall]: ...
    def rejections(self) -> Mapping[str, int]: ...


def calls_of(source: CallSource) -> Calls:
    """Returns the calls that a process answers."""
    counts = source.count()
    return Calls(
        methods=[method_of(each) for each in source.methods()],
        at_work=[at_work_of(each) for each in source.at_work()[:AT_WORK_MAX]],
        running=counts.get("running", 0),
        waiting=counts.get("waiting", 0),
        expired=counts.get("expired", 0),
        rejected=dict(source.rejections()),
    )


def method_of(found: MethodTimes) -> MethodCalls:
    """Returns the calls of a method."""
    return MethodCalls(
        method=found.method[:NAME_MAX],
        outcomes=found.outcomes,
        queue_ms=milliseconds(found.queue),
        run_ms=milliseconds(found.run),
        reply_ms=milliseconds(found.reply),
    )


def milliseconds(times: Times) -> CallTimes:
    """Returns times in milliseconds."""
    half, most = (None if each is None else round(each * 1_000, 3) for each in times)
    return CallTimes(p50=half, p95=most)


def at_work_of(call: ShownCall) -> CallAtWork:
    """Returns a call whose method runs."""
    _, partition, offset = call.place
    return CallAtWork(
        method=call.method[:NAME_MAX],
        caller=call.caller[:NAME_MAX],
        partition=partition,
        offset=offset,
        until_ms=wall_ms() + round((call.until_s - monotonic_s()) * 1_000),
        is_cancelled=call.is_cancelled,
    )


def callers_of(counted: Mapping[str, Mapping[str, int]]) -> list[CallerCounts]:
    """Returns the calls that a process makes, by service."""
    rows = sorted(counted.items())[:CALLERS_MAX]
    return [
        CallerCounts(
            service=service,
            open=counts.get("open", 0),
            events={what: count for what, count in counts.items() if what != "open" and count},
        )
        for service, counts in rows
    ]


class HistoryRing:
    """Takes samples and keeps the last ones. One thread."""

    def __init__(self) -> None:
        self._recent: collections.deque[Sample] = collections.deque(maxlen=SAMPLES)
        self._minutes: collections.deque[Sample] = collections.deque(maxlen=SAMPLES)
        self._count = 0

    def add(self, sample: Sample) -> None:
        """Adds a sample of five seconds, and one of a minute after each twelfth."""
        self._recent.append(sample)
        self._count += 1
        if self._count % MINUTE == 0:
            self._minutes.append(summed(list(self._recent)[-MINUTE:]))

    def view(self) -> History:
        """Returns the samples, the oldest first."""
        return History(of_5_s=list(self._recent), of_minutes=list(self._minutes))


def summed(samples: Sequence[Sample]) -> Sample:
    """Returns one sample for several that follow each other."""
    last = samples[-1]
    offsets, failures = sum(each.offsets for each in samples), sum(each.failures for each in samples)
    return Sample(last.at_ms, offsets, failures, last.lag, last.memory_bytes)


def advanced(before: Mapping[Place, int], now: Mapping[Place, int]) -> dict[Place, int]:
    """Returns by how much each position has advanced; none for a partition that was sought back, or is new."""
    return {place: at - before[place] for place, at in now.items() if place in before and at >= before[place]}


class MemoryReader:
    """Reads the memory of this process from time to time. One thread."""

    def __init__(self, rollup: Path = ROLLUP) -> None:
        self._rollup, self._samples, self._is_read = rollup, 0, False
        self._last: Memory | None = None

    def sample(self) -> None:
        """Notes that another five seconds have gone."""
        self._samples += 1

    def memory(self) -> Memory | None:
        """Returns the memory, as it was within the last minute; None where the system does not tell it."""
        if self._samples >= MEMORY_SAMPLES or not self._is_read:
            self._samples, self._is_read, self._last = 0, True, read_memory(self._rollup)
        return self._last


def read_memory(rollup: Path = ROLLUP) -> Memory | None:
    """Returns the memory of this process; None where the system does not tell it. The kernel takes milliseconds."""
    try:
        lines = [line.split() for line in rollup.read_text().splitlines()]
        found = {words[0]: int(words[1]) << 10 for words in lines if len(words) == 3 and words[2] == "kB"}
        return Memory(
            own_bytes=found["Private_Clean:"] + found["Private_Dirty:"],
            shared_bytes=found["Shared_Clean:"] + found["Shared_Dirty:"],
            proportional_bytes=found["Pss:"],
        )
    except (OSError, KeyError, ValueError):
        return None
