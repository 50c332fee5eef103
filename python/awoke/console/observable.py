"""Tells functions of each change of an object."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Observable:
    """An object that tells of its changes. Any thread."""

    def __init__(self) -> None:
        self._telling = threading.Lock()
        self._told: set[Callable[[], None]] = set()  # Guarded by the lock.

    def subscribe(self, call: Callable[[], None]) -> Callable[[], None]:
        """Calls a function after each change, on the thread that made it; the returned function ends that."""
        with self._telling:
            self._told.add(call)

        def unsubscribe() -> None:
            with self._telling:
                self._told.discard(call)

        return unsubscribe

    def _tell(self) -> None:
        """Calls the functions, under no lock of this object."""
        with self._telling:
            told = list(self._told)
        for call in told:
            call()
