"""A probe of an app that runs beside a test: sends messages to it, and tells what became of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from awoke.app.app import App
from awoke.declare.routing import Route
from awoke.declare.starts import start_of
from awoke.errors import OperationTimeout
from awoke.payloads.topics import Topic
from awoke.produce.producer import Producer
from awoke.runtime.process.runner import AppRunner
from awoke.settings import Settings
from awoke.testing.idle import RunningApp
from awoke.testing.outputs import OutputReaders
from awoke.testing.recorder import RecordedChanges, RunRecorder
from awoke.testing.records import Call, Commit, DeadLetter, Failure, RecordedRetry, SentMessage
from awoke.waiting.handles import Delivery

TIMEOUT_S = 30.0


FROM_THE_START = (None, "earliest", "smallest", "beginning")


def reads_from_the_start(settings: Settings, route: Route) -> bool:
    """Tells whether a route without a committed offset begins at the first message."""
    return route.start is None and settings.kafka.get("auto.offset.reset") in FROM_THE_START


class Probe:
    """An app that runs beside a test: sends messages to it, and tells what became of them.

    Made by the fixture `awoke_run`. Any thread. A method whose name begins with `a` is for `async def` tests.
    """

    def __init__(
        self,
        app: App,
        changes: RecordedChanges,
        wait_idle: Callable[..., None],
        check_topic: Callable[[str], None],
        *,
        may_repeat: bool = False,
        **settings: Any,
    ) -> None:
        self.app = app
        """The app."""
        self.may_repeat = may_repeat
        """True if a message may be processed twice."""
        self.is_stopped = False
        """True if the test has stopped the app: nothing waits for it."""
        self._put_settings_back = app.keep_settings()
        app.use(**settings)
        try:
            self.runner = AppRunner(app)
            """The runner of the app."""
        except BaseException:
            self._put_settings_back()
            raise
        self.recorder = RunRecorder(app, changes)
        """All that was recorded."""
        self._changes, self._wait_idle, self._check_topic = changes, wait_idle, check_topic
        self.has_waited = True
        """True if the test has waited for something since it last sent a message by this probe."""
        self._producer: Producer | None = None
        self._outputs = OutputReaders(self.runner.settings.bootstrap_servers, self.runner.settings.kafka)
        self._looked_at = 0
        """The number of failures that the test has looked at."""

    def start(self, timeout_s: float = TIMEOUT_S, *, may_join_later: bool = False) -> None:
        """Starts the app, and waits until its groups have assigned partitions, unless they `may_join_later`. Blocks.

        Raises:
            ConfigError, BrokerUnreachable, UnknownTopic: It could not start.
            OperationTimeout: A group has assigned nothing within `timeout_s`.
        """
        self.recorder.begin()
        with self._first_offset_named():
            self.runner.start()
        groups = {each.group for each in self.runner.joining}
        deadline_s = time.monotonic() + timeout_s
        while not may_join_later and not groups <= self.recorder.assigned:
            seen = self._changes.count
            if not groups <= self.recorder.assigned and not self._changes.wait(seen, deadline_s):
                raise OperationTimeout(f"no partitions from groups {sorted(groups)}", "join", timeout_s)

    @contextlib.contextmanager
    def _first_offset_named(self) -> Iterator[None]:
        """Has routes and calls begin at offset 0 where they would begin at the first message.

        A new topic begins there, and librdkafka (2.12.1) need not ask for it: it would do so 100 ms later, or behind
        a fetch of other partitions that waits for `fetch.wait.max.ms`.
        """
        routes = [each for each in self.app.all_routes if reads_from_the_start(self.runner.settings, each)]
        calls_start = self.app.rpc.reads_from
        for route in routes:
            route.start = start_of(0)
        self.app.rpc.reads_from = ("offset", 0)
        try:
            yield
        finally:
            for route in routes:
                route.start = None
            self.app.rpc.reads_from = calls_start

    @property
    def running(self) -> RunningApp:
        """The app as the wait for idleness sees it."""
        return RunningApp(self.runner, self.recorder, self._flush)

    def _flush(self, timeout_s: float) -> None:
        producer = self.app._producer
        if producer is not None:
            producer.flush(timeout_s)

    @property
    def producer(self) -> Producer:
        """A producer of the test's own, which encodes as the app does. Made on first use."""
        if self._producer is None:
            app = self.app
            self._producer = Producer(settings=self.runner.settings, topics=app.topic_formats, format=app.format)
        return self._producer

    def send(self, topic: str, value: Any = None, **options: Any) -> Delivery:
        """Sends a message, and waits until the brokers have it. Blocks; returns its partition and offset.

        The options are those of `Producer.produce`: `key`, `headers`, `partition`, `timestamp_ms`.

        Raises:
            AssertionError: No app of this test reads or writes the topic, and the test has not created it.
            DeliveryFailed, DeliveryTimeout: The brokers refused it, or did not answer.
        """
        self._check_topic(topic)
        self.has_waited = False
        delivery = self.producer.produce(topic, value, **options).wait(TIMEOUT_S)
        self.recorder.sent.add((delivery.topic, delivery.partition, delivery.offset))
        return delivery

    async def asend(self, topic: str, value: Any = None, **options: Any) -> Delivery:
        """Sends a message, as `send`."""
        return await asyncio.to_thread(self.send, topic, value, **options)

    def sent(self, topic: str, n: int | None = None, *, timeout_s: float = TIMEOUT_S) -> list[SentMessage]:
        """Returns the first `n` messages of a topic, as soon as they are there; without `n`, all that it has now.

        Blocks. They are in order within each partition. Values and keys are decoded if the topic has types.

        Raises:
            AssertionError: There are fewer within `timeout_s`; names those that there are.
        """
        named = self._named(topic)
        self.has_waited = self.has_waited or n is not None
        return self._outputs.all(named, timeout_s) if n is None else self._outputs.wait_for(named, n, timeout_s)

    async def asent(self, topic: str, n: int | None = None, *, timeout_s: float = TIMEOUT_S) -> list[SentMessage]:
        """Returns messages of a topic, as `sent`."""
        return await asyncio.to_thread(self.sent, topic, n, timeout_s=timeout_s)

    def table(self, name: str) -> dict[Any, Any]:
        """Returns the committed rows of one of the app's tables, as a dictionary. Does not block: wait with `idle`."""
        return self.app.tables[name].committed()

    def _named(self, topic: str) -> str:
        """Returns the app's object of this topic, which knows its types."""
        written = [each for route in self.app.all_routes for each in route.topics_out]
        known = [each for each in [*written, *self.app.topics.values()] if each == topic and isinstance(each, Topic)]
        return known[0] if known else topic

    def idle(self, timeout_s: float = TIMEOUT_S) -> None:
        """Waits until all messages of the topics of all apps of this test are processed and committed. Blocks.

        Messages that handlers send meanwhile count, too.

        Raises:
            AssertionError: They are not within `timeout_s`. Says which partition waits for what: a failing message
            with its error and the time of its next attempt, or a handler that runs, with its stack.
        """
        self._wait_idle(timeout_s)

    async def aidle(self, timeout_s: float = TIMEOUT_S) -> None:
        """Waits, as `idle`."""
        await asyncio.to_thread(self.idle, timeout_s)

    def rest(self, timeout_s: float = TIMEOUT_S) -> None:
        """Waits until no handler of the apps of this test runs, and none is about to. Blocks.

        Messages may be left that wait for a moment, as a back-off, or for a resume.

        Raises:
            AssertionError: Handlers still run, or messages still come, after `timeout_s`.
        """
        self._wait_idle(timeout_s, at_rest=True)

    @property
    def failures(self) -> list[Failure]:
        """The exceptions of user code until now. One that a test has not looked at fails it."""
        found = list(self.recorder.failures)
        self._looked_at = len(found)
        return found

    def unexpected(self) -> Sequence[Failure]:
        """Returns the failures that the test has not looked at."""
        return self.recorder.failures[self._looked_at :]

    @property
    def retries(self) -> list[RecordedRetry]:
        """The attempts that failed and are followed by another one, until now."""
        return list(self.recorder.retries)

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters until now."""
        return list(self.recorder.dead_letters)

    @property
    def commits(self) -> list[Commit]:
        """The commits until now, in order."""
        return list(self.recorder.commits)

    @property
    def calls(self) -> list[Call]:
        """The calls of handlers that have ended, in that order."""
        return list(self.recorder.calls)

    def stop(self) -> bool:
        """Stops the app in order before the test ends; returns whether all of its work was done in time. Blocks.

        For what an app does at its end, and for a second run: `awoke_run(app)` starts it again. A second call does
        nothing, and returns the same.
        """
        self.is_stopped = True
        try:
            return self.runner.stop()
        finally:
            self.recorder.end()
            self._outputs.close()
            if self._producer is not None:
                self._producer.close(TIMEOUT_S)
                self._producer = None
            self._put_settings_back()
