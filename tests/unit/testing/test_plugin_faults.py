"""The fixture `awoke_faults`: faults on the brokers of a test, in its report, and none that has not happened."""

from __future__ import annotations

import pytest

import awoke.testing.faults
import awoke.testing.runs
from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]

IMPORTED = (awoke.testing.faults, awoke.testing.runs)
"""Modules that inner tests need: pytester forgets those that an inner test imports first."""


def test_a_fault_happens_to_an_app_of_the_test(pytester: pytest.Pytester) -> None:
    test = """
def test_shop(awoke_run, awoke_faults):
    probe = awoke_run(shop())
    probe.send("orders", b"one")
    awoke_faults.revoke("shop", "orders")
    refused = awoke_faults.refuse_produce("orders")
    probe.send("orders", b"two")
    probe.idle()
    assert refused.has_happened
    assert [message.value for message in probe.sent("bills", 2)] == [b"ONE", b"TWO"]
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_a_failed_test_shows_its_faults_and_their_seed(pytester: pytest.Pytester) -> None:
    test = """
def test_shop(awoke_cluster, awoke_faults):
    awoke_cluster.create_topic("orders")
    awoke_faults.truncate("orders", 0, 0)
    assert False
"""
    result = inner(pytester, test, "--awoke-seed", "42")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- awoke faults -*", "faults, with seed 42:", "1. truncate orders/0 to offset 0"])


def test_a_fault_that_has_not_happened_fails_its_test(pytester: pytest.Pytester) -> None:
    test = """
def test_shop(awoke_faults):
    awoke_faults.abort_transaction("shop")
"""
    result = inner(pytester, test)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*1. abort a transaction of shop (has not happened)"])
