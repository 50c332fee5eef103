"""Finds the problems of a test when its apps have stopped: failures, lost messages, leaks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

from awoke._native import EventBox
from awoke.observe.events.pump import pump
from awoke.observe.ledger import OF_EVENT_LOOPS
from awoke.settings import embedded
from awoke.testing.probe import Probe, reads_from_the_start

GRACE_S = 1.0
"""The time that a thread may take to end after the test."""

OF_CALLBACKS = "awoke-callbacks"
"""The name of the thread that runs callbacks, and ends by itself after the last one."""

CALLBACKS_S = 10.0
"""The time that this thread may take: on a busy machine it ends some time after its last callback."""


class Baseline:
    """The threads, clients and embedded brokers that there were before a test."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._boxes = set(pump.places())
        self._brokers = set(embedded)

    def left_behind(self) -> Iterator[str]:
        """Yields a text for everything that the test has left behind. Blocks for a while for each thread."""
        clients: Mapping[EventBox, str] = pump.places()
        yield from (
            f"a client was not closed: made at {place}" for box, place in clients.items() if box not in self._boxes
        )
        yield from (f"embedded brokers were not closed: {each}" for each in embedded - self._brokers)
        for thread in threading.enumerate():
            if thread in self._threads or thread is threading.current_thread():
                continue
            if thread.name.startswith(OF_EVENT_LOOPS) or (thread.name == "awoke-events" and clients):
                continue
            thread.join(CALLBACKS_S if thread.name == OF_CALLBACKS else GRACE_S)
            if thread.is_alive():
                yield f"a thread was left behind: {thread.name}"


def problems_of(probe: Probe, others: Sequence[Probe]) -> Iterator[str]:
    """Yields a text for every problem of an app that has stopped; `others` are all apps of the test."""
    for failure in probe.unexpected():
        yield f"app {probe.app.name}: a failure that the test did not look at (probe.failures)\n{failure.traced()}"
    if probe.runner.fatal_error is not None:
        yield f"app {probe.app.name} was stopped by {probe.runner.fatal_error!r}"
    if not probe.may_repeat:
        yield from repeated(probe)
    yield from lost(probe, others)


def repeated(probe: Probe) -> Iterator[str]:
    """Yields a text for each message that was processed twice in one group, without a failure between."""
    for (_, topic, partition, offset), count in sorted(probe.recorder.processed.items()):
        if count > 1:
            text = f"a message was processed {count} times: {topic}[{partition}] offset {offset}"
            yield f"app {probe.app.name}: {text} (awoke_run(…, may_repeat=True) allows it)"


def lost(probe: Probe, others: Sequence[Probe]) -> Iterator[str]:
    """Yields a text for each message of the test that a group has committed, and no app has processed."""
    sent = {each for other in others for each in other.recorder.sent}
    for group in probe.runner.joining:
        for topic, route in group.routes.items():
            if topic in probe.recorder.left_out or not reads_from_the_start(probe.runner.settings, route):
                continue
            mine = [each for each in probe.recorder.commits if (each.group, each.topic) == (group.group, topic)]
            ends = {each.partition: each.offset for each in mine}
            processed = {each[1:] for other in others for each in other.recorder.processed}
            below = {each for each in sent if each[0] == topic and each[2] < ends.get(each[1], 0)}
            for _, partition, offset in sorted(below - processed):
                where = f"{topic}[{partition}] offset {offset}"
                yield f"app {probe.app.name}: a message was committed by {group.group} and never processed: {where}"
