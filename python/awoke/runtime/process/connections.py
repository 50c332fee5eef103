"""Notes since when no broker is connected, until one answers.

The thread, which exists only while the group member has no connection:
1. ask the brokers for metadata, and wait up to `ASK_S` for an answer;
2. ask again where none has come;
3. end when a broker has answered, or the app stops.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
import time

from awoke import _native
from awoke.errors import AwokeError
from awoke.observe.broker_lines import ALL_DOWN
from awoke.observe.events import ClientError, Event, EventSource
from awoke.settings import Settings, client_properties

AWAY_AFTER_S = 10.0
"""An app without brokers for this long is not ready: a restart of a broker, or an election, is over by then."""
ASK_S = 1.0


class Silent:
    """Drops events: the errors of the group member itself are logged already."""

    def emit(self, event: Event) -> None:
        """Does nothing."""


class Connections:
    """The time without a connected broker. Any thread may call everything here; only `close` blocks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._away: tuple[float, datetime.datetime] | None = None
        """The time of the first report, by the monotonic and by the wall clock; None while a broker is connected."""
        self._thread: threading.Thread | None = None
        self._is_closed = threading.Event()

    def on_error(self, event: ClientError) -> None:
        """Notes an error of a client. Does not block."""
        with self._lock:
            if event.code_name != ALL_DOWN or self._away is not None or self._is_closed.is_set():
                return
            self._away = (time.monotonic(), datetime.datetime.now(datetime.UTC))
            self._thread = threading.Thread(target=self._wait_for_brokers, name="awoke-brokers", daemon=True)
            self._thread.start()

    def why_not_ready(self) -> str | None:
        """Returns since when no broker is connected; None where one is, or was a short time ago."""
        with self._lock:
            away = self._away
        if away is None or time.monotonic() - away[0] < AWAY_AFTER_S:
            return None
        return f"no broker connected since {away[1].isoformat(timespec='seconds')}"

    def close(self) -> None:
        """Ends and joins the thread. Blocks up to `ASK_S`."""
        self._is_closed.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _wait_for_brokers(self) -> None:
        with contextlib.suppress(AwokeError), contextlib.closing(EventSource(Silent())) as source:
            admin = _native.Admin(client_properties(self._settings), source.box)
            try:
                while not self._is_closed.is_set() and not self._has_answer(admin):
                    pass
            finally:
                admin.close()
        with self._lock:
            self._away = None

    def _has_answer(self, admin: _native.Admin) -> bool:
        """Asks the brokers; returns whether one answered. Blocks for `ASK_S` if none did."""
        asked_s = time.monotonic()
        try:
            admin.metadata(None, ASK_S)
        except AwokeError:
            self._is_closed.wait(max(0.0, asked_s + ASK_S - time.monotonic()))
            return False
        return True
