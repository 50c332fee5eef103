"""When a node or a mold that ended is started again, and when the swarm ends."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from awoke.text.exit_codes import EXIT_CLEAN, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_TOO_MANY_RESTARTS
from awoke.waiting.backoff import Backoff
from awoke.waiting.time import monotonic_s

FIRST_S, LIMIT_S = 1.0, 60.0
HEALTHY_S = 60.0
"""A node that ran for this time was well: its next restart is at once again."""
RESTARTS_MAX, WITHIN_S = 5, 60.0
"""More restarts than this within this time: a restart does not repair the fault."""


class Decision(NamedTuple):
    """The decision after a node or a mold has ended."""

    restart_in_s: float | None
    """The delay of the restart, 0 for at once; `None` ends the swarm."""
    exit_code: int = EXIT_CLEAN
    """The exit code of the swarm, if it ends."""


class RestartPolicy:
    """Decides when a node that failed starts again. Restarts that a user asked for do not count."""

    def __init__(self, restarts_max: int = RESTARTS_MAX, first_s: float = FIRST_S) -> None:
        self._restarts_max = restarts_max
        self._backoff = Backoff(min(first_s, LIMIT_S), LIMIT_S)
        self._recent: deque[float] = deque()
        self._in_a_row: dict[int, int] = {}

    def after(self, node: int, exit_code: int, ran_s: float) -> Decision:
        """Decides what follows a node that has failed with this exit code after it ran for `ran_s`."""
        if exit_code == EXIT_CONFIGURATION:
            return Decision(None, EXIT_CONFIGURATION)
        now_s = monotonic_s()
        self._recent.append(now_s)
        while self._recent and self._recent[0] < now_s - WITHIN_S:
            self._recent.popleft()
        if len(self._recent) > self._restarts_max:
            return Decision(None, EXIT_TOO_MANY_RESTARTS)
        failures = 0 if ran_s >= HEALTHY_S else self._in_a_row.get(node, 0)
        self._in_a_row[node] = failures + 1
        if failures == 0:
            return Decision(0.0)
        return Decision(self._backoff.delay_s(failures))


class MoldPolicy:
    """Decides when another mold follows one that failed. Running nodes never end for the lack of a mold."""

    def __init__(self, failures_max: int = RESTARTS_MAX, first_s: float = FIRST_S) -> None:
        self._failures_max = failures_max
        self._backoff = Backoff(min(first_s, LIMIT_S), LIMIT_S, jitter=0.0)
        self._in_a_row = 0
        self._was_ready = False

    def on_ready(self) -> None:
        """Records that the app was imported: the swarm's start has succeeded."""
        self._was_ready = True

    def after(self, exit_code: int, served_s: float | None, has_nodes: bool) -> Decision:
        """Decides what follows a mold that has ended; it was ready for `served_s`, `None` if never."""
        if not self._was_ready:
            return Decision(None, EXIT_CONFIGURATION if exit_code == EXIT_CONFIGURATION else EXIT_FAILED)
        if served_s is not None and served_s >= HEALTHY_S:
            self._in_a_row = 0
        self._in_a_row += 1
        if not has_nodes and exit_code == EXIT_CONFIGURATION:
            return Decision(None, EXIT_CONFIGURATION)
        if not has_nodes and self._in_a_row > self._failures_max:
            return Decision(None, EXIT_TOO_MANY_RESTARTS)
        return Decision(self._backoff.delay_s(self._in_a_row))
