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


def test_an_async_test_has_a_service_the_clock_and_faults(pytester: pytest.Pytester) -> None:
    test = """
import asyncio

@pytest.mark.asyncio
async def test_order(awoke_run, awoke_service, awoke_clock, awoke_faults):
    payments = awoke_service("payments", charge=lambda amount: f"paid {amount}")
    assert await payments.acall("charge", amount=3) == "paid 3"
    app, tried = awoke.App("shop"), []

    @app.on("orders", retry=awoke.Retry(attempts=2, backoff_s=(3600, 3600)), output="bills")
    async def order(message):
        tried.append(message.offset)
        if len(tried) == 1:
            raise ValueError("later")
        return b"done"

    probe = awoke_run(app)
    await asyncio.to_thread(awoke_faults.revoke, app, "orders")
    await probe.asend("orders", b"first")
    await awoke_clock.arun_until_idle()
    assert tried == [0, 0]
    assert len(probe.failures) == 1
"""
    inner(pytester, test).assert_outcomes(passed=1)
