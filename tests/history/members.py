"""The members: processes of the app, each with a clock of its own that can be stepped."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.history.settings import Run
from tests.support.clock_step import SteppedClock, build
from tests.support.processes import Process

ENDS_WITHIN_S = 60.0
LAST_LINES = 15


class Member(NamedTuple):
    """One process."""

    number: int
    """No two of a run have the same."""
    process: Process
    clock: SteppedClock


class Members:
    """Those that run. The one that is named by an index is the one of that place, counted round."""

    def __init__(self, run: Run, servers: str, topics: tuple[str, str], group: str, folder: Path) -> None:
        self._run, self._servers, self._topics, self._group, self._folder = run, servers, topics, group, folder
        self._library = build(folder)
        self._running: list[Member] = []
        self._frozen: list[Member] = []
        self._started = 0
        self.exit_codes: Counter[int] = Counter()
        """Of the members that have ended, those that were killed left out."""
        self.ended_early: list[str] = []
        """The last lines of those that ended without having been told to."""
        self.stuck: list[str] = []
        """The last lines of those that did not end when they were told to."""

    def __len__(self) -> int:
        return len(self._running)

    def start(self) -> str:
        """Start one more; its name."""
        clock = SteppedClock(self._library, self._folder / f"clock-{self._started}")
        env = {"HISTORY_MODE": self._run.mode, "HISTORY_INPUT": self._topics[0], "HISTORY_OUTPUT": self._topics[1]}
        env |= {"AWOKE_GROUP": self._group, "AWOKE_COMMIT_INTERVAL_S": "0.2", **clock.env}
        kafka = [word for name, value in self._run.kafka.items() for word in ("--kafka", f"{name}={value}")]
        process = Process("run", "tests.history.apps:app", "--bootstrap-servers", self._servers, *kafka, env=env)
        self._running.append(Member(self._started, process, clock))
        self._started += 1
        return _name(self._running[-1])

    def kill(self, index: int) -> str:
        """Kill one; its name."""
        member = self._take(index)
        member.process.signal(signal.SIGKILL)
        member.process.wait(ENDS_WITHIN_S)
        _close(member)
        return _name(member)

    def terminate(self, index: int) -> str:
        """Stop one in order; its name, and how it ended."""
        member = self._take(index)
        member.process.signal(signal.SIGTERM)
        member.process.signal(signal.SIGCONT)
        return f"{_name(member)} ({self._wait_end(member)})"

    def freeze(self, index: int) -> str:
        """Suspend one; its name."""
        member = self._running[index % len(self._running)]
        member.process.signal(signal.SIGSTOP)
        if member not in self._frozen:
            self._frozen.append(member)
        return _name(member)

    def continue_all(self) -> str:
        """Resume those that are frozen; their names."""
        frozen, self._frozen = self._frozen, []
        for member in frozen:
            member.process.signal(signal.SIGCONT)
        return ", ".join(map(_name, frozen)) or "none is frozen"

    def step_clock(self, index: int, offset_s: float) -> str:
        """Step the clock of one; its name."""
        member = self._running[index % len(self._running)]
        member.clock.set(offset_s)
        return _name(member)

    def replace_ended(self) -> list[str]:
        """Start one for each that has ended without having been told to; the names of those."""
        ended = [each for each in self._running if not each.process.is_running]
        for member in ended:
            code = member.process.wait(ENDS_WITHIN_S)
            self.exit_codes[code] += 1
            self.ended_early.append(f"{_name(member)} ended with {code}:\n{_last_lines(member)}")
            self._forget(member)
            self.start()
        return [_name(member) for member in ended]

    def terminate_all(self) -> None:
        """Stop all in order."""
        for member in self._running:
            member.process.signal(signal.SIGTERM)
        while self._running:
            self._wait_end(self._take(0))

    def last_lines(self) -> str:
        """Returns the last lines of the members that run."""
        return "\n".join(f"{_name(member)}:\n{_last_lines(member)}" for member in self._running)

    def close(self) -> None:
        """Kill those that still run."""
        while self._running:
            self.kill(0)

    def _take(self, index: int) -> Member:
        member = self._running[index % len(self._running)]
        self._running.remove(member)
        self._frozen = [each for each in self._frozen if each is not member]
        return member

    def _forget(self, member: Member) -> None:
        self._take(self._running.index(member))
        _close(member)

    def _wait_end(self, member: Member) -> str:
        """Wait for the end of one that was told to end; what came of it."""
        try:
            code = member.process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            code = None
        return self._note_end(member, code)

    def _note_end(self, member: Member, code: int | None) -> str:
        if code is None:
            self.stuck.append(f"{_name(member)} did not end within {ENDS_WITHIN_S:g} s:\n{_last_lines(member)}")
        else:
            self.exit_codes[code] += 1
        _close(member)
        return "did not end" if code is None else f"exit code {code}"


def _name(member: Member) -> str:
    return f"member {member.number}"


def _last_lines(member: Member) -> str:
    return "\n".join(member.process.output.splitlines()[-LAST_LINES:])


def _close(member: Member) -> None:
    member.process.__exit__(None, None, None)
    member.clock.__exit__(None, None, None)
