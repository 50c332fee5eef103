"""A script of faults: which fault happens after which message is drawn before the first.

The thread:
1. waits for a fault that is due, or for the end;
2. has it happen, and waits until it has;
3. ends when the script ends, or when a fault fails.
"""

from __future__ import annotations

import queue
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple

Step = Callable[[], object]


class Planned(NamedTuple):
    """A fault of a script."""

    at: int
    """The number of messages after which it happens."""
    step: int
    """The number of its step, from 0."""


class Script:
    """Faults that happen after messages that the test counts. A context manager: the thread runs inside the block."""

    def __init__(self, numbers: random.Random, steps: Sequence[Step], count: int, every: tuple[int, int]) -> None:
        self._steps = steps
        self.plan = planned(numbers, len(steps), count, every)
        """The faults, in order."""
        self._lock = threading.Lock()
        self._counted = 0
        self._left = deque(self.plan)
        self._due: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="awoke-faults", daemon=True)

    def count(self, messages: int = 1) -> None:
        """Count messages; faults that are due then happen on the script's own thread. Does not block.

        Any thread may call it, a handler as well.
        """
        with self._lock:
            self._counted += messages
            while self._left and self._left[0].at <= self._counted:
                self._due.put(self._steps[self._left.popleft().step])

    def _run(self) -> None:
        while (step := self._due.get()) is not None:
            try:
                step()
            except BaseException as error:
                self._error = error
                return

    def __enter__(self) -> Script:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for the faults that are due. Blocks.

        Raises:
            AssertionError: Fewer messages were counted than the script needs; else the error of the fault that failed.
        """
        self._due.put(None)
        self._thread.join()
        if error is not None:
            return
        if self._error is not None:
            raise self._error
        assert not self._left, (
            f"{len(self._left)} of {len(self.plan)} faults have not happened: the last comes after "
            f"{self.plan[-1].at} messages, and {self._counted} were counted"
        )


def planned(numbers: random.Random, steps: int, count: int, every: tuple[int, int]) -> list[Planned]:
    """Returns `count` faults, each after `every` many messages more, and each a step by chance."""
    at, plan = 0, []
    for _ in range(count):
        at += numbers.randint(*every)
        plan.append(Planned(at, numbers.randrange(steps)))
    return plan
