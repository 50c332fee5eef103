"""Tests of users that would hang, or be green without having tested anything: each fails with the reason."""

from __future__ import annotations

import pytest

import awoke.testing.plugin
from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


def failed(pytester: pytest.Pytester, test: str, *lines: str) -> None:
    """Runs a test, which fails with these lines."""
    result = inner(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{line}*" for line in lines])


def test_a_reader_that_waits_for_nothing_ends(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awoke.testing.plugin, "PATIENCE_S", 0.2)
    failed(
        pytester,
        """
def test_letter(awoke_run, awoke_cluster):
    awoke_run(shop())
    with awoke.Reader("orders.dead", bootstrap_servers=awoke_cluster.bootstrap_servers) as reader:
        next(iter(reader))
""",
        "OperationTimeout: no message of orders.dead within 0.2 s: a test waits no longer",
    )


def test_a_misspelt_topic_is_named(pytester: pytest.Pytester) -> None:
    failed(
        pytester,
        """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("order", b"good")
    probe.idle()
""",
        "AssertionError: no app of this test reads 'order', and the test has not created it: is 'orders' meant?",
    )


def test_a_topic_that_the_test_creates_is_known(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run, awoke_cluster):
    awoke_cluster.create_topic("other")
    probe = awoke_run(shop())
    probe.send("other", b"good")
    probe.send("bills", b"good")
    probe.send("orders", b"good")
    probe.idle()
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_a_message_that_the_test_does_not_wait_for_fails_it(pytester: pytest.Pytester) -> None:
    failed(
        pytester,
        """
def test_order(awoke_run):
    app, paused = awoke.App("shop"), threading.Event()

    @app.on("first")
    def wait(message):
        paused.wait()

    app.on("orders")(lambda message: None)
    probe = awoke_run(app, workers=1)
    probe.send("first", b"")
    probe.send("orders", b"good")
    assert probe.failures == []
    threading.Timer(0.5, paused.set).start()
""",
        "app shop: orders?0? offset 0 was sent and not processed when the test ended: wait for it *",
    )


def test_a_wait_for_virtual_time_is_named(pytester: pytest.Pytester) -> None:
    failed(
        pytester,
        """
def test_order(awoke_clock, awoke_run):
    app = awoke.App("shop")

    @app.on("orders", retry=awoke.Retry(backoff_s=(60, 60)))
    def charge(message):
        raise ValueError("no card")

    probe = awoke_run(app)
    probe.send("orders", b"good")
    try:
        probe.idle(2)
    finally:
        probe.failures
""",
        "waits for * s of virtual time: advance the clock (awoke_clock.advance(*))",
    )


def test_a_batch_that_waits_for_virtual_time_is_named(pytester: pytest.Pytester) -> None:
    failed(
        pytester,
        """
def test_order(awoke_clock, awoke_run):
    app = awoke.App("shop")

    @app.consumer("orders", batch=awoke.Batching(max_messages=100, max_wait_s=7.0))
    class Charge(awoke.Consumer):
        def consume(self, batch): ...

    probe = awoke_run(app)
    probe.send("orders", b"good")
    probe.idle(2)
""",
        "waits for 7 s of virtual time: advance the clock (awoke_clock.advance(7))",
    )


def test_the_time_of_user_code_moves_with_the_clock(pytester: pytest.Pytester) -> None:
    test = """
from datetime import timedelta

def test_now(awoke_clock):
    before = awoke.now()
    awoke_clock.advance(3_600)
    assert awoke.now() - before == timedelta(hours=1)
    assert before.tzinfo is not None
"""
    inner(pytester, test).assert_outcomes(passed=1)
