"""Steps of the stop of an app: waits that a second signal ends, and the check that all offsets were committed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NamedTuple, TypeVar

from awoke._native import HookJob, Job
from awoke.declare.routing import Route
from awoke.errors import AwokeError
from awoke.observe.events import Event, Events, JobOverdue, OffsetsCommitted, OffsetsNotCommitted
from awoke.observe.partitions import PartitionState

Result = TypeVar("Result")

COMMIT_S = 5.0
"""After a second signal, the last commit and leaving the group may take this long."""
LEAVE_GRACE_S = 3.0
"""After the deadline they may take this long. A swarm kills a node 5 s after it: missing commits are reported first."""
INTERRUPTED_S = 0.5
"""After a second signal, every other step of the stop may take this long."""
ANSWER_S = 1.0
"""The event of a commit may come this much later than its end, from another thread."""


class InterruptibleWait:
    """Waits for the steps of a stop, until their own deadline or until a second signal. Any thread."""

    def __init__(self) -> None:
        self._interrupted: Future[None] = Future()
        self._lock = threading.Lock()

    @property
    def is_interrupted(self) -> bool:
        """True if the stop waits for running jobs no longer. Does not block."""
        return self._interrupted.done()

    def interrupt(self) -> bool:
        """Ends the wait for running jobs; returns whether this is the first call. Does not block."""
        with self._lock:
            is_first = not self._interrupted.done()
            if is_first:
                self._interrupted.set_result(None)
            return is_first

    def call(
        self,
        function: Callable[[], Result],
        otherwise: Result,
        interrupted_s: float = INTERRUPTED_S,
        within_s: float | None = None,
    ) -> Result:
        """Calls a function that blocks, and returns what it returns.

        Returns `otherwise` if it has not ended `interrupted_s` after a second signal, or `within_s` after this call.
        The function runs on a thread of its own, which goes on by itself then.
        """
        done: Future[Result] = Future()
        thread = threading.Thread(target=_fulfil, args=(done, function), name="awoke-stop-step", daemon=True)
        thread.start()
        either: list[Future[Any]] = [done, self._interrupted]
        wait(either, within_s, return_when=FIRST_COMPLETED)
        if not wait([done], interrupted_s if self.is_interrupted else 0.0).done:
            return otherwise
        thread.join()
        return done.result()


def _fulfil(done: Future[Result], function: Callable[[], Result]) -> None:
    try:
        done.set_result(function())
    except BaseException as error:
        done.set_exception(error)


class EngineEvents:
    """Passes the engine's events on, without a `job.overdue` of a partition that runs nothing.

    The engine also reports a partition whose last hook did not begin before the deadline, or before a second signal.
    """

    def __init__(self, events: Events, is_running: Callable[[str, int], bool]) -> None:
        self._events, self._is_running = events, is_running

    def emit(self, event: Event) -> None:
        """Tells the subscribers, on this thread."""
        if not isinstance(event, JobOverdue) or any(self._is_running(*place) for place in event.partitions):
            self._events.emit(event)


def store_progress(running: Iterable[Job | HookJob]) -> None:
    """Stores the offsets of messages that are done in jobs that still run. Does not block.

    A job stores its offset at its end, and the stop no longer waits for that end.
    """
    for work in running:
        if isinstance(work, Job):
            with contextlib.suppress(AwokeError):
                work.store_passed()


def running_places(running: Iterable[Job | HookJob], *, with_hooks: bool) -> set[tuple[str, int]]:
    """Returns the topic and partition of each job, and of each hook if asked for, that runs now. Does not block."""
    return {(work.topic, work.partition) for work in running if with_hooks or isinstance(work, Job)}


class Uncommitted(NamedTuple):
    """A partition whose last commit failed."""

    topic: str
    partition: int
    stored: int
    committed: int | None
    """None where this process has committed nothing of the partition."""

    def __str__(self) -> str:
        place, last = f"{self.topic}[{self.partition}]", self.stored - 1
        if self.committed is None:
            return f"{place} to offset {last}, all that this process has done"
        return f"{place} from offset {self.committed} to {last}"


class LastCommits:
    """Compares what is stored at the end of an app with what the brokers have committed. Any thread."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._changed = threading.Condition()
        self._stored: dict[tuple[str, int], int] = {}
        self._committed: dict[tuple[str, int], int | None] = {}
        self._is_watching = False

    def watch(self) -> Callable[[], None]:
        """Begins to note commits; returns the function that ends this. Does not block."""
        self._is_watching = True
        return self._events.subscribe(OffsetsCommitted, self._on_committed)

    def note_all(
        self, routes: Mapping[str, Route], states: Iterable[PartitionState], *, is_rpc_exactly_once: bool
    ) -> None:
        """Notes the stored offsets of the partitions that are assigned. Does not block."""
        for each in states:
            route = routes.get(each.topic)
            is_exactly_once = is_rpc_exactly_once if route is None else route.is_exactly_once
            if not is_exactly_once:  # The others commit within transactions, whose failures are reported.
                self.note(each.topic, each.partition, each.stored, each.committed)

    def note(self, topic: str, partition: int, stored: int | None, committed: int | None) -> None:
        """Notes the stored and the committed offset of a partition. Does not block."""
        if not self._is_watching or stored is None:
            return
        with self._changed:
            place = (topic, partition)
            self._stored[place] = stored
            if self._committed.get(place) is None:
                self._committed[place] = committed

    def note_hook(self, hook: HookJob) -> None:
        """Notes the offsets of a partition whose last hook runs. Does not block."""
        with contextlib.suppress(AwokeError):
            self.note(hook.topic, hook.partition, *hook.assignment().offsets())

    def report(self) -> bool:
        """Emits an event if less is committed than is stored; returns whether all is. Blocks up to a second if not."""
        with self._changed:
            self._changed.wait_for(lambda: not self._missing(), ANSWER_S)
            missing = self._missing()
        if missing:
            places = "; ".join(map(str, missing))
            self._events.emit(OffsetsNotCommitted(places=places, messages=_messages_of(missing)))
        return not missing

    def _missing(self) -> list[Uncommitted]:
        return [
            Uncommitted(*place, stored, self._committed[place])
            for place, stored in sorted(self._stored.items())
            if (self._committed[place] or 0) < stored
        ]

    def _on_committed(self, event: OffsetsCommitted) -> None:
        with self._changed:
            for topic, partition, offset in event.offsets:
                self._committed[(topic, partition)] = offset
            self._changed.notify_all()


def _messages_of(missing: Iterable[Uncommitted]) -> int | None:
    """Returns the least number of messages that will be processed again; None where it is not known."""
    counts = [None if each.committed is None else each.stored - each.committed for each in missing]
    known = [each for each in counts if each is not None]
    return sum(known) if len(known) == len(counts) else None


def join_all(threads: Iterable[threading.Thread], deadline_s: float) -> None:
    """Joins threads until a deadline. Blocks."""
    for thread in threads:
        thread.join(remaining_s(deadline_s))


def remaining_s(deadline_s: float, least_s: float = 0.0) -> float:
    """Returns the time until a deadline of the monotonic clock, at least `least_s`."""
    return max(least_s, deadline_s - time.monotonic())
