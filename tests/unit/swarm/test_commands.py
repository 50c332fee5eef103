"""Commands for a swarm, by signal or by name: what they ask of its nodes."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from typing import cast

import pytest

import awoke
from awoke.observe.web.loop import Loop
from awoke.swarm import linux
from awoke.swarm.commands import SwarmCommands, SwarmState
from awoke.swarm.mold_handle import MoldHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import SwarmOptions
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.questions import Questions
from awoke.text import exit_codes
from tests.unit.swarm.fakes import FakePidfd, signals_of, up


class Commanded:
    """The commands of a swarm with three nodes that are up."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.commands = SwarmCommands(SwarmOptions(target="a:b", nodes=3, socket="s"), self.loop, Questions(self.loop))
        self.nodes = self.commands.control.nodes
        self.nodes.update({number: up(number) for number in (1, 2, 3)})

    def states(self) -> list[NodeState]:
        return [node.state for node in self.nodes.values()]

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()
        self.loop.close()


@pytest.fixture
def swarm() -> Iterator[Commanded]:
    swarm = Commanded()
    yield swarm
    swarm.close()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(linux, "notify_systemd", told.append)
    return told


def test_systemd_is_told_once_that_every_node_is_up_and_once_that_the_swarm_stops(
    swarm: Commanded, told: list[str]
) -> None:
    swarm.nodes[3].state = NodeState.BOOTING
    swarm.commands.on_node_up()
    assert told == []
    swarm.nodes[3].state = NodeState.UP
    swarm.commands.on_node_up()
    swarm.commands.on_node_up()
    swarm.commands.stop()
    swarm.commands.stop()
    assert told == ["READY=1", "STOPPING=1"]
    assert swarm.commands.state is SwarmState.STOPPING


def test_the_first_signal_stops_the_second_waits_for_no_job_and_the_third_kills(swarm: Commanded) -> None:
    for _ in range(3):
        swarm.commands.on_signal(signal.SIGTERM)
    expected = [signal.SIGTERM, signal.SIGCONT, signal.SIGQUIT, signal.SIGKILL]
    assert [signals_of(node) for node in swarm.nodes.values()] == [expected] * 3
    assert swarm.states() == [NodeState.RETIRING] * 3
    assert swarm.commands.exit_code == exit_codes.EXIT_AT_ONCE


def test_a_swarm_that_is_ended_keeps_its_first_exit_code(swarm: Commanded) -> None:
    swarm.commands.end_swarm(4)
    swarm.commands.end_swarm(78)
    assert swarm.commands.exit_code == 4
    assert swarm.commands.is_stopping


def test_a_swarm_shrinks_from_the_end_and_grows_again(swarm: Commanded) -> None:
    swarm.commands.scale(1)
    assert swarm.states() == [NodeState.UP, NodeState.RETIRING, NodeState.RETIRING]
    swarm.commands.scale(2)
    assert swarm.states() == [NodeState.UP, NodeState.STOPPING, NodeState.RETIRING]
    swarm.commands.scale(5)
    assert swarm.states()[1:3] == [NodeState.STOPPING] * 2
    assert [each.number for each in swarm.nodes.values()] == [1, 2, 3, 4, 5]


def test_signals_change_the_number_of_nodes_by_one(swarm: Commanded) -> None:
    swarm.commands.on_signal(signal.SIGTTOU)
    assert swarm.states() == [NodeState.UP, NodeState.UP, NodeState.RETIRING]
    swarm.commands.on_signal(signal.SIGTTIN)
    assert swarm.states() == [NodeState.UP, NodeState.UP, NodeState.STOPPING]
    swarm.commands.on_signal(signal.SIGTTIN)
    assert len(swarm.nodes) == 4


def test_an_app_for_one_node_is_not_scaled(swarm: Commanded, caplog: pytest.LogCaptureFixture) -> None:
    mold = MoldHandle(1, cast(Pidfd, FakePidfd()), socket.socket())
    mold.single = "route 'orders': each process reads partitions=[0]"
    swarm.commands.control.molds.current = mold
    with pytest.raises(awoke.ConfigError, match=r"4 nodes can't run the app: .*partitions=\[0\]"):
        swarm.commands.scale(4)
    swarm.commands.on_signal(signal.SIGTTIN)
    assert swarm.states() == [NodeState.UP] * 3
    assert "no other number of nodes: 4 nodes can't run the app: route 'orders'" in caplog.text
    swarm.commands.scale(1)
    assert swarm.states() == [NodeState.UP, NodeState.RETIRING, NodeState.RETIRING]
    mold.close()


def test_a_swarm_that_stops_does_not_grow(swarm: Commanded) -> None:
    swarm.commands.stop()
    swarm.commands.scale(5)
    assert swarm.states() == [NodeState.RETIRING] * 3


def test_quiet_lasts_until_a_reload(swarm: Commanded) -> None:
    swarm.commands.on_signal(signal.SIGTSTP)
    assert [signals_of(node) for node in swarm.nodes.values()] == [[signal.SIGTSTP]] * 3
    assert swarm.commands.is_quiet
    swarm.commands.end_quiet()
    assert swarm.commands.status()["is_quiet"] is False


def test_one_node_or_all_write_their_stacks(swarm: Commanded) -> None:
    assert swarm.commands.actions["dump"]({"node": 2}) == "node 2 writes its stacks to its log"
    with pytest.raises(awoke.ConfigError, match="there is no node 9"):
        swarm.commands.dump(9)
    swarm.commands.on_signal(signal.SIGUSR2)
    assert [len(signals_of(node)) for node in swarm.nodes.values()] == [1, 2, 1]


def test_no_reload_begins_while_the_swarm_stops(swarm: Commanded, caplog: pytest.LogCaptureFixture) -> None:
    swarm.commands.stop()
    assert not swarm.commands.reload()
    swarm.commands.on_signal(signal.SIGHUP)
    assert "no reload" in caplog.text
