"""The settings of one run of the checker."""

from __future__ import annotations

from dataclasses import dataclass

MODES = ("plain", "lanes", "lanes-async", "batch", "exactly-once")
PROTOCOLS = ("classic", "cooperative", "kip848")
PARTITIONS = 4
KEYS = 40
"""Each belongs to one partition."""
MEMBERS = 4

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
)


@dataclass(frozen=True)
class Run:
    """One run. The same values have the nemesis choose the same faults in the same order."""

    mode: str = "plain"
    protocol: str = "classic"
    seconds: float = 300.0
    seed: int = 1
    per_s: int = 300
    """The number of messages that are produced each second."""
    faults: tuple[str, ...] = FAULTS
    """The faults that the nemesis may choose."""
    heal_within_s: float = 120.0
    """The time that the members may take, when all is well again, to reach the end of the input."""

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
