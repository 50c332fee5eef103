"""The state of the app at one time, as the pages read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from awoke.console.lag_trends import Place
from awoke.console.secret_names import topics_of
from awoke.console.views import AppView, ErrorRecord, GroupPartition, Partition, Report, SecretFields
from awoke.console.web.steps import Step
from awoke.declare.secret_topics import SecretTopics
from awoke.operate.commands.views import Audit


@dataclass(frozen=True)
class Snapshot:
    """The state of the app. It never changes: pages of several requests may read it at once."""

    version: int
    """Raised by each change."""
    view: AppView
    reports: Mapping[str, Report]
    """The reports that this awoke understands, by process; silent ones, too."""
    errors: Sequence[ErrorRecord]
    """The last error records, the oldest first, without their tracebacks."""
    problem: str | None = None
    """Why the state may be old or incomplete."""
    is_read: bool = True
    """False: the reports are not yet read to their end."""
    audit: Sequence[Audit] = ()
    """The last commands, the oldest first."""
    trends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """The failures of each fingerprint by minute since 1970."""
    steps: Sequence[Step] = ()
    """The steps of the start: what the console waits for."""
    gone_secrets: Sequence[SecretFields] | None = None
    """The secret fields of processes that have stopped in order."""
    lag_per_s: Mapping[Place, float] = field(default_factory=dict)
    """By how much the lag of a partition changes in a second; a partition that is not known long enough has none."""

    @cached_property
    def live(self) -> dict[str, Report]:
        """The reports of processes that are not silent."""
        silent = {each.node for each in self.view.nodes if each.is_silent}
        return {node: report for node, report in self.reports.items() if node not in silent}

    @cached_property
    def secrets(self) -> SecretTopics:
        """The secret fields that the processes tell, and the reason why there may be others."""
        problem = None
        if not self.is_read:
            problem = self.problem or "its reports are being read"
        elif any(each.is_newer and not each.is_silent for each in self.view.nodes):
            problem = "a process has a newer awoke than this console"
        return topics_of(self.reports.values(), gone=self.gone_secrets, problem=problem)

    @cached_property
    def assigned(self) -> dict[Place, tuple[Report, Partition]]:
        """The partitions that processes have, each with the newest report of it."""
        found: dict[Place, tuple[Report, Partition]] = {}
        for report in sorted(self.live.values(), key=lambda each: each.at_ms):
            for each in report.partitions:
                found[each.group, each.topic, each.partition] = (report, each)
        return found

    @cached_property
    def known(self) -> dict[Place, GroupPartition]:
        """The partitions of the groups as the brokers see them."""
        return {
            (group.group, each.topic, each.partition): each for group in self.view.groups for each in group.partitions
        }

    @cached_property
    def places(self) -> list[Place]:
        """The partitions that a process has or that the brokers know of a group, by topic, partition and group."""
        found = [*self.known, *(each for each in self.assigned if each not in self.known)]
        return sorted(found, key=itemgetter(1, 2, 0))  # Most are in order before.
