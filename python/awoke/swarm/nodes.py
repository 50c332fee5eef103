"""The states of a node, and the table that says what each event does in each state.

A node is one place in the swarm. At most one process has it at a time. `NodeControl` is the only writer of a state: it
looks up (state, event) here, sets the next state, and then runs the actions in order.

```
 the start of a process
 ----------------------
                            +------- FORK_LOST --------+
                            v                          |
 new node ---------------> QUEUED -- FORK_ASKED --> FORKING -- FORKED --> BOOTING -- READY --> UP
                            ^ |                       ^ |
                    NO_MOLD | | NOT_FORKED            | | NOT_FORKED
                            | v                       | |
                           WAITING -- FORK_ASKED -----+ |
                              ^-------------------------+

 its end, and the start of the next one
 --------------------------------------
 BOOTING, UP -- STOP ----> STOPPING -- DIED --> ENDING ---- REAPED --> QUEUED    another process, at once
 BOOTING, UP -- UNWELL --> FAILING --- DIED --> CRASHING -- REAPED --> WAITING   another process, after a back-off
 BOOTING, UP -------------------------- DIED --> CRASHING
 BOOTING, UP -- RETIRE --> RETIRING -- DIED --> LEAVING --- REAPED --> GONE      no other process
```

- RETIRE (the swarm shrinks or stops) ends every node for good. QUEUED and WAITING become GONE at once. FORKING becomes
  UNWANTED: the process that comes is told to end (FORKED -> RETIRING); if none comes, the node is GONE. STOPPING and
  FAILING become RETIRING; ENDING and CRASHING become LEAVING.
- KEEP (the swarm grows again) takes that back: UNWANTED -> FORKING, RETIRING -> STOPPING, LEAVING -> ENDING.
- OVERDUE kills the process. BOOTING and UP become FAILING; the other states stay until DIED.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class NodeState(Enum):
    """The life of a node."""

    QUEUED = "queued"
    """Has no process. Starts as soon as there is a mold."""
    FORKING = "forking"
    """A mold was asked for a process."""
    UNWANTED = "unwanted"
    """A mold was asked for a process that is not wanted any more."""
    BOOTING = "booting"
    """The process exists. The app has not started yet."""
    UP = "up"
    """The app runs."""
    STOPPING = "stopping"
    """The process was told to end. Another one follows; this is no failure."""
    FAILING = "failing"
    """The process was told to end because it is not well. Another one follows; this is a failure."""
    RETIRING = "retiring"
    """The process was told to end. No other one follows."""
    ENDING = "ending"
    """The process of STOPPING has ended. The system takes back its memory, ports and locks."""
    CRASHING = "crashing"
    """The process has failed and ended. The system takes back its memory, ports and locks."""
    LEAVING = "leaving"
    """The process of RETIRING has ended. The system takes back its memory, ports and locks."""
    WAITING = "waiting"
    """Has no process. Starts after a back-off."""
    GONE = "gone"
    """Has no process and gets none."""

    @property
    def shown(self) -> str:
        """The word that `awoke status` shows: it does not tell what follows the end of a process."""
        return SHOWN.get(self, self.value)

    @property
    def is_serving(self) -> bool:
        """True if there is a process that was not told to end."""
        return self in SERVING

    @property
    def is_alive(self) -> bool:
        """True if there is a process that has not ended."""
        return self in ALIVE

    @property
    def has_ended(self) -> bool:
        """True if there is a process that has ended and was not reaped yet."""
        return self in ENDED

    @property
    def is_forking(self) -> bool:
        """True if a mold was asked for a process that it has not reported yet."""
        return self in (NodeState.FORKING, NodeState.UNWANTED)

    @property
    def is_settled(self) -> bool:
        """True if no change of state is under way: the node is up, or has no process."""
        return self in SETTLED

    @property
    def is_leaving(self) -> bool:
        """True if no process follows the present one."""
        return self in (NodeState.UNWANTED, NodeState.RETIRING, NodeState.LEAVING, NodeState.GONE)


SHOWN = {
    NodeState.UNWANTED: "forking",
    NodeState.FAILING: "stopping",
    NodeState.RETIRING: "stopping",
    NodeState.CRASHING: "ending",
    NodeState.LEAVING: "ending",
    NodeState.GONE: "ended",
}
SERVING = frozenset({NodeState.BOOTING, NodeState.UP})
ALIVE = SERVING | {NodeState.STOPPING, NodeState.FAILING, NodeState.RETIRING}
ENDED = frozenset({NodeState.ENDING, NodeState.CRASHING, NodeState.LEAVING})
WITHOUT_PROCESS = frozenset({NodeState.QUEUED, NodeState.WAITING, NodeState.GONE})
SETTLED = WITHOUT_PROCESS | {NodeState.UP}


class NodeEvent(Enum):
    """An event in the life of a node."""

    NO_MOLD = auto()
    """The node is to start, and no mold can fork it."""
    FORK_ASKED = auto()
    """A mold was asked for a process."""
    FORK_LOST = auto()
    """The mold that was asked has ended without forking."""
    NOT_FORKED = auto()
    """The system could not make the process, or its socket."""
    FORKED = auto()
    """The process exists."""
    READY = auto()
    """The process says that the app runs."""
    UNWELL = auto()
    """The process is silent, hangs, or did not start in time."""
    OVERDUE = auto()
    """The process did not end in time, or uses more memory than the hard limit."""
    STOP = auto()
    """Another process is to take the place of this one, in order."""
    RETIRE = auto()
    """The node is not wanted any more: the swarm shrinks or stops."""
    KEEP = auto()
    """The node is wanted: the swarm grows."""
    DIED = auto()
    """The process has ended: the tripwire or the pidfd says so."""
    REAPED = auto()
    """The system has taken the process apart, and the exit code is known."""


class Action(Enum):
    """A step that `NodeControl` runs after a change of state."""

    MAKE_MOLD = auto()
    """Makes a mold now, instead of after its back-off, if no node runs."""
    START = auto()
    """Asks a mold for a process. Raises FORK_ASKED, NO_MOLD or NOT_FORKED."""
    TRY_LATER = auto()
    """Starts the node in a second: the system had no room for it."""
    WATCH = auto()
    """Waits for messages and the end of the new process, and limits its boot."""
    ANNOUNCE = auto()
    """Tells the reload, and systemd, that the node is up."""
    DUMP = auto()
    """Lets the process write its stacks to the log."""
    TERMINATE = auto()
    """Sends SIGTERM and SIGCONT, and limits the time until the end."""
    KILL = auto()
    """Sends SIGKILL."""
    NOTE_DEATH = auto()
    """Records the moment at which the end of a process was seen."""
    CLOSE = auto()
    """Closes the descriptors of the process, and cancels the deadlines of the node."""
    TELL_RELOAD = auto()
    """Tells the reload that the process has ended as asked."""
    JUDGE = auto()
    """Decides when another process follows a failed one, or whether the swarm ends."""
    FORGET = auto()
    """Removes the node from the swarm, unless the swarm stops."""


class NodeTimer(Enum):
    """The deadlines of a node."""

    FORK = auto()
    """The mold must have forked the process."""
    BOOT = auto()
    """The app must run."""
    SILENT = auto()
    """The next sign of life must have come."""
    FROZEN = auto()
    """A silent process that was continued must have ended."""
    STOP = auto()
    """A process that was told to end must have ended."""
    RESTART = auto()
    """The back-off is over: the node starts."""


class Transition(NamedTuple):
    """The next state, and the actions in order."""

    state: NodeState
    actions: tuple[Action, ...] = ()


S, E, A = NodeState, NodeEvent, Action

TRANSITIONS: dict[tuple[NodeState, NodeEvent], Transition] = {
    # Start.
    (S.QUEUED, E.NO_MOLD): Transition(S.QUEUED, (A.MAKE_MOLD,)),
    (S.WAITING, E.NO_MOLD): Transition(S.QUEUED, (A.MAKE_MOLD,)),
    (S.QUEUED, E.FORK_ASKED): Transition(S.FORKING),
    (S.WAITING, E.FORK_ASKED): Transition(S.FORKING),
    (S.QUEUED, E.NOT_FORKED): Transition(S.WAITING, (A.TRY_LATER,)),
    (S.WAITING, E.NOT_FORKED): Transition(S.WAITING, (A.TRY_LATER,)),
    (S.FORKING, E.NOT_FORKED): Transition(S.WAITING, (A.CLOSE, A.TRY_LATER)),
    (S.UNWANTED, E.NOT_FORKED): Transition(S.GONE, (A.CLOSE, A.FORGET)),
    (S.FORKING, E.FORK_LOST): Transition(S.QUEUED, (A.CLOSE,)),
    (S.UNWANTED, E.FORK_LOST): Transition(S.GONE, (A.CLOSE, A.FORGET)),
    (S.FORKING, E.FORKED): Transition(S.BOOTING, (A.WATCH,)),
    (S.UNWANTED, E.FORKED): Transition(S.RETIRING, (A.WATCH, A.TERMINATE)),
    (S.BOOTING, E.READY): Transition(S.UP, (A.ANNOUNCE,)),
    # A process that is to end, and another one follows.
    (S.BOOTING, E.STOP): Transition(S.STOPPING, (A.TERMINATE,)),
    (S.UP, E.STOP): Transition(S.STOPPING, (A.TERMINATE,)),
    (S.BOOTING, E.UNWELL): Transition(S.FAILING, (A.DUMP, A.TERMINATE)),
    (S.UP, E.UNWELL): Transition(S.FAILING, (A.DUMP, A.TERMINATE)),
    (S.BOOTING, E.OVERDUE): Transition(S.FAILING, (A.KILL,)),
    (S.UP, E.OVERDUE): Transition(S.FAILING, (A.KILL,)),
    (S.STOPPING, E.OVERDUE): Transition(S.STOPPING, (A.KILL,)),
    (S.FAILING, E.OVERDUE): Transition(S.FAILING, (A.KILL,)),
    (S.RETIRING, E.OVERDUE): Transition(S.RETIRING, (A.KILL,)),
    # A node that is not wanted any more, or again.
    (S.QUEUED, E.RETIRE): Transition(S.GONE, (A.FORGET,)),
    (S.WAITING, E.RETIRE): Transition(S.GONE, (A.FORGET,)),
    (S.FORKING, E.RETIRE): Transition(S.UNWANTED),
    (S.BOOTING, E.RETIRE): Transition(S.RETIRING, (A.TERMINATE,)),
    (S.UP, E.RETIRE): Transition(S.RETIRING, (A.TERMINATE,)),
    (S.STOPPING, E.RETIRE): Transition(S.RETIRING),
    (S.FAILING, E.RETIRE): Transition(S.RETIRING),
    (S.ENDING, E.RETIRE): Transition(S.LEAVING),
    (S.CRASHING, E.RETIRE): Transition(S.LEAVING),
    (S.UNWANTED, E.KEEP): Transition(S.FORKING),
    (S.RETIRING, E.KEEP): Transition(S.STOPPING),
    (S.LEAVING, E.KEEP): Transition(S.ENDING),
    # The end of a process.
    (S.BOOTING, E.DIED): Transition(S.CRASHING, (A.NOTE_DEATH,)),
    (S.UP, E.DIED): Transition(S.CRASHING, (A.NOTE_DEATH,)),
    (S.FAILING, E.DIED): Transition(S.CRASHING, (A.NOTE_DEATH,)),
    (S.STOPPING, E.DIED): Transition(S.ENDING, (A.NOTE_DEATH,)),
    (S.RETIRING, E.DIED): Transition(S.LEAVING, (A.NOTE_DEATH,)),
    (S.ENDING, E.REAPED): Transition(S.QUEUED, (A.CLOSE, A.TELL_RELOAD, A.START)),
    (S.CRASHING, E.REAPED): Transition(S.WAITING, (A.CLOSE, A.JUDGE)),
    (S.LEAVING, E.REAPED): Transition(S.GONE, (A.CLOSE, A.FORGET)),
}
"""Each pair that changes something. A pair that is neither here nor in `IGNORED` is impossible: a bug."""

IGNORED: dict[NodeEvent, frozenset[NodeState]] = {
    E.READY: ALIVE - {S.BOOTING} | ENDED,  # User code runs in the process, and may say it at any time.
    E.UNWELL: ALIVE - SERVING | ENDED,
    E.OVERDUE: ENDED,
    E.STOP: ALIVE - SERVING | ENDED,
    E.RETIRE: frozenset({S.UNWANTED, S.RETIRING, S.LEAVING, S.GONE}),
    E.KEEP: frozenset(S) - {S.UNWANTED, S.RETIRING, S.LEAVING, S.GONE},
    E.DIED: ENDED,  # The tripwire says so first, and the pidfd again.
}
"""The states in which an event may come and changes nothing."""


def transition(state: NodeState, event: NodeEvent) -> Transition | None:
    """Returns what an event does in a state; `None` if the event can't come in that state, which is a bug."""
    found = TRANSITIONS.get((state, event))
    if found is None and state in IGNORED.get(event, ()):
        return Transition(state)
    return found
