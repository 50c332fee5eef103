"""Signs of life: silent and frozen nodes. When nodes and molds are started again, and when the swarm ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import msgspec
import pytest

from awoke.errors import ConfigError
from awoke.observe.web.deadlines import Deadline
from awoke.swarm import health, linux, protocol
from awoke.swarm.health import NodeHealth, check_limits
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState, NodeTimer
from awoke.text import exit_codes
from tests.unit.swarm.fakes import OPTIONS, FakeHost, ManualDeadlines, signals_of, up

VITALS = protocol.Vitals(1, 1 << 20, 10, 0, 0, 0, 0, 0, -1)
SILENT, FROZEN = Deadline(NodeTimer.SILENT, 1), Deadline(NodeTimer.FROZEN, 1)


@pytest.fixture
def node() -> Iterator[NodeHandle]:
    node = up(1)
    yield node
    node.close()


@pytest.fixture
def deadlines() -> ManualDeadlines:
    return ManualDeadlines()


def test_a_silent_node_that_stays_silent_is_killed_long_before_its_drain_time(
    node: NodeHandle, deadlines: ManualDeadlines
) -> None:
    host = FakeHost()
    judge = NodeHealth(OPTIONS, {1: node}, deadlines, host)
    judge.on_vitals(node, VITALS)
    deadlines.pass_(SILENT)
    assert host.did == ["replace 1: gave no sign of life for 10 s"]
    assert signals_of(node) == [signal.SIGCONT]
    deadlines.pass_(FROZEN)
    assert host.did[1] == "kill 1: was frozen, and did not stop within 3 s after it was continued"
    assert health.STOP_WITHIN_S < 5.0, "a frozen node is replaced within its deadline and 5 s"


LIMITED = msgspec.structs.replace(OPTIONS, memory_soft_bytes=64 << 20)


def test_a_limit_is_refused_where_memory_can_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "resident_bytes", lambda pid: 0)
    check_limits(OPTIONS)
    with pytest.raises(ConfigError, match="no memory limit can be kept: leave it out"):
        check_limits(LIMITED)


def test_shared_memory_that_is_not_told_counts_and_is_a_warning(
    node: NodeHandle, deadlines: ManualDeadlines, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(linux, "proportional_bytes", lambda pid: None)
    check_limits(LIMITED)
    assert "each node counts with all that it shares" in caplog.text
    host = FakeHost()
    NodeHealth(LIMITED, {1: node}, deadlines, host).on_vitals(node, VITALS._replace(resident_bytes=65 << 20))
    assert host.did == ["stop 1"]


def test_a_limit_beyond_that_of_the_container_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "memory_limit_bytes", lambda: 127 << 20)
    check_limits(LIMITED)
    assert "memory_limit is 64 MB for each of 2 nodes, and the limit of the container is 127 MB" in caplog.text
    caplog.clear()
    monkeypatch.setattr(health, "memory_limit_bytes", lambda: 128 << 20)
    check_limits(LIMITED)
    assert not caplog.text


def test_a_silent_node_that_comes_alive_and_works_on_a_job_may_finish_it(
    node: NodeHandle, deadlines: ManualDeadlines
) -> None:
    host = FakeHost()
    judge = NodeHealth(OPTIONS, {1: node}, deadlines, host)
    judge.expect(node)
    deadlines.pass_(SILENT)
    first = deadlines.moment(FROZEN)
    judge.on_vitals(node, VITALS._replace(oldest_job_ms=11_000))
    second = deadlines.moment(FROZEN)
    assert second > first
    # Without a job it has this time to commit and leave, and no more.
    judge.on_vitals(node, VITALS)
    assert deadlines.moment(FROZEN) == second
    deadlines.pass_(FROZEN)
    assert [each.split()[0] for each in host.did] == ["replace", "kill"]


def test_a_node_that_freezes_while_it_stops_is_continued_and_killed(
    node: NodeHandle, deadlines: ManualDeadlines
) -> None:
    host = FakeHost()
    judge = NodeHealth(OPTIONS, {1: node}, deadlines, host)
    judge.expect(node)
    node.state = NodeState.STOPPING
    deadlines.pass_(SILENT)
    assert host.did == [], "it has been told to stop"
    assert signals_of(node) == [signal.SIGCONT]
    deadlines.pass_(FROZEN)
    assert [each.split()[0] for each in host.did] == ["kill"]


def test_a_job_of_a_node_that_was_not_silent_sets_no_deadline(node: NodeHandle, deadlines: ManualDeadlines) -> None:
    NodeHealth(OPTIONS, {1: node}, deadlines, FakeHost()).on_vitals(node, VITALS._replace(oldest_job_ms=1_000))
    assert FROZEN not in deadlines


def test_a_node_that_was_frozen_for_a_moment_is_left_alone(node: NodeHandle, deadlines: ManualDeadlines) -> None:
    host = FakeHost()
    judge = NodeHealth(OPTIONS, {1: node}, deadlines, host)
    judge.on_vitals(node, VITALS)
    judge.on_vitals(node, VITALS)
    assert host.did == []
    assert 9.9 < (deadlines.next_in_s() or 0) <= 10.0


def test_a_node_whose_process_has_ended_is_not_silent(node: NodeHandle, deadlines: ManualDeadlines) -> None:
    host = FakeHost()
    NodeHealth(OPTIONS, {1: node}, deadlines, host).expect(node)
    node.state = NodeState.ENDING
    deadlines.pass_(SILENT)
    assert host.did == []
    assert FROZEN not in deadlines


def test_the_first_restart_is_at_once_and_later_ones_wait() -> None:
    restarts = health.RestartPolicy(restarts_max=100)
    delays = [restarts.after(1, 1, 0.1).restart_in_s for _ in range(10)]
    assert delays[0] == 0.0
    for number, delay_s in enumerate(delays[1:]):
        assert delay_s is not None
        assert 0.8 * min(60.0, 2.0**number) <= delay_s <= min(60.0, 2.0**number)
    assert restarts.after(2, 1, 0.1).restart_in_s == 0.0, "each node has a count of its own"
    assert restarts.after(1, 1, 61.0).restart_in_s == 0.0, "it was healthy"


def test_too_many_restarts_and_wrong_configuration_end_the_swarm() -> None:
    restarts = health.RestartPolicy(restarts_max=3)
    assert [restarts.after(node, -9, 1.0).exit_code for node in range(3)] == [0, 0, 0]
    assert restarts.after(9, -9, 1.0) == (None, exit_codes.EXIT_TOO_MANY_RESTARTS)
    assert health.RestartPolicy().after(1, 78, 1.0) == (None, exit_codes.EXIT_CONFIGURATION)


def test_each_node_of_a_swarm_may_be_killed_at_once() -> None:
    restarts = health.RestartPolicy(restarts_max=3)
    assert [restarts.after(node, -9, 1.0, nodes=16).restart_in_s for node in range(16)] == [0.0] * 16
    again = [restarts.after(node, -9, 1.0, nodes=16).exit_code for node in range(33)]
    assert again == [0] * 32 + [exit_codes.EXIT_TOO_MANY_RESTARTS]


def test_a_start_is_refused_when_all_nodes_say_so() -> None:
    restarts = health.RestartPolicy()
    assert restarts.after(1, 78, 2.0, nodes=3, others=2).restart_in_s is not None
    assert restarts.after(2, 78, 2.0, nodes=3, others=1).restart_in_s is not None
    assert restarts.after(2, 78, 2.0, nodes=3, others=1).restart_in_s is not None, "it has said so before"
    assert restarts.after(3, 78, 2.0, nodes=3) == (None, exit_codes.EXIT_CONFIGURATION)


def test_a_swarm_that_has_worked_does_not_end_for_a_broker_that_knows_no_topic() -> None:
    restarts = health.RestartPolicy(restarts_max=2)
    restarts.on_ready()
    delays = [restarts.after(1, 78, 2.0, nodes=2, others=1).restart_in_s for _ in range(20)]
    assert all(delay_s is not None and delay_s > 0 for delay_s in delays), "another node works"
    assert restarts.after(2, 78, 2.0, nodes=2).restart_in_s is not None, "the last one may have been told the same"
    assert [restarts.after(1, 78, 2.0, nodes=2).exit_code for _ in range(4)][-1] == exit_codes.EXIT_TOO_MANY_RESTARTS


def test_a_first_mold_that_fails_ends_the_swarm() -> None:
    assert health.MoldPolicy().after(78, None, False) == (None, exit_codes.EXIT_CONFIGURATION)
    assert health.MoldPolicy().after(-9, None, False) == (None, exit_codes.EXIT_FAILED)


def test_while_a_node_runs_molds_are_made_for_ever_with_back_off() -> None:
    molds = health.MoldPolicy()
    molds.on_ready()
    delays = [molds.after(78, None, True).restart_in_s for _ in range(20)]
    assert delays[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert set(delays[7:]) == {60.0}
    assert molds.after(-9, 61.0, True).restart_in_s == 1.0, "it served well"


def test_without_a_node_molds_that_fail_end_the_swarm() -> None:
    molds = health.MoldPolicy(failures_max=2)
    molds.on_ready()
    assert molds.after(-9, 1.0, False).restart_in_s == 1.0
    assert molds.after(-9, None, False).restart_in_s == 2.0
    assert molds.after(-9, None, False) == (None, exit_codes.EXIT_TOO_MANY_RESTARTS)
    assert molds.after(78, None, False) == (None, exit_codes.EXIT_CONFIGURATION)
