"""The state of the app at one time, as the pages read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from awoke.console.views import AppView, Audit, ErrorRecord, Report


class Snapshot(NamedTuple):
    """The state of the app. It never changes: pages of several requests may read it at once."""

    version: int
    """Raised by each change."""
    view: AppView
    reports: Mapping[str, Report]
    """The reports that this awoke understands, by process; silent ones, too."""
    errors: Sequence[ErrorRecord]
    """The last error records, the oldest first."""
    problem: str | None = None
    """Why the state may be old or incomplete."""
    is_read: bool = True
    """False: the topics are not yet read to their ends."""
    audit: Sequence[Audit] = ()
    """The last commands, the oldest first."""

    @property
    def live(self) -> dict[str, Report]:
        """The reports of processes that are not silent."""
        silent = {each.node for each in self.view.nodes if each.is_silent}
        return {node: report for node, report in self.reports.items() if node not in silent}
