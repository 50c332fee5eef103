"""The app of the console in a swarm of processes, and the steps of its start, as the supervisor's log tells them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from awoke.console.web.steps import StepState

TARGET = "examples.flights.console_app:app"
NODES = 2
DRAIN_S = "5"
ENDED_WITHIN_S = 30.0
"""A supervisor that does not end is killed then; its processes end with it."""
UP = re.compile(r"node (\d+) is up")

Tell = Callable[[str, StepState, str], None]


class Swarm:
    """The supervisor's process. Its start does not block."""

    def __init__(self, servers: str, tell: Tell) -> None:
        self._tell = tell
        self._up = set[str]()
        self._is_ending = False
        command = [sys.executable, "-m", "awoke", "run", TARGET, "--nodes", str(NODES), "--bootstrap-servers", servers]
        options = ["--log-level", "info", "--log-format", "json", "--drain-timeout-s", DRAIN_S]
        # A session of its own: Ctrl-C is for this program, which ends the swarm in order.
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._running = subprocess.Popen(
            [*command, *options], **pipes, text=True, errors="replace", start_new_session=True
        )
        self._reader = threading.Thread(target=self._read, name="swarm-log", daemon=True)

    def start(self) -> None:
        """Begins to tell of its steps. Does not block."""
        text = f"supervisor {self._running.pid} starts, and imports the app for {NODES} nodes"
        self._tell("Swarm", StepState.WAITING, text)
        self._reader.start()

    def close(self) -> None:
        """Ends all processes of the swarm. Blocks until they have ended."""
        self._is_ending = True
        self._running.terminate()
        try:
            self._running.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        if self._reader.ident is not None:
            self._reader.join(ENDED_WITHIN_S)

    def _read(self) -> None:
        assert self._running.stdout is not None
        with self._running.stdout as lines:
            for line in lines:
                self._take(line.rstrip())
        code = self._running.wait()
        if not self._is_ending:
            self._tell("Swarm", StepState.FAILED, f"the swarm has ended with {code}")

    def _take(self, line: str) -> None:
        try:
            record: dict[str, Any] = json.loads(line)
            level, text = record["level"], record["text"]
        except (ValueError, KeyError, TypeError):
            level, text, record = "error", line, {}
        is_own = record.get("logger", "").startswith("awoke.swarm")
        if self._is_ending or not (is_own or level == "error"):
            return
        if found := UP.match(text):
            self._up.add(found[1])
        is_up = len(self._up) == NODES
        state = StepState.DONE if is_up else StepState.WAITING
        self._tell("Swarm", state, f"{text}; {len(self._up)} of {NODES} nodes are up")
