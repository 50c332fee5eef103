"""The settings of one run of the checker, and the groups that copy its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

MODES = ("plain", "lanes", "lanes-async", "batch", "exactly-once")
PROTOCOLS = ("classic", "cooperative", "kip848")
INPUT = "history-input"
"""Topics that appear during the run begin with it."""
PARTITIONS = 4
KEYS = 40
"""The number of keys of each topic. Each belongs to one partition."""
SLOW_S = 2.0
"""The time that a handler takes for a message now and then."""

FAULTS = (
    "kill",
    "freeze",
    "continue",
    "terminate",
    "add",
    "remove",
    "bounce",
    "crash",
    "cut",
    "unclean",
    "recreate",
    "clock",
    "scale",
    "reload",
    "replace",
    "kill-node",
    "appear",
    "full",
    "reassign",
    "lead",
    "coordinator",
    "renew",
)


class Copy(NamedTuple):
    """A group that copies the input to an output of its own."""

    group: str
    output: str
    members: tuple[int, int] = (1, 3)
    """The fewest and the most processes of a member each, whose names are dynamic."""
    nodes: int = 0
    """The number of nodes of a swarm beside them. Their names are static, except under KIP-848."""
    env: Mapping[str, str] = {}
    """The variables that tell the app what to subscribe to."""

    @property
    def commits_as(self) -> str:
        """The group that its offsets are committed for."""
        return f"{self.group}.partitions" if self.has_named_partitions else self.group

    @property
    def has_pattern(self) -> bool:
        """Tells whether it reads topics that appear."""
        return "HISTORY_PATTERN" in self.env

    @property
    def has_named_partitions(self) -> bool:
        """Tells whether its route names the partitions, so that no group assigns them."""
        return "HISTORY_PARTITIONS" in self.env

    def mode_in(self, run: Run) -> str:
        """Returns the mode of its members: `exactly_once` is refused where no group fences a member."""
        return "plain" if self.has_named_partitions and run.mode == "exactly-once" else run.mode


COPIES = (
    Copy("history", "history-copied", nodes=2),
    Copy("history-pattern", "history-copied-by-pattern", (2, 4), env={"HISTORY_PATTERN": f"{INPUT}.*"}),
    Copy(
        "history-named",
        "history-copied-by-number",
        (1, 1),
        env={"HISTORY_PARTITIONS": " ".join(map(str, range(PARTITIONS)))},
    ),
)


@dataclass(frozen=True)
class Run:
    """One run. The same values have the nemesis choose the same faults in the same order."""

    mode: str = "plain"
    protocol: str = "classic"
    seconds: float = 300.0
    seed: int = 1
    per_s: int = 200
    """The number of messages that are produced each second."""
    faults: tuple[str, ...] = FAULTS
    """The faults that the nemesis may choose."""
    keep: Path | None = None
    """The folder for what the members log; None to forget it."""
    heal_within_s: float = 120.0
    """The time that the members may take, when all is well again, to reach the end of the input."""
    owned_within_s: float = 60.0
    """The time that they may take then, until each partition has an owner."""

    def keep_output(self, name: str, output: str) -> None:
        """Write what a process has logged to the folder, if there is one."""
        if self.keep is not None:
            (self.keep / f"{name.replace(' ', '-')}.log").write_text(output)

    @property
    def kafka(self) -> dict[str, str]:
        """librdkafka's properties for the members."""
        common = {
            "reconnect.backoff.max.ms": "500",
            "topic.metadata.refresh.interval.ms": "1000",
            "transaction.timeout.ms": "6000",
        }
        if self.protocol == "kip848":
            return {**common, "group.protocol": "consumer"}
        strategy = "cooperative-sticky" if self.protocol == "cooperative" else "range"
        return {**common, "session.timeout.ms": "6000", "partition.assignment.strategy": strategy}
