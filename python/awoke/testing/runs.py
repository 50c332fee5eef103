"""The apps of one test: started in turn, stopped in reverse order, and then checked."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from awoke.admin import Admin
from awoke.app.app import App
from awoke.testing.checks import Baseline, problems_of
from awoke.testing.cluster import TestCluster, create_topics_of
from awoke.testing.idle import Idleness
from awoke.testing.probe import Probe
from awoke.testing.recorder import RecordedChanges
from awoke.testing.topic_records import record_topics, topics_read


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
        probe = Probe(app, self._changes, self.wait_idle, may_repeat=may_repeat, **settings)
        self._probes.append(probe)
        probe.start(may_join_later=may_join_later)
        return probe

    def wait_idle(self, timeout_s: float, *, at_rest: bool = False) -> None:
        """Waits until all apps that the test has not stopped are idle, or at rest. Blocks.

        Raises:
            AssertionError: They are not within `timeout_s`.
        """
        if self._admin is None:
            self._admin = Admin(self._cluster.bootstrap_servers, kafka=self._cluster.kafka)
        apps = [each.running for each in self._probes if not each.is_stopped]
        Idleness(self._admin, apps, self._changes, self._cluster.created).wait(timeout_s, at_rest=at_rest)

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
        problems: list[str] = []
        with contextlib.ExitStack() as stack:
            for probe in probes:
                stack.callback(stop, probe, problems)
            if self._admin is not None:
                stack.callback(self._admin.close)
        self._admin = None
        for probe in probes:
            problems += problems_of(probe, probes)
        if self._baseline is not None:
            problems += self._baseline.left_behind()
        self._baseline = None
        return problems


def stop(probe: Probe, problems: list[str]) -> None:
    """Stops an app, and notes if work was left."""
    if not probe.stop():
        problems.append(f"app {probe.app.name} did not stop cleanly: see its log")
