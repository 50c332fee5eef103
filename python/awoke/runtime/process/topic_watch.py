"""Looks for new topics that the patterns of an app match.

The thread, which exists only where a route has a pattern:
1. wait until a topic was created by this process, or the interval is over;
2. ask a broker for all topics, and hand over the routes of those that match;
3. end when the app stops.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import threading
from collections.abc import Callable

from awoke.admin import Admin, new_topics
from awoke.declare.routing import Route
from awoke.errors import AwokeError, ClosedError, UnknownTopic
from awoke.observe.events import TopicRefused
from awoke.runtime.process.context import RunnableApp
from awoke.settings import METADATA_REFRESH_MS, Settings, number

logger = logging.getLogger(__name__)

REFRESH = "topic.metadata.refresh.interval.ms"


class TopicWatch:
    """Watches the topics of a cluster for one run of an app. Any thread may call everything here."""

    def __init__(self, app: RunnableApp, settings: Settings, on_found: Callable[[Route], object]) -> None:
        self._app, self._settings, self._on_found = app, settings, on_found
        self._wanted = threading.Event()
        self._created: collections.deque[str] = collections.deque()
        """Topics that this process has created, and that a broker may not know yet."""
        self._is_closed = False
        self._admin: Admin | None = None
        self._refused: set[str] = set()
        """The errors that were told."""
        self._thread = threading.Thread(target=self._watch, name="awoke-topics", daemon=True)

    def start(self) -> None:
        """Starts the thread, if the app has patterns. Does not block."""
        if self._app.patterns:
            self._admin = Admin(settings=self._settings)
            self._end_listening = new_topics.listen(self._on_created)
            self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Ends the thread, and joins it up to `timeout_s`: it may wait for a broker. Closing again does nothing."""
        self._is_closed = True
        self._wanted.set()
        if self._admin is not None:
            self._end_listening()
            self._admin.close()
            if self._thread is not threading.current_thread():
                self._thread.join(timeout_s)

    def _on_created(self, topic: str) -> None:
        if any(each.matches(topic) for each in self._app.patterns):
            self._created.append(topic)
            self._wanted.set()

    def _watch(self) -> None:
        interval_s = number(self._settings.kafka, REFRESH, int(METADATA_REFRESH_MS)) / 1_000
        while not self._is_closed:
            # A poll, and a known limit: Kafka has no request that waits for a topic.
            self._wanted.wait(interval_s)
            self._wanted.clear()
            if not self._is_closed:
                self._look()

    def _look(self) -> None:
        assert self._admin is not None
        try:
            names = {each.name for each in self._admin.topics()}
            while self._created:
                names |= self._found(self._created.popleft(), names)
        except ClosedError:
            return  # The app stops.
        except AwokeError as error:
            logger.debug("no broker told of its topics: %s", error)  # The client's own events say more.
            return
        found, refused = self._app.match(names)
        for each in refused:
            self._refuse(each)
        for route in found:
            try:
                self._on_found(route)
            except Exception as failed:  # Of the app, for an argument of the handler; or the app stops.
                if not self._is_closed:
                    self._refuse(failed)

    def _refuse(self, error: Exception) -> None:
        if str(error) not in self._refused:
            self._refused.add(str(error))
            self._app.events.emit(TopicRefused(error=error))

    def _found(self, created: str, known: set[str]) -> set[str]:
        """Returns a new topic, when a broker knows it."""
        assert self._admin is not None
        with contextlib.suppress(UnknownTopic):
            return {created} if created in known else {self._admin.find_topic(created).name}
        return set()
