"""Tests of a shop: `pytest examples/testing`. With `--awoke-brokers HOST:PORT` they run on Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke import testing

from .shop import Clicks, Order, RealBank, app, book, charge, quote


class BankWithoutAnswer:
    """A bank that does not answer."""

    def charge(self, order: Order) -> str:
        raise TimeoutError("no answer from the bank")


# One handler, without brokers.


def test_an_order_is_charged(awoke_call: Any) -> None:
    assert awoke_call(charge, Order(1, 9.5)) == "receipt of 1"


def test_an_order_with_a_negative_total_is_refused(awoke_call: Any) -> None:
    with pytest.raises(ValueError, match="negative total"):
        awoke_call(charge, Order(2, -1.0))


def test_a_value_that_is_no_order_does_not_decode(awoke_call: Any) -> None:
    with pytest.raises(awoke.DecodeError):
        awoke_call(charge, b"no order")


def test_a_price_is_quoted(awoke_call: Any) -> None:
    assert awoke_call(quote, sku="A1", quantity=2) == 19.0


def test_a_payment_is_booked(awoke_call: Any) -> None:
    assert awoke_call(book, b"5 EUR") == b"booked 5 EUR"


# One route, without brokers: its retries take no time.


def test_a_charge_is_tried_again_with_longer_delays() -> None:
    with app.override(RealBank, BankWithoutAnswer):
        run = testing.run_route(app, "orders", [Order(1, 9.5)], limit_s=7_200.0)
    assert run.delays_s == [60, 120, 240, 480, 960, 1_800]


def test_an_order_that_can_not_be_charged_is_set_aside_and_others_go_on() -> None:
    run = testing.run_route(app, "orders", [Order(1, -1.0), Order(2, 9.5)], limit_s=7_200.0)
    assert [letter.reason for letter in run.dead_letters] == ["order 1 has a negative total"]
    assert [output.value for output in run.outputs if output.topic == "receipts"] == ["receipt of 2"]


# The app, on brokers.


def test_an_order_has_a_receipt(awoke_run: Any) -> None:
    probe = awoke_run(app)
    probe.send("orders", Order(1, 9.5), key=b"Ann")
    assert [receipt.value for receipt in probe.sent("receipts", 1)] == [b"receipt of 1"]
    probe.idle()


@pytest.mark.awoke_embedded  # The clock of other brokers can't be moved.
def test_a_bank_that_does_not_answer_is_asked_for_an_hour(awoke_run: Any, awoke_clock: Any) -> None:
    with app.override(RealBank, BankWithoutAnswer):
        probe = awoke_run(app)
        probe.send("orders", Order(1, 9.5))
        awoke_clock.run_until_idle()
        assert awoke_clock.now_s >= 60 + 120 + 240 + 480 + 960 + 1_800
        assert len(probe.failures) == 7
        assert [letter.offset for letter in probe.dead_letters] == [0]


@pytest.mark.awoke_embedded
def test_a_basket_waits_for_an_hour(awoke_run: Any, awoke_clock: Any) -> None:
    probe = awoke_run(app)
    probe.send("baskets", b"a lamp")
    awoke_clock.advance(3_590)
    assert not probe.calls
    awoke_clock.advance(20)
    probe.idle()
    assert [call.value for call in probe.calls] == [b"a lamp"]


@pytest.mark.awoke_embedded  # Only embedded brokers can be told to fail.
def test_a_count_is_written_when_the_partition_goes(awoke_run: Any, awoke_faults: Any) -> None:
    probe = awoke_run(app)
    for _ in range(3):
        probe.send("clicks", b"a click")
    probe.idle()
    awoke_faults.revoke(app, "clicks", 0)
    assert [each.value for each in probe.sent("sums", 1)] == [b"3"]
    assert {call.handler for call in probe.calls} == {Clicks.__name__}


@pytest.mark.awoke_embedded
def test_a_receipt_is_sent_again_when_brokers_refuse_it(awoke_run: Any, awoke_faults: Any) -> None:
    probe = awoke_run(app)
    awoke_faults.refuse_produce("receipts", "NOT_ENOUGH_REPLICAS", times=2)
    probe.send("orders", Order(1, 9.5))
    probe.idle()
    assert len(probe.sent("receipts")) == 1


def test_a_service_quotes_a_price(awoke_run: Any) -> None:
    awoke_run(app)
    assert app.caller("shop").call("quote", sku="A1", quantity=2, timeout_s=10.0) == 19.0


def test_a_wrong_quantity_is_told_to_the_caller(awoke_run: Any) -> None:
    awoke_run(app)
    with pytest.raises(awoke.rpc.InvalidArgument, match="at least one"):
        app.caller("shop").call("quote", sku="A1", quantity=0, timeout_s=10.0)


def test_each_payment_is_booked_once(awoke_run: Any) -> None:
    probe = awoke_run(app)
    for number in range(10):
        probe.send("payments", b"%d EUR" % number)
    probe.idle()
    assert [booking.value for booking in probe.sent("bookings")] == [b"booked %d EUR" % number for number in range(10)]
