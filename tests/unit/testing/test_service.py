"""A service of a test."""

from __future__ import annotations

import pytest

from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


def test_a_service_of_the_test_answers_and_records(pytester: pytest.Pytester) -> None:
    test = """
from awoke.testing import ServiceCall

def test_order(awoke_run, awoke_service):
    def charge(amount: int) -> str:
        return f"paid {amount}"

    payments = awoke_service("payments", charge=charge)
    app = awoke.App("shop")

    @app.on("orders", output="bills")
    def order(message):
        return app.caller("payments").call("charge", amount=3, timeout_s=30)

    probe = awoke_run(app)
    probe.send("orders", b"first")
    probe.idle()
    assert [each.value for each in probe.sent("bills", 1)] == [b"paid 3"]
    assert payments.calls == [ServiceCall("charge", {"amount": 3})]
    assert payments.call("charge", amount=4) == "paid 4"
"""
    inner(pytester, test).assert_outcomes(passed=1)
