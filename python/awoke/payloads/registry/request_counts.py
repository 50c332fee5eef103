"""Counts the requests of a registry's client, and the time that they take."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from awoke.payloads.registry.errors import InvalidSchema, RegistryError, SchemaIncompatible, SchemaNotFound

ANSWERS = (SchemaNotFound, SchemaIncompatible, InvalidSchema)
"""Errors that are answers to the question."""


class RequestCounts:
    """The counters of one client. Any thread, any event loop; blocks for no longer than a lock is held."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._requests = self._errors = 0
        """Under the lock, as the time."""
        self._wait_s = 0.0

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Counts a request when it ends, and its time. It is one, also if several addresses are tried for it."""
        began_s, is_error = self._clock(), True
        try:
            yield
            is_error = False
        except RegistryError as error:
            is_error = not isinstance(error, ANSWERS)
            raise
        finally:
            with self._lock:
                self._requests += 1
                self._errors += is_error
                self._wait_s += self._clock() - began_s

    def values(self) -> dict[str, float]:
        """Returns the counters: `requests`, `errors`, and `wait_s`."""
        with self._lock:
            return {"requests": self._requests, "errors": self._errors, "wait_s": self._wait_s}

    def renew_lock(self) -> None:
        """Makes a new lock in a forked process: a thread of the parent may have held the old one."""
        self._lock = threading.Lock()
