"""When nodes and molds are started again, and when the swarm ends."""

from __future__ import annotations

from awoke.swarm import policy
from awoke.text import exit_codes


def test_the_first_restart_is_at_once_and_later_ones_wait() -> None:
    restarts = policy.RestartPolicy(restarts_max=100)
    delays = [restarts.after(1, 1, 0.1).restart_in_s for _ in range(10)]
    assert delays[0] == 0.0
    for number, delay_s in enumerate(delays[1:]):
        assert delay_s is not None
        assert 0.8 * min(60.0, 2.0**number) <= delay_s <= min(60.0, 2.0**number)
    assert restarts.after(2, 1, 0.1).restart_in_s == 0.0, "each node has a count of its own"
    assert restarts.after(1, 1, 61.0).restart_in_s == 0.0, "it was healthy"


def test_too_many_restarts_and_wrong_configuration_end_the_swarm() -> None:
    restarts = policy.RestartPolicy(restarts_max=3)
    assert [restarts.after(node, -9, 1.0).exit_code for node in range(3)] == [0, 0, 0]
    assert restarts.after(9, -9, 1.0) == (None, exit_codes.EXIT_TOO_MANY_RESTARTS)
    assert policy.RestartPolicy().after(1, 78, 1.0) == (None, exit_codes.EXIT_CONFIGURATION)


def test_a_first_mold_that_fails_ends_the_swarm() -> None:
    assert policy.MoldPolicy().after(78, None, False) == (None, exit_codes.EXIT_CONFIGURATION)
    assert policy.MoldPolicy().after(-9, None, False) == (None, exit_codes.EXIT_FAILED)


def test_while_a_node_runs_molds_are_made_for_ever_with_back_off() -> None:
    molds = policy.MoldPolicy()
    molds.on_ready()
    delays = [molds.after(78, None, True).restart_in_s for _ in range(20)]
    assert delays[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert set(delays[7:]) == {60.0}
    assert molds.after(-9, 61.0, True).restart_in_s == 1.0, "it served well"


def test_without_a_node_molds_that_fail_end_the_swarm() -> None:
    molds = policy.MoldPolicy(failures_max=2)
    molds.on_ready()
    assert molds.after(-9, 1.0, False).restart_in_s == 1.0
    assert molds.after(-9, None, False).restart_in_s == 2.0
    assert molds.after(-9, None, False) == (None, exit_codes.EXIT_TOO_MANY_RESTARTS)
    assert molds.after(78, None, False) == (None, exit_codes.EXIT_CONFIGURATION)
