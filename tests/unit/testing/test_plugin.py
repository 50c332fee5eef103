"""The pytest plugin: what it imports, what its fixtures do, and what fails a test.

The inner tests run in this process.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import awoke.rpc.caller.caller
import awoke.testing.clock
import awoke.testing.runs
import awoke.testing.service

pytest_plugins = ["pytester"]

IMPORTED = (awoke.rpc.caller.caller, awoke.testing.clock, awoke.testing.runs, awoke.testing.service)
"""Modules that inner tests need: pytester forgets those that an inner test imports first, and the native one can't be
imported twice."""

APP = """
import threading
import awoke
import pytest

def shop():
    app = awoke.App("shop")

    retry = awoke.Retry(attempts=2, backoff_s=(0.001, 0.001))

    @app.on("orders", output="bills", retry=retry, dead_letter="orders.dead")
    def charge(message):
        if message.value == b"bad":
            raise ValueError("no card")
        return message.value.upper()

    return app
"""


def inner(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    """Runs a test within the test."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error")
    pytester.makepyfile(APP + test)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)


def test_a_run_of_pytest_without_the_fixtures_loads_no_client(tmp_path: Path) -> None:
    program = (
        "import sys, pytest\n"
        "pytest.main(['--fixtures', '-q', '-p', 'no:hypothesispytest'])\n"
        "print('loaded', sorted(name for name in sys.modules if name.startswith('awoke.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == ("loaded ['awoke._installation', 'awoke.testing', 'awoke.testing.plugin']")


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


def test_every_test_has_brokers_of_its_own(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.parametrize("word", [b"one", b"two"])
def test_order(awoke_run, word):
    probe = awoke_run(shop())
    assert probe.send("orders", word).offset == 0
    probe.idle()
    assert [each.value for each in probe.sent("bills")] == [word.upper()]
"""
    inner(pytester, test).assert_outcomes(passed=2)


def test_a_failure_that_a_test_did_not_look_at_fails_it_with_its_traceback(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"bad")
    probe.idle()
"""
    result = inner(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*job.failed: shop.<locals>.charge at orders?0? offset 0, attempt 1*", "*ValueError: no card*"]
    )


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


def test_an_app_that_runs_twice_has_its_own_settings_again(pytester: pytest.Pytester) -> None:
    test = """
APP = awoke.App("shop", bootstrap_servers="nowhere:1")
APP.on("orders")(lambda message: None)

@pytest.mark.parametrize("turn", [1, 2])
def test_order(awoke_run, turn):
    assert APP.settings.bootstrap_servers == "nowhere:1"
    probe = awoke_run(APP)
    probe.send("orders", b"first")
    probe.idle()
    assert [call.offset for call in probe.calls] == [0]
"""
    inner(pytester, test).assert_outcomes(passed=2)


def test_two_apps_work_together_and_are_idle_together(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    printer = awoke.App("printer")
    printed = []
    printer.on("bills")(lambda message: printed.append(message.value))
    shop_probe, printer_probe = awoke_run(shop()), awoke_run(printer)
    for word in (b"a", b"b", b"c"):
        shop_probe.send("orders", word)
    shop_probe.idle()
    assert printed == [b"A", b"B", b"C"]
    assert {each.topic for each in printer_probe.commits} == {"bills"}
"""
    inner(pytester, test).assert_outcomes(passed=1)


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
    assert "offset 0 (key b'k') failed 1 times" in str(raised.value)
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


SEEKING = """
class Orders(awoke.Consumer):
    def consume(self, batch):
        if batch.first_offset == {at} and not sought:
            sought.append(True)
            self.seek({to})

def test_order(awoke_run):
    app = awoke.App("shop")
    app.consumer("orders", batch=awoke.Batching(max_messages=1))(Orders)
    probe = awoke_run(app{option})
    for word in (b"a", b"b", b"c"):
        probe.producer.produce("orders", word)
    probe.producer.flush()
    {sent}
    probe.idle()

sought = []
"""
"""A consumer that goes to another offset, once."""


def test_a_message_that_is_processed_twice_fails_the_test(pytester: pytest.Pytester) -> None:
    result = inner(pytester, SEEKING.format(at=2, to=1, option="", sent="pass"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*app shop: a message was processed 2 times: orders?0? offset 1 *"])


def test_a_message_may_be_processed_twice_where_the_test_says_so(pytester: pytest.Pytester) -> None:
    inner(pytester, SEEKING.format(at=2, to=1, option=", may_repeat=True", sent="pass")).assert_outcomes(passed=1)


def test_a_message_that_is_passed_over_fails_the_test(pytester: pytest.Pytester) -> None:
    sent = 'probe.recorder.sent |= {("orders", 0, offset) for offset in range(3)}'
    result = inner(pytester, SEEKING.format(at=0, to=2, option="", sent=sent))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a message was committed by shop and never processed: orders?0? offset 1"])


KEPT: list[object] = []
"""The objects that inner tests leave behind; their test closes them."""


def end(kept: Any) -> None:
    """Ends a thing that an inner test has left behind."""
    if isinstance(kept, threading.Event):
        kept.set()
    elif isinstance(kept, threading.Thread):
        kept.join()
    else:
        kept.close()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "kept.append(threading.Thread(target=stop.wait, name='mine')); kept[-1].start()",
            "a thread was left behind: mine",
        ),
        (
            "kept.append(awoke.Producer(awoke_cluster.bootstrap_servers))",
            "a client was not closed: made at *in test_order",
        ),
        ("kept.append(awoke.testing.EmbeddedCluster())", "embedded brokers were not closed: 127.0.0.1:*"),
    ],
    ids=["thread", "client", "brokers"],
)
def test_a_thread_or_a_client_that_is_left_behind_fails_the_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, code: str, text: str
) -> None:
    monkeypatch.setattr("awoke.testing.checks.GRACE_S", 0.01)
    test = f"""
import awoke.testing
from tests.unit.testing.test_plugin import KEPT as kept
stop = threading.Event()
kept.append(stop)

def test_order(awoke_run, awoke_cluster):
    awoke_run(shop())
    {code}
"""
    try:
        result = inner(pytester, test)
    finally:
        for each in KEPT:
            end(each)
        KEPT.clear()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{text}*"])


def test_problems_are_notes_of_the_error_of_a_test_that_fails_anyway(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"bad")
    probe.idle()
    assert [each.value for each in probe.sent("bills")] == [b"BAD"]
"""
    result = inner(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AssertionError*", "*job.failed: *ValueError*"])


def test_an_app_that_cannot_start_fails_its_test_and_leaves_nothing(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    awoke_run(awoke.App("shop"))
"""
    result = inner(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ConfigError: app 'shop' has no route*"])


def test_a_wrong_setting_fails_its_test_and_is_not_kept(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    app = shop()
    with pytest.raises(awoke.ConfigError, match="workers"):
        awoke_run(app, workers=-1)
    assert app.settings.workers is None
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


def test_time_moves_when_the_messages_have_come(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_clock, awoke_run):
    app = awoke.App("shop")

    @app.on("orders", retry=awoke.Retry(attempts=7, backoff_s=(60, 3_600), jitter=0.0), dead_letter="orders.dead")
    def charge(message):
        tried_s.append(round(awoke_clock.now_s))
        raise ValueError("no card")

    tried_s = []
    probe = awoke_run(app)
    probe.send("orders", b"first")
    awoke_clock.run_until_idle()
    assert tried_s == [0, 60, 180, 420, 900, 1860, 3780]
    assert len(probe.failures) == 7
    assert len(probe.dead_letters) == 1
"""
    inner(pytester, test).assert_outcomes(passed=1)


PAGE = Path(__file__).resolve().parents[3] / "docs" / "testing.md"
TESTS_OF_THE_PAGE = [code for code in PAGE.read_text().split("```python\n")[1:] if "def test_" in code]


def test_the_tests_in_the_documentation_pass(pytester: pytest.Pytester) -> None:
    for number, code in enumerate(TESTS_OF_THE_PAGE):
        pytester.makepyfile(**{f"test_{number}": code.partition("```")[0]})
    inner(pytester, "").assert_outcomes(passed=len(TESTS_OF_THE_PAGE))
    assert len(TESTS_OF_THE_PAGE) >= 3


def test_options_stand_in_the_head_of_the_report(pytester: pytest.Pytester) -> None:
    result = inner(pytester, "def test_nothing(): pass", "--awoke-seed=7")
    result.stdout.fnmatch_lines(["awoke: seed 7"])


def test_a_test_for_kafka_is_skipped_without_it(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.awoke_kafka
def test_order(awoke_run): ...
"""
    inner(pytester, test, "--strict-markers").assert_outcomes(skipped=1)


def test_workers_of_xdist_run_side_by_side(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.parametrize("word", [b"one", b"two"])
def test_order(awoke_run, word):
    probe = awoke_run(shop())
    assert probe.send("orders", word).offset == 0
    probe.idle()
"""
    inner(pytester, test, "-n2", "-p", "no:hypothesispytest").assert_outcomes(passed=2)
