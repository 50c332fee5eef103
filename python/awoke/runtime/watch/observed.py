"""The state of a running app, for metrics, health, the endpoints and the command line. Nothing here blocks."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from awoke.observe.events import Events
from awoke.observe.ledger import Ledger, ThreadEntry
from awoke.observe.metrics.recorder import Health, Recorder
from awoke.observe.partitions import PartitionState
from awoke.rpc.responder.call_log import CallLog
from awoke.rpc.responder.responder import Responder
from awoke.runtime.extension import Extension
from awoke.runtime.jobs.worker_pool import WorkerPool
from awoke.runtime.process.connections import Connections
from awoke.runtime.process.context import RunnableApp
from awoke.runtime.process.group_run import GroupRun
from awoke.runtime.watch.health import BlockedOutputs, reasons
from awoke.runtime.watch.overdue import OverdueWatch
from awoke.settings import Settings
from awoke.text.printable import text_of


class Observed:
    """The readable state of a running app. Any thread."""

    app: RunnableApp
    settings: Settings
    groups: Sequence[GroupRun]
    """The consumer groups, first the app's own."""
    responder: Responder | None
    ledger: Ledger
    overdue: OverdueWatch
    metrics: Recorder | None
    call_log: CallLog | None
    """Where remote calls are noted for the console; None without it."""
    connections: Connections
    blocked_outputs: BlockedOutputs
    """The partitions to which nothing can be written."""
    fatal_error: BaseException | None
    is_quiet: bool
    """True if no new jobs begin."""
    began_s: float
    """When the runner was made, by the monotonic clock."""
    _pool: WorkerPool
    extensions: Sequence[Extension]
    """The parts that were added to the runtime, in the order of their start."""

    @property
    def group(self) -> str:
        """The consumer group."""
        return self.settings.group or self.app.name

    @property
    def joining(self) -> list[GroupRun]:
        """The groups that have routes; the app's own also where the app has methods."""
        return [each for each in self.groups if each.has_routes or (each.is_own and self.app.rpc.methods)]

    @property
    def has_methods(self) -> bool:
        """True of an app that answers remote calls."""
        return bool(self.app.rpc.methods)

    @property
    def events(self) -> Events:
        """The app's events."""
        return self.app.events

    def counters(self) -> dict[str, dict[str, int]]:
        """Returns the counters of the schedulers. Does not block."""
        more = {} if self.responder is None else {"rpc": self.responder.scheduler.counters()}
        return {**self._pool.counters(), **more}

    def calls(self) -> dict[str, int]:
        """Returns how many remote calls run, wait and have expired; empty where the app has no methods. Does not
        block."""
        return {} if self.responder is None else self.responder.counts()

    def partitions(self) -> list[PartitionState]:
        """Returns the partitions that are assigned now, with their offsets. Does not block."""
        return [state for group in self.groups for state in group.partitions()]

    def is_assigned(self, topic: str, partition: int) -> bool:
        """Returns whether a partition is assigned now, in any group. Does not block."""
        return any((each.topic, each.partition) == (topic, partition) for each in self.partitions())

    def threads(self) -> list[ThreadEntry]:
        """Returns the threads of this process by owner. Does not block."""
        return self.ledger.entries()

    def queued(self) -> tuple[int, int]:
        """Returns the messages and bytes of the app's producer that wait for their delivery report. Does not block."""
        return self.app.queued()

    def callers(self) -> dict[str, dict[str, int]]:
        """Returns the counters of the app's callers, by service, with the number of open calls. Does not block."""
        return {
            service: {**caller.counters(), "open": caller.open_calls()}
            for service, caller in self.app.callers().items()
        }

    def registry(self) -> dict[str, float]:
        """Returns the counters of the schema registry's client; empty where the app has none. Does not block."""
        return self.app.schemas.counters()

    def schema_loads(self) -> int:
        """Returns how many schemas were loaded from the registry, by any part of the app. Does not block."""
        return self.app.schemas.loads

    def metrics_text(self) -> bytes:
        """Returns all metrics in Prometheus's text format; empty where none are kept."""
        return b"" if self.metrics is None else self.metrics.text()

    def health(self) -> Health:
        """Returns whether the app is healthy, and the reasons if not. Does not block and asks no broker."""
        found = list(reasons(self))
        return Health(not found, found)

    def why_not_ready(self) -> str | None:
        """Returns why the app processes no messages, as far as it knows; None where it does. Does not block."""
        if self.fatal_error is not None:
            return f"it has a fatal error: {text_of(self.fatal_error)}"
        if self.is_quiet:
            return "it begins no new jobs: it is quiet, or stops"
        reasons = (why for group in self.joining if (why := group.why_not_ready()) is not None)
        return next(reasons, None) or self.connections.why_not_ready()

    def status(self) -> dict[str, Any]:
        """Returns the state of the app as values that JSON can hold. Does not block."""
        why = self.why_not_ready()
        return {
            "app": self.app.name,
            "group": self.group,
            "groups": [each.group for each in self.joining],
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self.began_s, 1),
            "is_quiet": self.is_quiet,
            "is_ready": why is None,
            "not_ready_because": why,
            "health": self.health()._asdict(),
            "partitions": [
                {
                    "group": group.group,
                    "topic": each.topic,
                    "partition": each.partition,
                    "position": each.position,
                    "committed": each.committed,
                    "end_offset": each.end_offset,
                    "lag": each.lag,
                }
                for group in self.joining
                for each in sorted(group.partitions(), key=lambda each: each[:2])
            ],
        }
