"""The messages of topics, as a test reads them."""

from __future__ import annotations

import pytest

from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


def test_fewer_messages_than_expected_are_shown(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"first")
    probe.idle()
    with pytest.raises(AssertionError, match="bills: 1 of 2 messages") as raised:
        probe.sent("bills", 2, timeout_s=0.05)
    assert "b'FIRST'" in str(raised.value)
"""
    inner(pytester, test).assert_outcomes(passed=1)
