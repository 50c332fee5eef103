"""One process of an app: group member, schedulers, workers; started and stopped in order."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from awoke import _native
from awoke.admin import Admin
from awoke.app import App
from awoke.errors import ConfigError, KafkaError, UnknownTopic
from awoke.events import Event, EventSource
from awoke.runtime.executor import AsyncExecutor, Executor
from awoke.runtime.worker import AsyncWorker, Worker
from awoke.settings import client_properties

logger = logging.getLogger(__name__)


class Server:
    """Runs an app in this process. `start` once, `stop` once; any thread may call `stop` and `hurry`."""

    def __init__(self, app: App, on_give_up: Callable[[BaseException], object] | None = None) -> None:
        self.app = app
        self.settings = app.settings
        self.member: _native.GroupMember | None = None
        self._on_give_up = on_give_up or (lambda error: None)
        self._scheduler = _native.Scheduler()
        self._async_scheduler = _native.Scheduler()
        self._workers: list[Worker | AsyncWorker] = []
        self._source: EventSource | None = None
        self._stopping = threading.Lock()
        self.given_up: BaseException | None = None
        """Why the app stopped itself, if it did."""

    def start(self) -> None:
        """Check the topics, start the workers and join the group. Blocks up to `startup_timeout_s`.

        Raises:
            ConfigError: no route, or a setting that librdkafka refuses; BrokerUnreachable; UnknownTopic.
        """
        if not self.app.routes:
            raise ConfigError(f"app {self.app.name!r} has no route: decorate something with @app.on(topic)", "routes")
        self._check_topics()
        self._source = EventSource(self.app.events)
        self._end_listening = self.app.events.subscribe("client.error", self._on_client_error)
        try:
            self._start_workers()
            self.member = self._join()
        except BaseException:
            self._end_workers(time.monotonic() + 1.0)
            self._end_listening()
            self._source.close()
            raise
        self.app.events.emit("app.started", app=self.app.name, group=self.group, topics=sorted(self.app.routes))

    @property
    def group(self) -> str:
        """The consumer group."""
        return self.settings.group or self.app.name

    def hurry(self) -> None:
        """Make a stop that is under way wait for running jobs no longer."""
        if self.member is not None:
            self.member.hurry()

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish running jobs, commit, leave the group, deliver what was produced, join the workers.

        Whether all of it was done within `timeout_s` (None: the setting); what was still running is logged with its stack.
        """
        with self._stopping:
            if self._source is None:
                return True
            deadline_s = time.monotonic() + (self.settings.shutdown_timeout_s if timeout_s is None else timeout_s)
            self.app.events.emit("app.stopping", app=self.app.name)
            self._scheduler.quiet()
            self._async_scheduler.quiet()
            if self.member is not None:
                self.member.close(max(0.0, deadline_s - time.monotonic()))
            all_ended = self._end_workers(deadline_s)
            undelivered = self.app.close_producer(max(1.0, deadline_s - time.monotonic()))
            if undelivered:
                logger.error("%d produced messages were not acknowledged before the shutdown's deadline", undelivered)
            self.app.events.emit("app.stopped", app=self.app.name, is_clean=all_ended and not undelivered)
            self._end_listening()
            self._source.close()
            self._source = None
            return all_ended and not undelivered

    def give_up(self, error: BaseException) -> None:
        """Ask for the app's end because of this error."""
        if self.given_up is None:
            self.given_up = error
            self._on_give_up(error)

    def _on_client_error(self, event: Event) -> None:
        """A client that can't go on (fenced by another instance, say) never recovers: whoever runs us must start anew."""
        if event.fields["is_fatal"]:
            code, code_name, text = (event.fields[name] for name in ("code", "code_name", "text"))
            self.give_up(KafkaError(f"{event.fields['client']} can't go on: {text} ({code_name})", code, code_name))

    def counters(self) -> dict[str, dict[str, int]]:
        """What the schedulers count about themselves."""
        return {"threads": self._scheduler.counters(), "loop": self._async_scheduler.counters()}

    def _check_topics(self) -> None:
        wanted = set(self.app.routes) | {route.output for route in self.app.routes.values() if route.output}
        with Admin(settings=self.settings) as admin:
            for topic in sorted(wanted):
                try:
                    admin.describe_topic(topic, self.settings.startup_timeout_s)
                except UnknownTopic as error:
                    text = (
                        f"topic {topic!r} does not exist on {self.settings.bootstrap_servers}; "
                        f"create it: awoke topics create {topic}"
                    )
                    raise UnknownTopic(text, error.code, error.code_name) from None

    def _start_workers(self) -> None:
        sync_routes = [route for route in self.app.routes.values() if not route.is_async]
        async_routes = [route for route in self.app.routes.values() if route.is_async]
        if sync_routes:
            executors = {route.topic: Executor(self, route) for route in sync_routes}
            names = (f"awoke-worker-{number}" for number in range(1, self.settings.workers + 1))
            self._workers += [Worker(name, self._scheduler, executors) for name in names]
        if async_routes:
            async_executors = {route.topic: AsyncExecutor(self, route) for route in async_routes}
            self._workers.append(
                AsyncWorker("awoke-loop", self._async_scheduler, async_executors, self.settings.async_jobs_max)
            )
        for worker in self._workers:
            worker.start()

    def _join(self) -> _native.GroupMember:
        assert self._source is not None
        routes: list[tuple[str, _native.Scheduler, int, int]] = [
            (
                route.topic,
                self._async_scheduler if route.is_async else self._scheduler,
                route.batch.max_messages,
                route.batch.max_bytes,
            )
            for route in self.app.routes.values()
        ]
        return _native.GroupMember(
            client_properties(self.settings, **{"group.id": self.group}),
            routes,
            self.settings.commit_interval_s,
            self.settings.revoke_timeout_s,
            self._source.box,
        )

    def _end_workers(self, deadline_s: float) -> bool:
        self._scheduler.close()
        self._async_scheduler.close()
        late = [worker for worker in self._workers if not worker.join(max(0.0, deadline_s - time.monotonic()))]
        for worker in late:
            logger.error("%s is still running:\n%s", worker.thread.name, stack_of(worker.thread))
        return not late


def stack_of(thread: threading.Thread) -> str:
    """Where a thread is, as a traceback prints it."""
    frame: Any = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame is not None else "(ended meanwhile)"
