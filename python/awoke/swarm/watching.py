"""Reloads a swarm when its files have changed on disk. Needs the extra `watch`.

The thread `awoke-watch` waits for changes, and writes a byte to a socket that the supervisor's loop watches.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from awoke.observe.web.loop import Loop
from awoke.preconditions.extras import needs

logger = logging.getLogger(__name__)

TOGETHER_MS = 100
"""Changes within this time are one: editors write several files, or one file in several steps."""

Reload = Callable[[Callable[[str | None], object]], bool]
"""Begins a reload, and calls the function when it has ended; returns false if none can begin now."""


class Watch:
    """The files of a swarm's app. For the supervisor's thread."""

    def __init__(self, folder: Path, loop: Loop, reload: Reload) -> None:
        self._folder, self._loop, self._reload = folder, loop, reload
        self._reading, self._writing = socket.socketpair()
        self._closed = threading.Event()
        self._has_changed = False
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Begins to watch the folder, and the folders in it. Does not block.

        Raises:
            ConfigError: The library is not installed.
        """
        library = needs("watchfiles", "watch")
        self._loop.watch(self._reading, self._on_told)
        self._thread = threading.Thread(target=self._run, args=(library,), name="awoke-watch", daemon=True)
        self._thread.start()
        logger.info("watching %s: changed Python files are reloaded", self._folder)

    def close(self) -> None:
        """Ends the thread. Blocks for a moment."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self._loop.forget(self._reading)
        self._reading.close()
        self._writing.close()

    def _run(self, library: Any) -> None:
        changes = library.watch(
            self._folder,
            watch_filter=library.PythonFilter(),
            debounce=TOGETHER_MS,
            stop_event=self._closed,
            raise_interrupt=False,
        )
        with contextlib.suppress(OSError):  # The supervisor has ended.
            for changed in changes:
                logger.info("changed: %s", ", ".join(sorted({Path(path).name for _, path in changed})))
                self._writing.send(b"\0")

    def _on_told(self) -> None:
        self._reading.recv(4096)
        self._has_changed = True
        self.reload_changed()

    def reload_changed(self) -> None:
        """Reloads if files have changed. Called again when a reload is possible that was not: nothing is missed."""
        if self._has_changed and self._reload(self._on_end):
            self._has_changed = False

    def _on_end(self, why: str | None) -> None:
        if why is None:
            logger.info("the new code runs")
