"""Starts, watches and ends the molds: kills one that hangs, and makes another one, with a back-off, while nodes run.

There is one *current* mold. A reload adds a *candidate*: `promote` makes it the current one, `drop_candidate` ends it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Protocol

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Loop
from awoke.swarm import protocol
from awoke.swarm.health import MoldPolicy
from awoke.swarm.leftovers import Leftovers
from awoke.swarm.mold_handle import MoldHandle, MoldState
from awoke.swarm.options import SwarmOptions, interpreter_options
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.signals import SIGNALS
from awoke.text.durations import duration
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_FAILED
from awoke.waiting.time import monotonic_s

logger = logging.getLogger(__name__)

END_WITHIN_S = 1.0
"""The longest time for which a process between mold and node holds the mold's socket after the mold's end."""


class MoldTimer(Enum):
    """The deadlines of one mold, and of the next one (without a number)."""

    BOOT = auto()
    """The app must be imported."""
    END = auto()
    """The last messages of a mold that has ended must have come."""
    AGAIN = auto()
    """The back-off is over: another mold is made."""


AGAIN = Deadline(MoldTimer.AGAIN)


class MoldHost(Protocol):
    """The receiver of the molds' events."""

    def on_mold_ready(self, mold: MoldHandle) -> None:
        """Called when a mold can fork nodes."""

    def on_forked(self, mold: MoldHandle, number: int, pidfd: Pidfd) -> None:
        """Called when a node's process exists."""

    def on_not_forked(self, mold: MoldHandle, number: int, why: str) -> None:
        """Called when a node's process could not be started, or not be watched."""

    def on_candidate_failed(self, why: str) -> None:
        """Called when a reload's mold has ended or was refused, before `on_mold_over`."""

    def on_mold_over(self, mold: MoldHandle) -> None:
        """Called when a mold can fork no more nodes, and all that it forked were reported."""

    def has_running_nodes(self) -> bool:
        """Returns whether the process of any node runs."""

    def wanted_nodes(self) -> int:
        """Returns the number of nodes that are to run; 0 before the first mold is ready."""

    def end_swarm(self, code: int) -> None:
        """Ends the swarm."""


class MoldControl:
    """The molds of one swarm. For the supervisor's thread; does not block."""

    def __init__(self, options: SwarmOptions, loop: Loop, host: MoldHost) -> None:
        self._options, self._loop, self._host = options, loop, host
        self._policy = MoldPolicy(options.restarts_max)
        self._leftovers = Leftovers(loop.deadlines)
        self._alive: list[MoldHandle] = []
        """The molds whose end was not handled yet."""
        self._generations = 0
        self._next: MoldHandle | None = None
        """The mold that imports the app and is to become the current one."""
        self._spare: MoldHandle | None = None
        """Where files are watched: a process that has loaded awoke and waits for its options. It imports the app at
        once when a file was saved."""
        self.current: MoldHandle | None = None
        self.candidate: MoldHandle | None = None
        self.is_closed = False
        self.last_error = ""
        """The reason why the last mold failed; empty if the current one is well."""
        self._again_s = 0.0

    # Making.

    def make(self) -> None:
        """Makes a mold that is to become the current one."""
        self._loop.deadlines.cancel(AGAIN)
        if self.is_closed or self._next is not None:
            return
        try:
            self._next = self._spawn()
        except OSError as error:
            self._make_again(EXIT_FAILED, None, f"no process can be started: {error}")

    def make_at_once(self) -> None:
        """Ends a back-off if no node runs: the swarm has nothing else to do."""
        if AGAIN in self._loop.deadlines and not self._host.has_running_nodes():
            self.make()

    def make_candidate(self) -> None:
        """Makes the mold of a reload. It replaces the next attempt of a back-off, which may have older code."""
        self._loop.deadlines.cancel(AGAIN)
        if self._next is not None:
            self._drop(self._next)
            self._next = None
        try:
            self.candidate = self._spawn()
        except OSError as error:
            why = f"no process can be started: {error}"
            self._host.on_candidate_failed(why)
            if self.current is None:
                self._make_again(EXIT_FAILED, None, why)

    def promote(self) -> None:
        """Makes the candidate the current mold; the earlier one is killed."""
        assert self.candidate is not None
        if self.current is not None:
            self._drop(self.current)
        self.current, self.candidate, self.last_error = self.candidate, None, ""
        self._prepare()

    def drop_candidate(self) -> None:
        """Ends a reload's mold. If there is no other one, it becomes the current mold."""
        candidate = self.candidate
        if candidate is not None and self.current is None and candidate.state is MoldState.READY:
            self.promote()
        elif candidate is not None:
            self.candidate = None
            self._drop(candidate)

    def _spawn(self) -> MoldHandle:
        mold, self._spare = self._spare or self._process(), None
        with contextlib.suppress(BrokenPipeError):  # It has ended: its pidfd tells of that.
            # They may hold secrets, which arguments would show to every user.
            mold.control.send(protocol.encode(self._options))
        late = f"did not import the app within {duration(self._options.boot_timeout_s)}"
        self._set(mold, MoldTimer.BOOT, self._options.boot_timeout_s, lambda: self.replace(mold, late))
        return mold

    def _process(self) -> MoldHandle:
        ours, theirs = protocol.pair()
        with contextlib.ExitStack() as unless_done, theirs:
            unless_done.callback(ours.close)
            program = [sys.executable, *interpreter_options(), "-m", "awoke.swarm.mold"]
            command = [*program, str(theirs.fileno()), str(os.getpid())]
            os.set_inheritable(theirs.fileno(), True)
            pid = os.posix_spawn(sys.executable, command, os.environ, setpgroup=0, setsigdef=SIGNALS)
            pidfd = Pidfd.open(pid)
            unless_done.pop_all()
        self._generations += 1
        mold = MoldHandle(self._generations, pidfd, ours)
        self._alive.append(mold)
        self._loop.watch(mold.control, lambda: self._on_says(mold))
        self._loop.watch(mold.pidfd, lambda: self._on_ended(mold))
        return mold

    def _prepare(self) -> None:
        """Makes the spare process of the next reload, where files are watched."""
        if self._options.watch and self._spare is None and not self.is_closed:
            with contextlib.suppress(OSError):  # The reload makes a process then.
                self._spare = self._process()

    # What a mold says.

    def _on_says(self, mold: MoldHandle) -> None:
        received = protocol.receive(mold.control)
        if received is None:
            return
        try:
            if not received.data:
                self._on_last_message(mold)
            else:
                self._take(mold, protocol.decode(received.data, protocol.FROM_MOLD), received.descriptors)
        except ValueError as error:
            logger.error("the mold sent a message that can't be read: %s", error)
        protocol.close_all(received.descriptors)

    def _take(self, mold: MoldHandle, message: protocol.MoldSays, descriptors: list[int]) -> None:
        """Acts on a message; takes the descriptor that it needs out of the list."""
        match message:
            case protocol.MoldReady():
                self._on_ready(mold, message.resident_bytes, message.single)
            case protocol.Refused():
                self._refuse(mold, message.text)
            case protocol.Forked():
                pidfd = Pidfd.received(descriptors.pop(0), message.pid) if descriptors else None
                if pidfd is None:
                    self._host.on_not_forked(mold, message.node, "its process can't be watched (ulimit -n)")
                else:
                    self._host.on_forked(mold, message.node, pidfd)
            case protocol.NotForked():
                self._host.on_not_forked(mold, message.node, message.text)

    def _on_ready(self, mold: MoldHandle, resident_bytes: int, single: str) -> None:
        self._loop.deadlines.cancel(Deadline(MoldTimer.BOOT, mold.generation))
        if mold.state is not MoldState.IMPORTING:
            return  # It was killed meanwhile.
        soft_bytes = self._options.memory_soft_bytes
        if soft_bytes is not None and soft_bytes <= resident_bytes:
            limit_mb, resident_mb = soft_bytes >> 20, resident_bytes >> 20
            what = f"the memory limit of {limit_mb} MB is below what the app has after its import, {resident_mb} MB"
            self._refuse(mold, what)
            return
        mold.single = single
        if single and (nodes := self._host.wanted_nodes() or self._options.nodes) > 1:
            self._refuse(mold, several_nodes(single, nodes))
            return
        mold.become_ready()
        self._policy.on_ready()
        if mold is self._next:
            self._next, self.current, self.last_error = None, mold, ""
            self._prepare()
        self._host.on_mold_ready(mold)

    def _refuse(self, mold: MoldHandle, text: str) -> None:
        """Ends a mold whose app can't run as it is. It is killed: threads of the app could delay its own end."""
        logger.error("%s", text)
        mold.last_error = next((line for line in reversed(text.splitlines()) if line.strip()), text)
        mold.is_refused = True
        mold.kill()

    # Its end.

    def replace(self, mold: MoldHandle, why: str) -> None:
        """Kills a mold that hangs; another one follows."""
        if mold.state is not MoldState.ENDING:
            logger.error("the mold %s: it is killed", why)
            mold.last_error = why
            mold.kill()

    def _drop(self, mold: MoldHandle) -> None:
        mold.is_dropped = True
        mold.kill()

    def _on_last_message(self, mold: MoldHandle) -> None:
        self._loop.forget(mold.control)
        mold.is_at_end = True
        if mold.exit_code is None:
            mold.kill()  # It takes no more requests.
        else:
            self._on_over(mold)

    def _on_ended(self, mold: MoldHandle) -> None:
        mold.exit_code = mold.pidfd.reap()
        if mold.exit_code is None:
            return
        self._loop.forget(mold.pidfd)
        self._leftovers.end("the mold", mold.pidfd.pid)
        mold.state = MoldState.ENDING
        if mold.is_at_end:
            self._on_over(mold)
        else:
            # Its last messages come first: a node that it has forked must not be forked again.
            self._set(mold, MoldTimer.END, END_WITHIN_S, lambda: self._on_over(mold))

    def _on_over(self, mold: MoldHandle) -> None:
        self._loop.deadlines.cancel_all(MoldTimer, mold.generation)
        self._loop.forget(mold.control)
        self._alive.remove(mold)
        mold.close()
        if mold is self._spare:
            self._spare = None
        elif not self.is_closed and not mold.is_dropped:
            self._on_failed(mold)
        elif not self.is_closed:
            self._prepare()
        self._host.on_mold_over(mold)

    def _on_failed(self, mold: MoldHandle) -> None:
        code = EXIT_CONFIGURATION if mold.is_refused else mold.exit_code or 0
        doing = "while it imported the app" if mold.served_s is None else f"after {duration(mold.served_s)}"
        why = mold.last_error or f"ended with {code} {doing}"
        if mold is self.candidate:
            self.candidate = None
            self._prepare()
            self._host.on_candidate_failed(why)
            if self.current is not None:
                return
        elif mold is self.current:
            self.current = None
            if self.candidate is not None:
                logger.error("the mold %s, during a reload: there is no way back to the old code", why)
                return
        self._next = None
        self._make_again(code, mold.served_s, why)

    def _make_again(self, code: int, served_s: float | None, why: str) -> None:
        self.last_error = why
        decision = self._policy.after(code, served_s, self._host.has_running_nodes())
        if decision.restart_in_s is None:
            logger.error("there is no mold, and no node runs: the swarm ends. %s", why)
            self._host.end_swarm(decision.exit_code)
            return
        delay_s = decision.restart_in_s
        logger.error("there is no mold: %s. Another one is made in %.0f s; running nodes go on", why, delay_s)
        self._again_s = monotonic_s() + delay_s
        self._loop.deadlines.set(AGAIN, delay_s, self.make)

    def close(self) -> None:
        """Kills all molds: no node starts any more."""
        self.is_closed = True
        self._loop.deadlines.cancel(AGAIN)
        for mold in self._alive:
            mold.kill()

    def close_descriptors(self) -> None:
        """Closes the remaining descriptors. To be called when all processes have ended."""
        for mold in self._alive:
            mold.close()

    # Status.

    def pids(self) -> set[int]:
        """Returns the numbers of the molds' processes."""
        return {mold.pidfd.pid for mold in self._alive}

    def status(self) -> dict[str, Any]:
        """Returns the current mold as `awoke status` shows it."""
        shown = self.current or self._next
        is_waiting = AGAIN in self._loop.deadlines
        return {
            "mold": None if self.current is None else self.current.generation,
            "mold_pid": None if shown is None else shown.pidfd.pid,
            "mold_state": "waiting" if is_waiting else "none" if shown is None else str(shown.state),
            "mold_error": self.last_error,
            "mold_retry_in_s": round(max(0.0, self._again_s - monotonic_s()), 1) if is_waiting else None,
        }

    def _set(self, mold: MoldHandle, timer: MoldTimer, in_s: float, action: Callable[[], object]) -> None:
        self._loop.deadlines.set(Deadline(timer, mold.generation), in_s, action)


def several_nodes(single: str, nodes: int) -> str:
    """Returns the reason why an app can't run on several nodes."""
    return f"{nodes} nodes can't run the app: {single}"
