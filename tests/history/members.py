"""The members of a group: processes of the app, each with a clock of its own that can be stepped, and a swarm."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.history.nodes import ENDS_WITHIN_S, Nodes
from tests.history.settings import Copy, Run
from tests.support.clock_step import SteppedClock, build
from tests.support.processes import Process

LAST_LINES = 15


class Member(NamedTuple):
    """One process."""

    number: int
    """No two of a run have the same."""
    process: Process
    clock: SteppedClock


class Members:
    """Those that run. The one that is named by an index is the one of that place, counted round.

    They are processes of one member each; `nodes` is the swarm of those groups that have one beside them.
    """

    def __init__(self, run: Run, servers: str, copy: Copy, folder: Path) -> None:
        self.copy = copy
        self._run, self._servers, self._folder = run, servers, folder
        folder.mkdir()
        self._library = build(folder)
        self._env = {"HISTORY_MODE": copy.mode_in(run), "HISTORY_OUTPUT": copy.output, **copy.env}
        self._env |= {"AWOKE_GROUP": copy.group, "AWOKE_COMMIT_INTERVAL_S": "0.2"}
        self.nodes = Nodes(run, servers, copy, self._env, folder) if copy.nodes else None
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
        kafka = [word for name, value in self._run.kafka.items() for word in ("--kafka", f"{name}={value}")]
        arguments = ["run", "tests.history.apps:app", "--bootstrap-servers", self._servers, *kafka]
        process = Process(*arguments, env={**self._env, **clock.env})
        self._running.append(Member(self._started, process, clock))
        self._started += 1
        return self._name(self._running[-1])

    def kill(self, index: int) -> str:
        """Kill one; its name."""
        member = self._take(index)
        member.process.signal(signal.SIGKILL)
        member.process.wait(ENDS_WITHIN_S)
        self._close(member)
        return self._name(member)

    def terminate(self, index: int) -> str:
        """Stop one in order; its name, and how it ended."""
        member = self._take(index)
        member.process.signal(signal.SIGTERM)
        member.process.signal(signal.SIGCONT)
        return f"{self._name(member)} ({self._wait_end(member)})"

    def freeze(self, index: int) -> str:
        """Suspend one; its name."""
        member = self._running[index % len(self._running)]
        member.process.signal(signal.SIGSTOP)
        if member not in self._frozen:
            self._frozen.append(member)
        return self._name(member)

    def continue_all(self) -> str:
        """Resume those that are frozen; their names."""
        frozen, self._frozen = self._frozen, []
        for member in frozen:
            member.process.signal(signal.SIGCONT)
        return ", ".join(map(self._name, frozen)) or "none is frozen"

    def step_clock(self, index: int, offset_s: float) -> str:
        """Step the clock of one; its name."""
        member = self._running[index % len(self._running)]
        member.clock.set(offset_s)
        return self._name(member)

    def replace_ended(self) -> list[str]:
        """Start one for each that has ended without having been told to; the names of those."""
        ended = [each for each in self._running if not each.process.is_running]
        for member in ended:
            code = member.process.wait(ENDS_WITHIN_S)
            self.exit_codes[code] += 1
            self.ended_early.append(f"{self._name(member)} ended with {code}:\n{_last_lines(member)}")
            self._forget(member)
            self.start()
        names = [self._name(member) for member in ended]
        if self.nodes is not None and (text := self.nodes.replace_ended()):
            self.ended_early.append(text)
            names.append(f"the swarm of {self.copy.group}")
        return names

    def heal(self) -> None:
        """Have none frozen, and as many as in the beginning."""
        self.continue_all()
        self.replace_ended()
        while len(self) < self.copy.members[0]:
            self.start()
        if self.nodes is not None:
            self.nodes.heal()

    def terminate_all(self) -> int:
        """Stop all processes of one member in order; their number."""
        count = len(self._running)
        for member in self._running:
            member.process.signal(signal.SIGTERM)
            member.process.signal(signal.SIGCONT)
        while self._running:
            self._wait_end(self._take(0))
        return count

    def end(self) -> None:
        """Stop all in order, the swarm too."""
        self.terminate_all()
        if self.nodes is not None:
            code, lines = self.nodes.stop()
            self.nodes = None
            if code is None:
                self.stuck.append(f"the swarm did not end:\n{lines}")
            else:
                self.exit_codes[code] += 1

    def last_lines(self) -> str:
        """Returns the last lines of the members that run."""
        lines = [f"{self._name(member)}:\n{_last_lines(member)}" for member in self._running]
        return "\n".join([*lines, *([self.nodes.last_lines()] if self.nodes is not None else [])])

    def close(self) -> None:
        """Kill those that still run."""
        while self._running:
            self.kill(0)
        if self.nodes is not None:
            self.nodes.close()

    def _name(self, member: Member) -> str:
        return f"member {member.number} of {self.copy.group}"

    def _take(self, index: int) -> Member:
        member = self._running[index % len(self._running)]
        self._running.remove(member)
        self._frozen = [each for each in self._frozen if each is not member]
        return member

    def _close(self, member: Member) -> None:
        member.process.__exit__(None, None, None)
        member.clock.__exit__(None, None, None)
        self._run.keep_output(self._name(member), member.process.output)

    def _forget(self, member: Member) -> None:
        self._take(self._running.index(member))
        self._close(member)

    def _wait_end(self, member: Member) -> str:
        """Wait for the end of one that was told to end; what came of it."""
        try:
            code = member.process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            code = None
        return self._note_end(member, code)

    def _note_end(self, member: Member, code: int | None) -> str:
        if code is None:
            self.stuck.append(f"{self._name(member)} did not end within {ENDS_WITHIN_S:g} s:\n{_last_lines(member)}")
        else:
            self.exit_codes[code] += 1
        self._close(member)
        return "did not end" if code is None else f"exit code {code}"


def _last_lines(member: Member) -> str:
    return "\n".join(member.process.output.splitlines()[-LAST_LINES:])
