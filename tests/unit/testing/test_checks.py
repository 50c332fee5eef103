"""The problems that fail a test."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from awoke.testing.checks import CALLBACKS_S, GRACE_S, Baseline
from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


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


LANES = """
def test_orders(awoke_run):
    app, tried, all_called = awoke.App("shop"), [], threading.Event()

    @app.on("orders", concurrency=awoke.by_key(20), retry=awoke.Retry(attempts=2, backoff_s=(0.001, 0.001)))
    def charge(message):
        tried.append(message.key)
        if message.offset == 0 and message.attempt == 1:
            all_called.wait(30)
            raise ValueError("no card")
        if len(tried) == 20:
            all_called.set()

    probe = awoke_run(app)
    for number in range(20):
        probe.send("orders", b"order", key=str(number))
    probe.idle()
    assert [failure.offset for failure in probe.failures] == [0]
"""
"""All other messages of the partition are processed while one waits to be tried again."""


def test_a_message_of_another_lane_is_not_lost_when_one_is_tried_again(pytester: pytest.Pytester) -> None:
    inner(pytester, LANES).assert_outcomes(passed=1)


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
from tests.unit.testing.test_checks import KEPT as kept
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


@pytest.mark.parametrize(("name", "joined_s"), [("awoke-callbacks", CALLBACKS_S), ("mine", GRACE_S)])
def test_the_thread_of_callbacks_has_more_time_to_end_than_others(name: str, joined_s: float) -> None:
    baseline, stop = Baseline(), threading.Event()

    class Late(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            if timeout == joined_s:
                stop.set()
                super().join()

    late = Late(target=stop.wait, name=name)
    late.start()
    left = list(baseline.left_behind())
    stop.set()
    assert left == []
