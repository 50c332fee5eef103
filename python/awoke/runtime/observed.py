"""What a running app shows of itself, to metrics, health, the endpoints and the command line. Nothing here blocks."""

from __future__ import annotations

import os
import time
from typing import Any

from awoke import _native
from awoke.app import App
from awoke.metrics.health import Health
from awoke.metrics.recorder import PartitionState, Recorder
from awoke.rpc.responder.responder import Responder
from awoke.runtime.connections import Connections
from awoke.runtime.failures import Failures
from awoke.runtime.health import reasons
from awoke.runtime.ledger import Ledger, ThreadEntry
from awoke.runtime.overdue import OverdueWatch
from awoke.runtime.refusals import GROUP, Refusals
from awoke.settings import Settings


class Observed:
    """What a running app shows of itself. Any thread."""

    app: App
    settings: Settings
    member: _native.GroupMember | None
    responder: Responder | None
    ledger: Ledger
    overdue: OverdueWatch
    paused: dict[tuple[str, int], tuple[_native.Partition, BaseException]]
    """Partitions that were left alone when a message was given up, and why."""
    metrics: Recorder | None
    failures: Failures
    refusals: Refusals
    connections: Connections
    given_up: BaseException | None
    is_quiet: bool
    """Whether no new jobs begin."""
    began_s: float
    """When the runner was made, by the monotonic clock."""
    _scheduler: _native.Scheduler
    _async_scheduler: _native.Scheduler

    @property
    def group(self) -> str:
        """The consumer group."""
        return self.settings.group or self.app.name

    def counters(self) -> dict[str, dict[str, int]]:
        """What the schedulers count about themselves."""
        more = {} if self.responder is None else {"rpc": self.responder.scheduler.counters()}
        return {"threads": self._scheduler.counters(), "loop": self._async_scheduler.counters(), **more}

    def calls(self) -> dict[str, int]:
        """How many remote calls run, wait and have expired; empty where the app has no methods. Does not block."""
        return {} if self.responder is None else self.responder.counts()

    def partitions(self) -> list[PartitionState]:
        """The partitions that are assigned now, and how far each has come. Does not block."""
        return [] if self.member is None else [PartitionState.of(*state) for state in self.member.partitions()]

    def is_assigned(self, topic: str, partition: int) -> bool:
        """Returns whether a partition is assigned now. Does not block."""
        return any((each.topic, each.partition) == (topic, partition) for each in self.partitions())

    def stuck(self) -> list[tuple[str, int, str, bool]]:
        """Partitions, and topics (partition -1), whose messages do not come any more: why, and whether `resume` helps.

        Does not block.
        """
        return [] if self.member is None else self.member.stuck()

    def failing(self) -> list[tuple[str, int]]:
        """Topic and partition of each message that has failed and is tried again. Does not block."""
        return [place for place, _ in self.failures.all()]

    def fetch_queue_bytes(self) -> int | None:
        """The most bytes that are fetched ahead of each partition; None where librdkafka's own settings say it."""
        return None if self.member is None else self.member.fetch_queue_bytes()

    def threads(self) -> list[ThreadEntry]:
        """The threads of this process by owner. Does not block."""
        return self.ledger.entries()

    def queued(self) -> tuple[int, int]:
        """Messages and bytes of the app's producer that wait for their delivery report. Does not block."""
        return self.app.queued()

    def callers(self) -> dict[str, dict[str, int]]:
        """What the app's callers count, by service, with the calls that are open. Does not block."""
        return {
            service: {**caller.counters(), "open": caller.open_calls()}
            for service, caller in self.app.callers().items()
        }

    def metrics_text(self) -> bytes:
        """All metrics in Prometheus's text format; empty where none are kept."""
        return b"" if self.metrics is None else self.metrics.text()

    def health(self) -> Health:
        """Whether all is well, and if not, what is wrong. Does not block and asks no broker."""
        found = list(reasons(self))
        return Health(not found, found)

    def why_not_ready(self) -> str | None:
        """Returns why the app processes no messages, as far as it knows; None where it does."""
        if self.given_up is not None:
            return f"it gave up: {self.given_up}"
        if self.is_quiet:
            return "it begins no new jobs: it is quiet, or stops"
        if self.member is None or not self.refusals.is_allowed(GROUP):
            return "its group has not given it partitions yet"
        return self.connections.why_not_ready()

    def status(self) -> dict[str, Any]:
        """Returns what the app does, for programs: JSON can be made of it."""
        why = self.why_not_ready()
        return {
            "app": self.app.name,
            "group": self.group,
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self.began_s, 1),
            "is_quiet": self.is_quiet,
            "is_ready": why is None,
            "not_ready_because": why,
            "health": self.health()._asdict(),
            "partitions": [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "position": each.position,
                    "committed": each.committed,
                    "end_offset": each.end_offset,
                    "lag": each.lag,
                }
                for each in sorted(self.partitions(), key=lambda each: each[:2])
            ],
        }
