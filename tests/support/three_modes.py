"""Runs one app in a process, in a swarm of two and with `--watch`, all at once, and collects what each has done."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import awoke
from tests.support.clusters import Cluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import AWOKE, Process
from tests.support.waiting import wait_until

MODES: Mapping[str, Sequence[str]] = {"process": (), "swarm": ("--nodes", "2"), "watch": ("--watch",)}
PARTITIONS = 2
MESSAGES = 8
WITHIN_S = 60.0
PRELUDE = """
import json, os
import awoke

_notes = os.open("notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(what, **facts):
    os.write(_notes, (json.dumps({"what": what, "pid": os.getpid(), **facts}) + "\\n").encode())


app = awoke.App(os.environ["TOPIC"], kafka={"heartbeat.interval.ms": 500})
TOPIC = os.environ["TOPIC"]
"""
"""What each app begins with: `app`, `TOPIC`, and `note`, which tells the test."""


class ModeRun:
    """The app in one of the modes."""

    def __init__(
        self,
        mode: str,
        folder: Path,
        cluster: Cluster,
        source: str,
        *,
        options: Sequence[str] = (),
        program: Sequence[str] = AWOKE,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.mode, self.folder, self.topic = mode, folder / mode, unique(mode)
        self.folder.mkdir()
        (self.folder / "shop.py").write_text(PRELUDE + source)
        cluster.create_topic(self.topic, PARTITIONS)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            for number in range(MESSAGES):
                producer.produce(self.topic, str(number).encode(), partition=number % PARTITIONS)
        socket = ("--socket", str(self.folder / "s"))
        words = ("run", "shop:app", *MODES[mode], *socket, "-b", cluster.bootstrap_servers, *options)
        self.process = Process(*words, program=program, env={"TOPIC": self.topic, **(env or {})}, cwd=self.folder)

    def notes(self, what: str) -> list[dict[str, Any]]:
        """Returns what the app has told, in its order."""
        file = self.folder / "notes"
        notes = [json.loads(line) for line in (whole_lines(file) if file.exists() else [])]
        return [each for each in notes if each["what"] == what]

    def wait_for(self, what: str, count: int, within_s: float = WITHIN_S) -> list[dict[str, Any]]:
        """Waits until the app has told something `count` times, and returns it; fails when it ends before."""

        def is_told() -> bool:
            assert self.process.is_running or len(self.notes(what)) >= count, f"{self.mode}:\n{self.process.output}"
            return len(self.notes(what)) >= count

        wait_until(is_told, f"{self.mode}: {count} times {what}", within_s, every_s=0.02)
        return self.notes(what)

    def values(self) -> list[int]:
        """Returns the values of the messages that were handled, sorted."""
        return sorted(int(each["value"]) for each in self.notes("handled"))

    def stop(self, within_s: float = WITHIN_S) -> int:
        """Stops it in order; returns its exit code."""
        self.process.signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def log(self, logger: str) -> list[str]:
        """Returns the texts that a logger has written, sorted, without what differs from run to run."""
        return sorted(line.partition(f" {logger} ")[2] for line in self.process.output.splitlines() if logger in line)


@contextlib.contextmanager
def in_three_modes(
    folder: Path, cluster: Cluster, source: str, modes: Sequence[str] = tuple(MODES), **options: Any
) -> Iterator[list[ModeRun]]:
    """Runs the app in each mode at once, and gives the runs when all messages were handled once in each."""
    with contextlib.ExitStack() as stack:
        runs = [ModeRun(mode, folder, cluster, source, **options) for mode in modes]
        for each in runs:
            stack.enter_context(each.process)
        for each in runs:
            each.wait_for("handled", MESSAGES)
        yield runs


def stop_all(runs: Sequence[ModeRun], code: int = 0) -> None:
    """Stops the runs at once, and checks that each ends with this code and has handled each message once."""
    for each in runs:
        each.process.signal(signal.SIGTERM)
    for each in runs:
        assert each.process.wait(WITHIN_S) == code, f"{each.mode}:\n{each.process.output}"
        assert each.values() == list(range(MESSAGES)), f"{each.mode}:\n{each.process.output}"


def processes_of(folder: Path) -> list[int]:
    """Returns the processes that work in a folder or below it: those of a run that are left after its end."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                found.append(int(entry.name))
    return found
