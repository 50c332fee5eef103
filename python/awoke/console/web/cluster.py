"""The brokers as the pages of one console ask them: over one client, and for each answer at most every two seconds.

A browser makes a page new at each change. Its questions must not become a load on the brokers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from awoke.admin import Admin
from awoke.console.access import Brokers
from awoke.errors import ClosedError
from awoke.settings import Settings
from awoke.waiting.clock import monotonic_s

FRESH_S = 2.0
"""An older answer is asked for again."""
KEPT_MAX = 16
"""The most answers that are kept."""

Answer = TypeVar("Answer")


class Cluster:
    """Answers of brokers. Any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._admin: Admin | None = None  # Guarded by the lock, as all below.
        self._kept: dict[Hashable, tuple[float, Any]] = {}
        self._is_closed = False

    def ask(self, key: Hashable, question: Callable[[Admin], Answer]) -> Answer:
        """Returns the answer to a question, or that to the same one of a moment ago: it may not be changed. Blocks.

        Raises:
            ClosedError: The console has ended. All errors of the question.
        """
        with self._lock:
            if self._is_closed:
                raise ClosedError("the console is closed")
            at_s, answer = self._kept.get(key, (float("-inf"), None))
            if monotonic_s() - at_s <= FRESH_S:
                found: Answer = answer
                return found
            admin = self._open()
        found = question(admin)
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = (monotonic_s(), found)
            if len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return found

    def brokers(self) -> Brokers:
        """Returns the brokers for questions whose answers must be new. Does not block.

        Raises:
            ClosedError: The console has ended.
        """
        with self._lock:
            return Brokers(self._settings, self._open())

    def _open(self) -> Admin:
        if self._is_closed:
            raise ClosedError("the console is closed")
        if self._admin is None:
            self._admin = Brokers(self._settings).open_admin()
        return self._admin

    def forget(self) -> None:
        """Forgets all answers: something was changed. Does not block."""
        with self._lock:
            self._kept.clear()

    def close(self) -> None:
        """Ends the client. Closing again does nothing."""
        with self._lock:
            self._is_closed, admin = True, self._admin
            self._admin = None
            self._kept.clear()
        if admin is not None:
            admin.close()
