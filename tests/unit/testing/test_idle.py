"""The wait until apps are idle."""

from __future__ import annotations

import pytest

from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


def test_two_apps_of_one_group_share_its_partitions(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run, awoke_cluster):
    awoke_cluster.create_topic("orders", 4)
    probe, other = awoke_run(shop()), awoke_run(shop())
    for number in range(8):
        probe.send("orders", b"x", partition=number % 4)
    probe.idle()
    assert len(probe.calls) + len(other.calls) == 8
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_a_wait_for_idleness_names_the_failing_message_and_its_next_attempt(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    app = awoke.App("shop")

    @app.on("orders", retry=awoke.Retry(backoff_s=(1000, 1000)))
    def charge(message):
        raise ValueError("no card")

    probe = awoke_run(app)
    probe.send("orders", b"bad", key=b"k")
    probe.rest()
    with pytest.raises(AssertionError) as raised:
        probe.idle(timeout_s=0.01)
    assert "orders[0], group shop: committed None, end 1" in str(raised.value)
    assert "offset 0 (key b'k') failed once" in str(raised.value)
    assert "no card" in str(raised.value)
    assert len(probe.failures) == 1
"""
    inner(pytester, test).assert_outcomes(passed=1)


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_wait_for_idleness_shows_the_stack_of_a_handler_that_runs(pytester: pytest.Pytester, kind: str) -> None:
    begin, end = ("", "go_on.wait(60)") if kind == "def" else ("async ", "await asyncio.to_thread(go_on.wait, 60)")
    test = f"""
import asyncio

def test_order(awoke_run):
    app, go_on, begun = awoke.App("shop"), threading.Event(), threading.Event()

    @app.on("orders")
    {begin}def charge(message):
        begun.set()
        {end}

    probe = awoke_run(app)
    probe.send("orders", b"first")
    assert begun.wait(60)
    with pytest.raises(AssertionError) as raised:
        probe.idle(timeout_s=0.01)
    go_on.set()
    assert "charge still runs, at orders[0] offset 0" in str(raised.value)
    assert "in charge" in str(raised.value)
    probe.idle()
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_results_in_transactions_are_idle_when_they_are_committed(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    app, printed = awoke.App("shop"), []
    app.on("orders", output="bills", exactly_once=True)(lambda message: message.value.upper())
    app.on("bills")(lambda message: printed.append(message.value))
    probe = awoke_run(app)
    for word in (b"a", b"b"):
        probe.send("orders", word)
    probe.idle()
    assert printed == [b"A", b"B"]
    assert {each.topic for each in probe.commits} == {"orders", "bills"}
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_messages_in_lanes_are_idle_when_all_are_committed(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    app = awoke.App("shop")
    app.on("orders", concurrency=awoke.by_key(4))(lambda message: None)
    probe = awoke_run(app)
    for number in range(40):
        probe.producer.produce("orders", b"x", key=str(number % 7))
    probe.producer.flush()
    probe.idle()
    assert len(probe.calls) == 40
    assert probe.commits[-1].offset == 40
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_messages_that_linger_at_the_producer_of_the_app_count(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    app, printed = awoke.App("shop", kafka={"linger.ms": 100}), []

    @app.on("orders")
    def charge(message):
        app.producer.produce("bills", message.value)

    app.on("bills")(lambda message: printed.append(message.value))
    probe = awoke_run(app)
    probe.send("orders", b"first")
    probe.idle()
    assert printed == [b"first"]
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_a_message_that_comes_after_the_rest_is_not_at_rest_while_its_handler_runs(pytester: pytest.Pytester) -> None:
    test = """
from awoke.testing.idle import Idleness

def test_order(awoke_run, monkeypatch):
    app, go_on, begun = awoke.App("shop"), threading.Event(), threading.Event()

    @app.on("orders")
    def charge(message):
        begun.set()
        go_on.wait(60)

    probe, rests = awoke_run(app), Idleness._rests

    def send_after_rest(idleness, scheduler, deadline_s):
        has_rested = rests(idleness, scheduler, deadline_s)
        if not begun.is_set():
            probe.send("orders", b"first")
        assert begun.wait(60)
        idleness._ends["orders", 0] = 1  # As if it had been sent before, and had not come yet.
        return has_rested

    with monkeypatch.context() as patch:
        patch.setattr(Idleness, "_rests", send_after_rest)
        patch.setattr(Idleness, "_is_still_so", lambda *_, **__: True)
        with pytest.raises(AssertionError, match="charge still runs"):
            probe.rest(timeout_s=0.01)
    go_on.set()
    probe.rest()
    assert len(probe.calls) == 1
    probe.idle()
"""
    inner(pytester, test).assert_outcomes(passed=1)


EXACTLY_ONCE = """
from awoke.admin import Admin

def test_order(awoke_run, monkeypatch):
    app = awoke.App("shop")
    app.on("orders", output="bills", exactly_once=True)(lambda message: message.value)
    probe, asked, group_offsets = awoke_run(app), [], Admin.group_offsets
    probe.send("orders", b"first")

    def shown(admin, group, timeout_s):
        asked.append(group)
        return {} if %s else group_offsets(admin, group, timeout_s)

    %s
"""
"""Brokers that show the offset of a transaction some time after it was committed, or never."""


def test_a_transaction_is_idle_when_the_brokers_show_its_offset(pytester: pytest.Pytester) -> None:
    idle = """monkeypatch.setattr(Admin, "group_offsets", shown)
    probe.idle()
    assert len(asked) >= 2"""
    inner(pytester, EXACTLY_ONCE % ("len(asked) == 1", idle)).assert_outcomes(passed=1)


def test_a_wait_for_idleness_fails_if_the_brokers_do_not_show_the_offset(pytester: pytest.Pytester) -> None:
    idle = """probe.idle()
    monkeypatch.setattr(Admin, "group_offsets", shown)
    with pytest.raises(AssertionError, match="committed 1, which the brokers do not show"):
        probe.idle(timeout_s=0.01)"""
    inner(pytester, EXACTLY_ONCE % ("True", idle)).assert_outcomes(passed=1)


RESULTS = """
from awoke.admin import Admin

def test_order(awoke_run, monkeypatch):
    app = awoke.App("shop")
    app.on("orders", output="bills", exactly_once=True)(lambda message: message.value)
    probe, asked, stable_offsets = awoke_run(app), [], Admin.stable_offsets
    probe.send("orders", b"first")

    def stable(admin, topic, timeout_s):
        asked.append(topic)
        is_open = topic == "bills" and %s
        return {0: 0} if is_open else stable_offsets(admin, topic, timeout_s)

    %s
"""
"""Brokers that write the marker of a transaction to its results some time after they have answered, or never."""


def test_a_transaction_is_idle_when_readers_see_its_results(pytester: pytest.Pytester) -> None:
    idle = """monkeypatch.setattr(Admin, "stable_offsets", stable)
    probe.idle()
    assert asked.count("bills") == 2"""
    inner(pytester, RESULTS % ('asked.count("bills") == 1', idle)).assert_outcomes(passed=1)


def test_a_wait_for_idleness_names_the_results_that_readers_do_not_see(pytester: pytest.Pytester) -> None:
    idle = """probe.idle()
    monkeypatch.setattr(Admin, "stable_offsets", stable)
    with pytest.raises(AssertionError, match="bills.*a transaction is open: readers of committed messages see those"):
        probe.idle(timeout_s=0.01)"""
    inner(pytester, RESULTS % ("True", idle)).assert_outcomes(passed=1)
