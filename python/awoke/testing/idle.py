"""Waits until apps under test are idle, or at rest, by the engine's own knowledge.

An app is *idle* when all messages of its topics are processed and committed. It is *at rest* when no handler runs and
none is about to: messages may wait for a moment, as a back-off, or for a resume.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from awoke._native import PendingStep, Scheduler
from awoke.admin import Admin
from awoke.admin.client import TIMEOUT_S, topic_flows
from awoke.admin.connection import ASK_AGAIN_S
from awoke.errors import ClosedError, KafkaError, OperationTimeout, UnknownGroup, UnknownTopic
from awoke.runtime.process.group_run import GroupRun
from awoke.runtime.process.runner import AppRunner
from awoke.testing.clock import waits_for_s
from awoke.testing.recorder import RecordedChanges, RunRecorder
from awoke.text.printable import shown
from awoke.waiting.drive import drive
from awoke.waiting.handles import call_back

Place = tuple[str, int]
"""Topic and partition."""


Pulled = dict[tuple[str, str, int], tuple[int | None, bool]]
"""The next offset to pull and whether messages are kept back, by group, topic and partition."""


class RunningApp(NamedTuple):
    """An app that runs, and its recorder."""

    runner: AppRunner
    recorder: RunRecorder
    flush: Callable[[float], object]
    """Waits until the brokers have what its producer has sent, up to a time in seconds."""


class Missing(NamedTuple):
    """A partition of a group that is not idle."""

    group: GroupRun
    place: Place
    end: int
    committed: int | None
    reason: str = ""


class Idleness:
    """Waits for the apps of one test. One thread at a time waits."""

    def __init__(
        self, admin: Admin, apps: Sequence[RunningApp], changes: RecordedChanges, created: Iterable[str] = ()
    ) -> None:
        self._admin, self._apps, self._changes = admin, apps, changes
        self._created = created
        """The topics of the test."""
        self._ends: dict[Place, int] = {}
        self._pulled: Pulled = {}
        """The messages that were pulled before the schedulers' last rest."""
        self._watched: dict[Scheduler, PendingStep] = {}
        """The next rest of each scheduler, which is a change that ends a wait."""

    def wait(self, timeout_s: float, *, at_rest: bool = False) -> None:
        """Waits until all apps are idle, or `at_rest`. Blocks.

        Raises:
            AssertionError: They are not within `timeout_s`; says what waits for what.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            seen = self._changes.count
            missing = self._missing(deadline_s, at_rest=at_rest)
            is_to_ask = at_rest or not missing
            if not missing and self._is_still_so(deadline_s, at_rest=at_rest):
                missing = [] if at_rest else self._unseen(deadline_s)
                if not missing:
                    return
            # No event tells that a message has come to a paused partition, or that brokers show an offset.
            until_s = min(deadline_s, time.monotonic() + ASK_AGAIN_S) if is_to_ask else deadline_s
            if not self._changes.wait(seen, until_s) and left_s(deadline_s) == 0:
                raise AssertionError(self._explain(missing, timeout_s))

    def _is_still_so(self, deadline_s: float, *, at_rest: bool) -> bool:
        """Tells whether nothing was produced, or at rest pulled, since it was read. Blocks."""
        before = self._ends
        self._produced(deadline_s)
        return self._ends == before and (not at_rest or self._read_pulled() == self._pulled)

    def _read_pulled(self) -> Pulled:
        members = [(group.group, group.member) for app in self._apps for group in app.runner.joining]
        rows = [(name, each) for name, member in members if member is not None for each in member.pulled()]
        return {(name, topic, partition): (at, is_kept) for name, (topic, partition, at, is_kept) in rows}

    def _unseen(self, deadline_s: float) -> list[Missing]:
        """Returns the partitions of which the brokers do not show yet what a transaction has committed. Blocks.

        A coordinator answers before it has written the markers of the transaction: to the partition of the offsets,
        and to those of the results.
        """
        groups = [each for app in self._apps for each in app.runner.joining if each.transactions is not None]
        offsets = [each for group in groups for each in self._unseen_offsets(group, deadline_s)]
        return offsets or (self._unseen_results(groups[0], deadline_s) if groups else [])

    def _unseen_offsets(self, group: GroupRun, deadline_s: float) -> Iterator[Missing]:
        shown: dict[Place, int] = {}
        with contextlib.suppress(UnknownGroup, OperationTimeout):  # It has no offset yet; or the time is up.
            shown = self._admin.group_offsets(group.group, timeout_s=max(left_s(deadline_s), ASK_AGAIN_S))
        for state in group.partitions():
            place, to = (state.topic, state.partition), shown.get((state.topic, state.partition))
            if state.committed is not None and (to or 0) < state.committed:
                reason = f"a transaction has committed {state.committed}, which the brokers do not show"
                yield Missing(group, place, self._ends.get(place, 0), to, reason)

    def _unseen_results(self, group: GroupRun, deadline_s: float) -> list[Missing]:
        """Returns the partitions, of all topics of the test, with messages that readers do not see yet. Blocks."""
        missing, ends = [], self._read_ends(self._created)
        for topic in sorted({topic for topic, _ in ends}):
            stable: dict[int, int] = {}
            with contextlib.suppress(UnknownTopic, OperationTimeout):  # It was deleted; or the time is up.
                stable = self._admin.stable_offsets(topic, max(left_s(deadline_s), ASK_AGAIN_S))
            for partition, to in stable.items():
                end = ends.get((topic, partition), 0)
                if to < end:
                    reason = f"a transaction is open: readers of committed messages see those below {to}"
                    missing.append(Missing(group, (topic, partition), end, None, reason))
        return missing

    def _produced(self, deadline_s: float) -> None:
        """Reads the ends of all topics when the brokers have what the apps have produced. Blocks."""
        for app in self._apps:
            app.flush(left_s(deadline_s))
        self._ends = self._read_ends(topic for app in self._apps for topic in topics_of(app.runner))

    def _missing(self, deadline_s: float, *, at_rest: bool) -> list[Missing]:
        """Returns the partitions that are not idle, or not at rest. Blocks while handlers run."""
        begun = {each: each.counters()["jobs"] for each in self._schedulers()}
        self._produced(deadline_s)
        self._watch(begun)
        self._pulled = self._read_pulled()
        has_rested = all(self._rests(each, deadline_s) for each in begun)
        for app in self._apps:
            for group in app.runner.joining:
                commit(group, left_s(deadline_s))
        missing = [each for app in self._apps for group in app.runner.joining for each in self._missing_of(group)]
        if not at_rest:
            return missing
        # A message that has come since the rest is not kept back: its handler may run.
        pulled = self._read_pulled()
        kept = {place: row for place, row in pulled.items() if self._pulled.get(place) == row}
        return missing if not has_rested else [each for each in missing if not is_kept_back(each, kept)]

    def _schedulers(self) -> list[Scheduler]:
        return [each for app in self._apps for each in app.runner.schedulers]

    def _watch(self, begun: Mapping[Scheduler, int]) -> None:
        """Has the next rest of each scheduler after more jobs than now count as a change."""
        for scheduler, jobs in begun.items():
            watched = self._watched.get(scheduler)
            if watched is None or watched.done():
                self._watched[scheduler] = rest = scheduler.at_rest(jobs + 1)
                call_back(rest, self._changes.note)

    def _rests(self, scheduler: Scheduler, deadline_s: float) -> bool:
        try:
            scheduler.at_rest(0).wait(left_s(deadline_s))
        except OperationTimeout:
            return False
        except ClosedError:  # The app stops.
            pass
        return True

    def _read_ends(self, topics: Iterable[str]) -> dict[Place, int]:
        """Returns the end offsets of topics. Blocks."""
        names, ends = set(topics), {}
        with contextlib.suppress(UnknownTopic):  # One was deleted between the two requests.
            ends = drive(topic_flows(self._admin).ends(names, TIMEOUT_S))
        # The others were deleted, or these brokers do not list them to the test: that is an error.
        for topic in sorted(names - {topic for topic, _ in ends}):
            with contextlib.suppress(UnknownTopic):
                ends |= {(topic, partition): end for partition, end in self._admin.end_offsets(topic).items()}
        return ends

    def _missing_of(self, group: GroupRun) -> list[Missing]:
        found = {(each.topic, each.partition): each for each in group.partitions()}
        others, told = self._assigned_elsewhere(group), self._recorder_of(group).committed
        missing = []
        for place in self._places(group):
            end, state = self._ends.get(place, 0), found.get(place)
            if end == 0 or place in others:
                continue
            committed = state.committed if state is not None else None
            is_before_start = state is not None and state.stored is None and (state.position or 0) >= end
            # The event of a commit comes a moment after it: a test sees it in `probe.commits`.
            is_told = state is None or state.stored is None or told.get((group.group, *place), 0) >= end
            if not is_before_start and ((committed or 0) < end or not is_told):
                missing.append(Missing(group, place, end, committed))
        return missing

    def _places(self, group: GroupRun) -> list[Place]:
        """Returns the partitions that a group is to process."""
        named = {topic: route.partitions for topic, route in group.routes.items() if route.partitions}
        topics = {*group.routes, *calls_topics(self._runner_of(group), group)}
        return [place for place in self._ends if place[0] in topics and place[1] in named.get(place[0], (place[1],))]

    def _recorder_of(self, group: GroupRun) -> RunRecorder:
        return next(app.recorder for app in self._apps if group in app.runner.groups)

    def _runner_of(self, group: GroupRun) -> AppRunner:
        return next(app.runner for app in self._apps if group in app.runner.groups)

    def _assigned_elsewhere(self, group: GroupRun) -> set[Place]:
        """Returns the partitions that other apps of this test have in the same group."""
        groups = [each for app in self._apps for each in app.runner.joining]
        others = [each for each in groups if each.group == group.group and each is not group]
        return {(each.topic, each.partition) for other in others for each in other.partitions()}

    def _explain(self, missing: Iterable[Missing], timeout_s: float) -> str:
        lines = [
            f"not idle within {timeout_s:g} s:",
            *([explain(each) for each in missing] or ["  messages still come"]),
        ]
        running = [each for app in self._apps for each in app.recorder.running()]
        lines += [
            f"  {each.handler} still runs, at {each.topic}[{each.partition}] offset {each.offset}:\n{each.stack()}"
            for each in running
        ]
        if not running and (due_s := waits_for_s()) is not None:
            lines.append(f"  waits for {due_s:g} s of virtual time: advance the clock (awoke_clock.advance({due_s:g}))")
        fatal = [app.runner.fatal_error for app in self._apps if app.runner.fatal_error is not None]
        return "\n".join([*lines, *(f"  app stopped by {error!r}" for error in fatal)])


def left_s(deadline_s: float) -> float:
    """Returns the seconds until a deadline, at least 0."""
    return max(0.0, deadline_s - time.monotonic())


def topics_of(runner: AppRunner) -> set[str]:
    """Returns the topics that an app reads, that of its remote calls too."""
    read = {topic for group in runner.joining for topic in group.routes}
    return read | {topic for group in runner.joining for topic in calls_topics(runner, group)}


def calls_topics(runner: AppRunner, group: GroupRun) -> list[str]:
    """Returns the topic of the remote calls that a group reads, if it reads one."""
    return [runner.responder.topics.calls] if runner.responder is not None and group.is_own else []


def commit(group: GroupRun, timeout_s: float) -> None:
    """Commits what is stored, whatever the commit interval. Blocks. A refusal is an event, and tried again."""
    if group.member is not None:
        with contextlib.suppress(KafkaError, ClosedError, OperationTimeout):
            group.member.commit().wait(timeout_s)


def is_kept_back(missing: Missing, pulled: Pulled) -> bool:
    """Tells whether the messages of a partition wait for a moment or for a resume."""
    next_offset, is_kept = pulled.get((missing.group.group, *missing.place), (None, False))
    return is_kept or (next_offset or 0) >= missing.end


def explain(missing: Missing) -> str:
    """Returns why a partition is not idle, as one line or several."""
    group, (topic, partition) = missing.group, missing.place
    text = f"  {topic}[{partition}], group {group.group}: committed {missing.committed}, end {missing.end}"
    if missing.reason:
        return f"{text}; {missing.reason}"
    failing = [str(failure) for place, failure in group.failures.all() if place == missing.place]
    if missing.place not in {(each.topic, each.partition) for each in group.partitions()}:
        return f"{text}; the group has not assigned it"
    paused = group.paused.get(missing.place)
    stuck = [reason for name, number, reason, _ in group.stuck() if (name, number) in (missing.place, (topic, -1))]
    reasons = [*failing, *([f"it is paused after {shown(paused[1])}"] if paused is not None else []), *stuck]
    return "\n".join([text, *(f"    {reason}" for reason in reasons)])
