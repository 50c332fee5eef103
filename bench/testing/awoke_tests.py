"""Tests by awoke's tools, one for each question. Nothing is configured: the plugin comes with the package."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke.testing import message


class Order(msgspec.Struct):
    id: int
    total: float


def shop(**options: Any) -> awoke.App:
    """Returns an app that bills orders. The order `bad` has no card."""
    app = awoke.App("shop")

    @app.on("orders", output="bills", **options)
    def charge(message: awoke.Message[bytes]) -> bytes:
        if message.value == b"bad":
            raise RuntimeError("no card")
        return b"bill of " + message.value

    return app


def test_a_handler_runs_without_brokers(awoke_call: Callable[..., Any]) -> None:
    app = awoke.App("shop")

    @app.on("orders", value=Order, output="bills")
    def charge(message: awoke.Message[Order]) -> str:
        return f"bill of {message.value.id}"

    assert awoke_call(charge, Order(1, 2.0)) == "bill of 1"


def test_an_exception_fails_the_test(awoke_call: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="no card"):
        awoke_call(shop(), message(b"bad", topic="orders"))


def test_calls_are_recorded(awoke_run: Callable[..., Any]) -> None:
    probe = awoke_run(shop())
    probe.send("orders", b"an order", key=b"Ann")
    probe.idle()
    assert [(call.key, call.value) for call in probe.calls] == [(b"Ann", b"an order")]


def test_a_result_is_seen_on_its_topic(awoke_run: Callable[..., Any]) -> None:
    probe = awoke_run(shop())
    probe.send("orders", b"an order")
    assert [bill.value for bill in probe.sent("bills", 1)] == [b"bill of an order"]
    probe.idle()


def test_a_wrong_value_is_an_error(awoke_call: Callable[..., Any]) -> None:
    app = awoke.App("shop")

    @app.on("orders", value=Order)
    def charge(message: awoke.Message[Order]) -> None: ...

    with pytest.raises(awoke.DecodeError):
        awoke_call(charge, b'{"id": "x", "total": 1.0}')


def test_a_request_is_answered(awoke_service: Callable[..., Any]) -> None:
    prices = awoke_service("prices", quote=lambda sku: f"price of {sku}")
    assert prices.call("quote", sku="a lamp") == "price of a lamp"


def test_a_failing_message_is_tried_again(awoke_run: Callable[..., Any]) -> None:
    app = awoke.App("shop")

    @app.on("orders", retry=awoke.Retry(attempts=3, backoff_s=(0.01, 0.01)))
    def charge(message: awoke.Message[bytes]) -> None:
        if message.attempt < 3:
            raise RuntimeError("no card")

    probe = awoke_run(app)
    probe.send("orders", b"an order")
    probe.idle()
    assert [failure.attempt for failure in probe.failures] == [1, 2]


def test_an_exhausted_message_is_put_aside(awoke_run: Callable[..., Any]) -> None:
    probe = awoke_run(shop(retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.01)), dead_letter="orders.dead"))
    probe.send("orders", b"bad")
    probe.idle()
    assert [str(failure.error) for failure in probe.failures] == ["no card", "no card"]
    assert [letter.offset for letter in probe.dead_letters] == [0]


def test_hours_pass_at_once(awoke_run: Callable[..., Any], awoke_clock: Any) -> None:
    retry = awoke.Retry(attempts=3, backoff_s=(3_600, 3_600), jitter=0.0)
    probe = awoke_run(shop(retry=retry, dead_letter="orders.dead"))
    probe.send("orders", b"bad")
    awoke_clock.run_until_idle()
    assert len(probe.failures) == 3
    assert awoke_clock.now_s >= 7_200
    assert len(probe.dead_letters) == 1


def test_a_key_keeps_its_order(awoke_run: Callable[..., Any], awoke_cluster: Any) -> None:
    awoke_cluster.create_topic("orders", 4)
    probe = awoke_run(shop())
    for number in range(20):
        probe.send("orders", b"%d" % number, key=b"Ann" if number % 2 else b"Bob")
    probe.idle()
    for key in (b"Ann", b"Bob"):
        calls = [call for call in probe.calls if call.key == key]
        assert len({call.partition for call in calls}) == 1
        assert [int(call.value) for call in calls] == sorted(int(call.value) for call in calls)


def test_committed_work_does_not_come_again(awoke_run: Callable[..., Any]) -> None:
    first = awoke_run(shop())
    first.send("orders", b"1")
    first.idle()
    first.stop()
    second = awoke_run(shop())
    second.send("orders", b"2")
    second.idle()
    assert [call.value for call in second.calls] == [b"2"]


def test_a_partition_is_revoked(awoke_run: Callable[..., Any], awoke_faults: Any) -> None:
    app, revoked = shop(), []
    app.events.subscribe("partitions.revoked", revoked.append)
    probe = awoke_run(app)
    awoke_faults.revoke(app, "orders", 0)
    probe.send("orders", b"an order")
    probe.idle()
    assert revoked


def test_a_refused_write_is_repeated(awoke_run: Callable[..., Any], awoke_faults: Any) -> None:
    probe = awoke_run(shop())
    awoke_faults.refuse_produce("bills", "NOT_ENOUGH_REPLICAS", times=2)
    probe.send("orders", b"an order")
    probe.idle()
    assert [bill.value for bill in probe.sent("bills")] == [b"bill of an order"]


def test_a_transaction_is_whole(awoke_run: Callable[..., Any], awoke_faults: Any) -> None:
    app = shop(exactly_once=True)
    probe = awoke_run(app, may_repeat=True)
    awoke_faults.abort_transaction(app)
    probe.send("orders", b"an order")
    assert [bill.value for bill in probe.sent("bills", 1)] == [b"bill of an order"]
    probe.idle()


@pytest.mark.xfail(strict=True, reason="that it fails is what is shown")
def test_a_leaked_thread_fails_the_test(awoke_run: Callable[..., Any], request: pytest.FixtureRequest) -> None:
    awoke_run(shop())
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait, args=(60,), name="left behind")
    thread.start()
    request.addfinalizer(thread.join)
    request.addfinalizer(is_over.set)


def awoke_command(*words: str) -> int:
    """Runs the command line; returns its exit code."""
    return subprocess.run([sys.executable, "-m", "awoke", *words], check=False).returncode


def test_recorded_input_meets_new_code(awoke_cluster: Any, tmp_path: Path) -> None:
    awoke_cluster.create_topic("orders", 1)
    with awoke.Producer(awoke_cluster.bootstrap_servers) as producer:
        producer.produce("orders", b"an order").wait(30)
    file = str(tmp_path / "orders.rec")
    assert awoke_command("record", "orders", file, "--bootstrap-servers", awoke_cluster.bootstrap_servers) == 0
    assert awoke_command("replay", file, "bench.testing.shops:old", "--update") == 0
    assert awoke_command("replay", file, "bench.testing.shops:old") == 0
    assert awoke_command("replay", file, "bench.testing.shops:new") == 1


@pytest.mark.skipif("BENCH_BROKERS" not in os.environ, reason="no brokers were given")
def test_it_runs_on_real_brokers() -> None:
    test = f"{__file__}::test_a_result_is_seen_on_its_topic"
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", f"--awoke-brokers={os.environ['BENCH_BROKERS']}"]
    subprocess.run([sys.executable, "-m", "pytest", *options, test], check=True)
