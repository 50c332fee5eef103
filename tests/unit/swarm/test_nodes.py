"""The table of a node's states: every state with every event, the impossible pairs, too."""

from __future__ import annotations

import itertools

import pytest

from awoke.swarm import nodes
from awoke.swarm.nodes import IGNORED, TRANSITIONS, Action, NodeState, Transition, transition
from awoke.swarm.nodes import NodeEvent as Event

EXPECTED = """
           QUEUED  FORKING  UNWANTED BOOTING  UP       STOPPING FAILING  RETIRING ENDING  CRASHING LEAVING WAITING GONE
NO_MOLD    QUEUED  !        !        !        !        !        !        !        !       !        !       QUEUED  !
FORK_ASKED FORKING !        !        !        !        !        !        !        !       !        !       FORKING !
FORK_LOST  !       QUEUED   GONE     !        !        !        !        !        !       !        !       !       !
NOT_FORKED WAITING WAITING  GONE     !        !        !        !        !        !       !        !       WAITING !
FORKED     !       BOOTING  RETIRING !        !        !        !        !        !       !        !       !       !
READY      !       !        !        UP       .        .        .        .        .       .        .       !       !
UNWELL     !       !        !        FAILING  FAILING  .        .        .        .       .        .       !       !
OVERDUE    !       !        !        FAILING  FAILING  STOPPING FAILING  RETIRING .       .        .       !       !
STOP       !       !        !        STOPPING STOPPING .        .        .        .       .        .       !       !
RETIRE     GONE    UNWANTED .        RETIRING RETIRING RETIRING RETIRING .        LEAVING LEAVING  .       GONE    .
KEEP       .       .        FORKING  .        .        .        .        STOPPING .       .        ENDING  .       !
DIED       !       !        !        CRASHING CRASHING ENDING   CRASHING LEAVING  .       .        .       !       !
REAPED     !       !        !        !        !        !        !        !        QUEUED  WAITING  GONE    !       !
"""
"""The next state of each pair; `.`: the event changes nothing; `!`: it can't come."""


def expected() -> dict[tuple[NodeState, Event], str]:
    header, *rows = [line.split() for line in EXPECTED.strip().splitlines()]
    found = {}
    for event, *cells in rows:
        for state, cell in zip(header, cells, strict=True):
            found[NodeState[state], Event[event]] = cell
    return found


def test_the_expected_table_has_every_pair() -> None:
    assert set(expected()) == set(itertools.product(NodeState, Event))


@pytest.mark.parametrize(("state", "event"), list(itertools.product(NodeState, Event)))
def test_every_event_in_every_state(state: NodeState, event: Event) -> None:
    cell, found = expected()[state, event], transition(state, event)
    match cell:
        case "!":
            assert found is None
        case ".":
            assert found == Transition(state)
        case _:
            assert found is not None
            assert found.state is NodeState[cell]


def test_no_pair_is_both_in_the_table_and_ignored() -> None:
    ignored = {(state, event) for event, states in IGNORED.items() for state in states}
    assert not ignored & set(TRANSITIONS)


def test_every_state_is_reached_from_a_new_node_and_left_but_the_last() -> None:
    reached, left = {NodeState.QUEUED}, {state for (state, _), found in TRANSITIONS.items() if found.state is not state}
    while more := {found.state for (state, _), found in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(NodeState)
    assert left == set(NodeState) - {NodeState.GONE}


def test_every_action_is_used() -> None:
    assert {action for found in TRANSITIONS.values() for action in found.actions} == set(Action)


def test_a_process_is_told_to_end_once() -> None:
    """Each change from a state that serves tells the process to end or kills it, and no other change tells it again."""
    for (state, event), found in TRANSITIONS.items():
        begins_to_end = found.state.is_alive and not found.state.is_serving and state not in nodes.ALIVE - nodes.SERVING
        assert (Action.TERMINATE in found.actions) == (begins_to_end and event is not Event.OVERDUE)


def test_descriptors_are_closed_whenever_a_process_is_dropped() -> None:
    for (state, _), found in TRANSITIONS.items():
        had_control = state not in nodes.WITHOUT_PROCESS
        assert (Action.CLOSE in found.actions) == (had_control and found.state in nodes.WITHOUT_PROCESS)


@pytest.mark.parametrize("state", NodeState)
def test_groups_of_states_agree(state: NodeState) -> None:
    kinds = [state in nodes.WITHOUT_PROCESS, state.is_forking, state.is_alive, state.has_ended]
    assert kinds.count(True) == 1
    assert state.is_serving <= state.is_alive
    assert state.shown in {"queued", "forking", "booting", "up", "stopping", "ending", "ended", "waiting"}
