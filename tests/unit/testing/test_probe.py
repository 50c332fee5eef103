"""The probe of an app."""

from __future__ import annotations

import pytest

from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


def test_a_test_sends_waits_and_reads_what_came_of_it(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"first", key=b"k")
    probe.idle()
    assert [each.value for each in probe.sent("bills", 1)] == [b"FIRST"]
    assert probe.commits[-1].offset == 1
    [call] = probe.calls
    assert (call.key, call.value, call.has_failed) == (b"k", b"first", False)
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_calls_are_read_from_offset_0_while_a_test_starts_the_app_and_then_as_before(pytester: pytest.Pytester) -> None:
    test = """
from awoke.rpc.responder.responder import Responder

def test_call(awoke_run, monkeypatch):
    app, starts = awoke.App("prices"), []

    @app.rpc.method
    def quote(sku: str) -> str:
        return f"price of {sku}"

    def make_route(responder, make=Responder._make_route):
        starts.append(responder._rpc.reads_from)
        return make(responder)

    monkeypatch.setattr(Responder, "_make_route", make_route)
    awoke_run(app)
    assert starts == [("offset", 0)]
    assert app.rpc.reads_from == ("earliest", 0)
    assert app.caller("prices").call("quote", sku="A1") == "price of A1"
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_a_failure_that_a_test_expects_does_not_fail_it(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"bad")
    probe.idle()
    assert [type(each.error) for each in probe.failures] == [ValueError, ValueError]
    assert [each.attempt for each in probe.retries] == [1]
    assert [(each.topic, each.offset) for each in probe.dead_letters] == [("orders", 0)]
    assert len(probe.sent("orders.dead", 1)) == 1
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_async_tests_await(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.asyncio
async def test_order(awoke_run):
    app = awoke.App("shop")

    @app.on("orders", output="bills")
    async def charge(message):
        return message.value.upper()

    probe = awoke_run(app)
    await probe.asend("orders", b"first")
    await probe.aidle()
    assert [each.value for each in await probe.asent("bills", 1)] == [b"FIRST"]
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_typed_topics_are_encoded_and_decoded(pytester: pytest.Pytester) -> None:
    test = """
import dataclasses

@dataclasses.dataclass
class Order:
    id: int

def test_order(awoke_run):
    app = awoke.App("shop")
    bills = app.topic("bills", value=Order, partitions=3)

    @app.on("orders", value=Order, output=bills)
    def charge(message):
        return Order(message.value.id + 1)

    probe = awoke_run(app)
    probe.send("orders", Order(1))
    probe.idle()
    assert [each.value for each in probe.sent("bills", 1)] == [Order(2)]
    assert [each.value for each in probe.calls] == [Order(1)]
"""
    inner(pytester, test).assert_outcomes(passed=1)
