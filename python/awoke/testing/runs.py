"""The apps of one test: started in turn, stopped in reverse order, and then checked."""

from __future__ import annotations

import contextlib
import difflib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from awoke._native import EventBox
from awoke.admin import Admin
from awoke.app.app import App
from awoke.declare.reader import Reader
from awoke.errors import AwokeError, UnknownTopic
from awoke.observe.events.pump import pump
from awoke.observe.ledger import OF_EVENT_LOOPS
from awoke.settings import KafkaValue, embedded
from awoke.testing.cluster import TestCluster, create_topics_of
from awoke.testing.idle import Idleness
from awoke.testing.outputs import QUICK_END
from awoke.testing.probe import Probe, reads_from_the_start
from awoke.testing.recorder import RecordedChanges
from awoke.testing.recordings.recording import Recording, in_order, recorded, write_recording

GRACE_S = 1.0
"""The time that a thread may take to end after the test."""
OF_CALLBACKS = "awoke-callbacks"
"""The name of the thread that runs callbacks, and ends by itself after the last one."""
CALLBACKS_S = 10.0
"""The time that this thread may take: on a busy machine it ends some time after its last callback."""
RECORDED_WITHIN_S = 10.0


class Runs:
    """The apps of one test. The fixture `awoke_run` is its call."""

    def __init__(self, cluster: TestCluster) -> None:
        self._cluster = cluster
        self._changes = RecordedChanges()
        self._probes: list[Probe] = []
        self._admin: Admin | None = None
        self._baseline: Baseline | None = None

    def __call__(self, app: App, *, may_repeat: bool = False, may_join_later: bool = False, **settings: Any) -> Probe:
        """Runs an app on the brokers of this test until the test ends; returns its probe. Blocks until it has started.

        The topics of the app are created. With `may_repeat`, a message that is processed twice does not fail the test.
        With `may_join_later`, groups that still wait for their partitions are not waited for. The other arguments are
        settings.

        Raises:
            ConfigError, BrokerUnreachable, UnknownTopic, OperationTimeout: The app could not start.
        """
        create_topics_of(self._cluster, app)
        given = self._cluster.settings_of(app)
        kafka = {**self._cluster.kafka, **given.pop("kafka", {}), **app.settings.kafka, **settings.pop("kafka", {})}
        settings = {"bootstrap_servers": self._cluster.bootstrap_servers, "kafka": kafka, **given, **settings}
        probe = Probe(app, self._changes, self.wait_idle, self.check_topic, may_repeat=may_repeat, **settings)
        self._probes.append(probe)
        probe.start(may_join_later=may_join_later)
        return probe

    def wait_idle(self, timeout_s: float, *, at_rest: bool = False) -> None:
        """Waits until all apps that the test has not stopped are idle, or at rest. Blocks.

        Raises:
            AssertionError: They are not within `timeout_s`.
        """
        for probe in self._probes:
            probe.has_waited = True
        apps = [each.running for each in self._probes if not each.is_stopped]
        Idleness(self._brokers, apps, self._changes, self._cluster.created).wait(timeout_s, at_rest=at_rest)

    @property
    def _brokers(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self._cluster.bootstrap_servers, kafka=self._cluster.kafka)
        return self._admin

    def check_topic(self, topic: str) -> None:
        """Checks that a topic exists, which brokers would create at its first message. Blocks.

        Raises:
            AssertionError: It does not; says which topic may be meant.
        """
        if topic in self._cluster.created:
            return
        try:
            self._brokers.describe_topic(topic, RECORDED_WITHIN_S)
        except UnknownTopic:
            near = difflib.get_close_matches(topic, self._cluster.created, 1)
            meant = f": is {near[0]!r} meant?" if near else ""
            text = f"no app of this test reads {topic!r}, and the test has not created it{meant}"
            raise AssertionError(f"{text} (awoke_cluster.create_topic({topic!r}) creates it)") from None

    def begin(self) -> None:
        """Notes what there is before the test's own code."""
        self._baseline = Baseline()

    def record(self, folder: Path) -> list[str]:
        """Writes the topics that the apps read into a folder; returns the problems as texts. Blocks."""
        topics = topics_read(self._probes)
        return list(record_topics(topics, self._cluster.bootstrap_servers, self._cluster.kafka, folder))

    def finish(self) -> list[str]:
        """Stops the apps in reverse order, and returns the problems of the test as texts. Blocks.

        Called again it does nothing.
        """
        probes, self._probes = self._probes, []
        left = [each for each in probes if not each.is_stopped]
        problems: list[str] = []
        with contextlib.ExitStack() as stack:
            for probe in probes:
                stack.callback(stop, probe, problems)
            if self._admin is not None:
                stack.callback(self._admin.close)
        self._admin = None
        for probe in probes:
            problems += problems_of(probe, probes)
        problems += [text for each in left for text in unprocessed(each, probes)]
        if self._baseline is not None:
            problems += self._baseline.left_behind()
        self._baseline = None
        return problems


def stop(probe: Probe, problems: list[str]) -> None:
    """Stops an app, and notes if work was left."""
    if not probe.stop():
        problems.append(f"app {probe.app.name} did not stop cleanly: see its log")


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


def unprocessed(probe: Probe, others: Sequence[Probe]) -> Iterator[str]:
    """Yields a text for each message that the test has not waited for, and that an app has not begun to process."""
    sent = {each for other in others if not other.has_waited for each in other.recorder.sent}
    begun = {(each.topic, each.partition, each.offset) for other in others for each in other.recorder.calls}
    failures = [each for other in others for each in other.recorder.failures]
    begun |= {(each.topic or "", each.partition or 0, each.offset or 0) for each in failures if each.topic is not None}
    for group in probe.runner.joining:
        read = {topic for topic, route in group.routes.items() if reads_from_the_start(probe.runner.settings, route)}
        for topic, partition, offset in sorted(sent - begun):
            if topic in read - probe.recorder.left_out:
                text = f"{topic}[{partition}] offset {offset} was sent and not processed when the test ended"
                yield f"app {probe.app.name}: {text}: wait for it before you look at results (probe.idle())"


def topics_read(probes: Iterable[Probe]) -> list[str]:
    """Returns the topics that the routes of these apps read."""
    return sorted({str(topic) for probe in probes for group in probe.runner.joining for topic in group.routes})


def record_topics(
    topics: Iterable[str], bootstrap_servers: str, kafka: Mapping[str, KafkaValue], folder: Path
) -> Iterator[str]:
    """Writes all messages of each topic into `folder/TOPIC.rec`, and yields a text for each that failed. Blocks.

    A topic without messages has no file.
    """
    for topic in topics:
        try:
            with Reader(topic, bootstrap_servers=bootstrap_servers, start=0, kafka={**kafka, **QUICK_END}) as reader:
                records = in_order(recorded(each) for each in reader.read_until_end(RECORDED_WITHIN_S))
            if records:
                folder.mkdir(parents=True, exist_ok=True)
                write_recording(Recording(topic, records), folder / f"{topic}.rec", replaces=True)
        except (AwokeError, OSError) as error:
            yield f"--awoke-record: {topic} was not recorded: {error}"
