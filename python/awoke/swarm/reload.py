"""A reload: the app is imported again, and nodes are replaced one by one. The old mold stays until all are replaced.

1. `begin`: a mold imports the new code, the *candidate*. If it fails, nothing has changed.
2. `on_candidate_ready`: the first node is stopped in order and forked from the candidate.
3. The new code is *proved* when that node has stayed up for `PROVED_AFTER_S` and then gives a sign of life. The next
   node follows when this one has partitions, or after `ASSIGNED_WITHIN_S`: there may be none for it.
4. When no node runs the old code, the candidate becomes the current mold.

If any node with the new code fails before that, the reload stops: the node starts again from the old mold, and the
candidate ends.

Where files are watched, a reload is *at once*: all nodes are replaced together when the new code is imported, and the
candidate becomes the current mold when all are up. If one fails before that, all return to the old mold. The thread
`awoke-watch` waits for changes, and writes a byte to a socket that the supervisor's loop watches.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
from collections.abc import Callable, Mapping
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Any, Protocol

from awoke.observe.web.deadlines import Deadline, Deadlines
from awoke.observe.web.loop import Loop
from awoke.preconditions.extras import needs
from awoke.swarm.mold_control import MoldControl
from awoke.swarm.mold_handle import MoldHandle, MoldState
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState

logger = logging.getLogger(__name__)

PROVED_AFTER_S = 5.0
ASSIGNED_WITHIN_S = 30.0

LIMIT = re.compile("watch limit|no space left|too many open files", re.IGNORECASE)
"""What the system says when it has no more watches for this user."""
ADVICE = "; raise fs.inotify.max_user_watches and max_user_instances (sysctl), or start it in a smaller folder"
TOGETHER_MS = 100
"""Changes within this time are one: editors write several files, or one file in several steps."""

OnEnd = Callable[[str | None], object]
"""Gets the reason why a reload failed; `None` if every node runs the new code."""
BeginReload = Callable[[OnEnd], bool]
"""Begins a reload, and calls the function when it has ended; returns false if none can begin now."""


class RollTimer(Enum):
    """The deadlines of a reload."""

    PROOF = auto()
    """The first node of the new code has stayed up."""
    ASSIGNMENT = auto()
    """The node that was replaced last is not waited for any longer."""


PROOF, ASSIGNMENT = Deadline(RollTimer.PROOF), Deadline(RollTimer.ASSIGNMENT)


class RollState(StrEnum):
    """The state of a reload."""

    IDLE = "idle"
    IMPORTING = "importing"
    ROLLING = "rolling"


class ReloadHost(Protocol):
    """The actions on nodes that a reload needs."""

    def stop(self, node: NodeHandle) -> None:
        """Stops a node's process in order; another one follows."""

    def start(self, node: NodeHandle) -> None:
        """Starts a node."""

    def start_queued(self) -> None:
        """Starts the nodes that wait for a mold."""

    def on_reload_possible(self) -> None:
        """Called when no reload is under way any more."""


class Roll:
    """The reload of a swarm, if one is under way. For the supervisor's thread; does not block."""

    def __init__(
        self,
        nodes: Mapping[int, NodeHandle],
        molds: MoldControl,
        deadlines: Deadlines,
        host: ReloadHost,
        *,
        at_once: bool = False,
    ) -> None:
        self._nodes, self._molds, self._deadlines, self._host = nodes, molds, deadlines, host
        self._at_once = at_once
        self.state = RollState.IDLE
        self._rolled: int | None = None
        """The node that is being replaced."""
        self._generation: int | None = None
        """The generation of the candidate, while nodes are replaced."""
        self._has_stayed = self._is_proved = False
        self._on_end: list[OnEnd] = []
        self.last_error = ""
        """The reason why the last reload failed; empty if it did not."""

    @property
    def is_under_way(self) -> bool:
        """True if a reload has begun and not ended."""
        return self.state is not RollState.IDLE

    def begin(self, on_end: OnEnd | None = None) -> bool:
        """Imports the app again; returns false if a reload is under way already."""
        if self.is_under_way:
            return False
        logger.info("reload: the app is imported anew")
        self.state, self._is_proved, self.last_error = RollState.IMPORTING, False, ""
        self._on_end = [] if on_end is None else [on_end]
        self._molds.make_candidate()
        return True

    def mold_for(self, node: NodeHandle) -> MoldHandle | None:
        """Returns the mold that forks this node; `None` if the node must wait for one."""
        candidate = self._molds.candidate
        if candidate is None or candidate.state is not MoldState.READY:
            return self._molds.current
        is_new = self._is_proved or self._is_rolled(node) or self._is_of_candidate(node)
        return candidate if is_new or self._molds.current is None else self._molds.current

    def _is_of_candidate(self, node: NodeHandle) -> bool:
        return node.mold == self._generation

    def _is_rolled(self, node: NodeHandle) -> bool:
        """Tells whether this node is being replaced."""
        return self._rolled == node.number or (self._at_once and self.state is RollState.ROLLING)

    # What happens.

    def on_candidate_ready(self, mold: MoldHandle) -> None:
        """Begins to replace the nodes."""
        self.state, self._generation = RollState.ROLLING, mold.generation
        if not self._at_once:
            self._advance()
            return
        for node in self._old():
            self._replace(node)
        self._end_if_all_are_up()

    def on_candidate_failed(self, why: str) -> None:
        """Stops the reload: the new code was not imported, or its mold ended."""
        doing = "the app could not be imported" if self.state is RollState.IMPORTING else "the new mold failed"
        self._fail(f"{doing}: {why}")

    def on_node_forked(self, node: NodeHandle) -> None:
        """Stops a node that the old mold was still forking when the reload came to it."""
        if self._is_rolled(node) and not self._is_of_candidate(node):
            self._host.stop(node)

    def on_node_ready(self, node: NodeHandle) -> None:
        """Begins to wait for the node's partitions; the first node must also stay up for some time."""
        if self._at_once and self.state is RollState.ROLLING:
            self._end_if_all_are_up()
            return
        if self._rolled != node.number or not self._is_of_candidate(node):
            return
        self._has_stayed = False
        self._deadlines.set(PROOF, PROVED_AFTER_S, self._on_stayed)
        self._deadlines.set(ASSIGNMENT, ASSIGNED_WITHIN_S, self._advance_when_done)
        self.on_node_assigned(node)

    def on_node_alive(self, node: NodeHandle) -> None:
        """Takes a sign of life of the first node as the proof, once it has stayed up. A frozen node gives none."""
        if self._rolled == node.number and self._has_stayed and not self._is_proved and node.state is NodeState.UP:
            logger.info("reload: node %d has stayed up with the new code", node.number)
            self._is_proved = True
            self._advance_when_done()

    def on_node_assigned(self, node: NodeHandle) -> None:
        """Continues when the node is up and has its partitions."""
        if self._rolled == node.number and node.state is NodeState.UP and node.assigned_ns:
            self._deadlines.cancel(ASSIGNMENT)
            self._advance_when_done()

    def on_node_stopped(self, node: NodeHandle) -> None:
        """Begins to wait for the next process of a node whose process has ended as told."""
        if self._rolled == node.number:
            self._deadlines.cancel_all(RollTimer)

    def on_node_failed(self, node: NodeHandle, why: str) -> bool:
        """Returns true if the node starts again at once, from `mold_for`; false if it is an ordinary failure."""
        if self.state is not RollState.ROLLING:
            return False
        if not self._is_of_candidate(node):
            self.on_node_stopped(node)
            return self._is_rolled(node)
        has_old_mold = self._molds.current is not None
        self._fail(f"node {node.number}, with the new code, {why}")
        return has_old_mold

    def on_node_gone(self, node: NodeHandle) -> None:
        """Continues without a node that is gone."""
        if self._rolled == node.number:
            self._advance()
        elif self._at_once and self.state is RollState.ROLLING:
            self._end_if_all_are_up()

    def cancel(self, why: str) -> None:
        """Ends a reload because the swarm ends."""
        if self.is_under_way:
            self._end(why)

    # Steps.

    def _on_stayed(self) -> None:
        self._has_stayed = True

    def _advance_when_done(self) -> None:
        if self._is_proved and ASSIGNMENT not in self._deadlines:
            self._advance()

    def _advance(self) -> None:
        """Replaces the next node with old code, or ends the reload."""
        self._deadlines.cancel_all(RollTimer)
        self._rolled = None
        if left := self._old():
            self._replace(left[0])
        else:
            self._succeed()

    def _wanted(self) -> list[NodeHandle]:
        return [node for _, node in sorted(self._nodes.items()) if not node.state.is_leaving]

    def _old(self) -> list[NodeHandle]:
        """Returns the nodes that run the old code, or none."""
        return [node for node in self._wanted() if not self._is_of_candidate(node)]

    def _end_if_all_are_up(self) -> None:
        if all(self._is_of_candidate(node) and node.state is NodeState.UP for node in self._wanted()):
            self._succeed()

    def _succeed(self) -> None:
        self._molds.promote()
        logger.info("every node has been replaced")
        self._end(None)

    def _replace(self, node: NodeHandle) -> None:
        self._rolled = node.number
        match node.state:
            case NodeState.UP | NodeState.BOOTING:
                self._host.stop(node)
            case NodeState.WAITING | NodeState.QUEUED:
                self._host.start(node)
            case _:
                pass  # It is being forked, or ends: `on_node_forked`, or the start of its next process, continues.

    def _fail(self, why: str) -> None:
        new = [
            number
            for number, node in sorted(self._nodes.items())
            if self._is_of_candidate(node) and node.pid is not None
        ]
        self._molds.drop_candidate()
        returning = new if self._at_once and self._molds.current is not None else []
        for number in returning:
            if self._nodes[number].state in (NodeState.UP, NodeState.BOOTING):
                self._host.stop(self._nodes[number])
        new = [] if returning else new
        kept = f"; nodes {new} keep the new code until they end" if new else ""
        logger.error("the reload is stopped, the swarm goes on with the old code: %s%s", why, kept)
        self._end(why)

    def _end(self, why: str | None) -> None:
        self._deadlines.cancel_all(RollTimer)
        self.state, self._rolled, self._generation, self.last_error = RollState.IDLE, None, None, why or ""
        waiting, self._on_end = self._on_end, []
        for each in waiting:
            each(why)
        self._host.start_queued()
        self._host.on_reload_possible()

    def status(self) -> dict[str, Any]:
        """Returns the reload as `awoke status` shows it."""
        return {"state": str(self.state), "node": self._rolled, "last_error": self.last_error}


class FileWatch:
    """Reloads a swarm when its files have changed on disk. Needs the extra `watch`. For the supervisor's thread."""

    def __init__(self, folder: Path, loop: Loop, reload: BeginReload) -> None:
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
            ignore_permission_denied=True,
        )
        try:
            for changed in changes:
                logger.info("changed: %s", ", ".join(sorted({Path(path).name for _, path in changed})))
                with contextlib.suppress(OSError):  # The supervisor has ended.
                    self._writing.send(b"\0")
        except Exception as error:  # Of the library, in any shape.
            logger.error(
                "%s is not watched any more: %s. awoke reload, or HUP, still reloads%s",
                self._folder,
                error,
                ADVICE if LIMIT.search(str(error)) else "",
            )

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
