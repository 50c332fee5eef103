"""Gives each peer's program its task, and notes the moments of its first and its last message.

It imports nothing but the standard library: a peer's environment has no awoke.
"""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple


class Task(NamedTuple):
    """The task of a program: to call a function for each message, and produce its results to `output` if any."""

    bootstrap_servers: str
    topic: str
    group: str
    output: str
    messages: int


def task() -> Task:
    """Returns the task that the command line names."""
    servers, topic, group, output, messages = sys.argv[1:]
    return Task(servers, topic, group, "" if output == "-" else output, int(messages))


def note(name: str) -> None:
    """Prints a moment: past `sys.stdout`, which some frameworks replace."""
    os.write(1, f"{name} {time.time()}\n".encode())


class Counter:
    """Counts messages, and prints when the first and the last of them came. One thread."""

    def __init__(self, messages: int, *, ends_process: bool) -> None:
        self._left, self._messages, self._ends_process = messages, messages, ends_process

    def count(self) -> None:
        """Counts a message. The last one ends the process where nothing is left to be sent."""
        if self._left == self._messages:
            note("FIRST")
        self._left -= 1
        if self._left == 0:
            note("LAST")
            if self._ends_process:
                os._exit(0)
