"""A node as its supervisor sees it: what `status` shows, and what a new process resets."""

from __future__ import annotations

import os
import signal
import socket
from typing import cast

import pytest

from awoke.swarm.node_handle import VITALS_LATE_S, NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.protocol import TEXT_MAX, Vitals
from awoke.testing import VirtualClock
from tests.unit.swarm.fakes import FakePidfd, signals_of, up

VITALS = Vitals(1, 2 << 20, 10, 3, 1_500, 0, 7, 4, -1)


def test_status_shows_the_last_sign_of_life() -> None:
    node = up(3)
    node.lives(VITALS)
    found = node.status()
    assert (found["node"], found["state"], found["memory_bytes"], found["jobs"]) == (3, "up", 2 << 20, 7)
    assert (found["oldest_job_s"], found["lag"], found["assigned"]) == (1.5, None, 4)
    node.close()


@pytest.mark.parametrize(("state", "word"), [(NodeState.FAILING, "stopping"), (NodeState.CRASHING, "ending")])
def test_status_does_not_tell_what_follows(state: NodeState, word: str) -> None:
    node = NodeHandle(1)
    node.state = state
    assert node.status()["state"] == word


def test_a_message_about_partitions_outdates_signs_of_life() -> None:
    node = NodeHandle(1)
    with VirtualClock() as clock:
        node.holds(2)
        node.lives(VITALS)
        assert node.assigned == 2, "the sign of life may be older"
        clock.advance(VITALS_LATE_S + 1)
        node.lives(VITALS)
    assert node.assigned == 4


def test_a_new_process_begins_without_the_past_of_the_last_one() -> None:
    node = up(1)
    node.quiet()
    node.fail("x" * (TEXT_MAX + 1))
    node.why_not_ready = "no broker"
    assert len(node.last_error) == TEXT_MAX
    assert node.is_quiet
    node.close()
    ours, theirs = socket.socketpair()
    theirs.close()
    node.begin(ours, 2)
    assert (node.is_quiet, node.why_not_ready, node.failure, node.mold) == (False, "", "", 2)
    assert len(node.last_error) == TEXT_MAX, "the status keeps it"
    node.close()


def test_without_a_process_there_is_nothing_to_signal() -> None:
    node = NodeHandle(1)
    assert not node.send(signal.SIGTERM)
    node.quiet()
    assert not node.is_quiet
    assert node.pid is None
    assert node.memory_bytes == 0


def test_the_memory_of_a_process_without_a_sign_of_life_is_the_systems_figure() -> None:
    node = NodeHandle(1)
    node.pidfd = cast(Pidfd, FakePidfd(os.getpid()))
    assert node.memory_bytes > 0
    assert signals_of(node) == []
    node.close()
