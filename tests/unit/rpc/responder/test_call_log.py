"""The calls of a service, as a console sees them."""

from __future__ import annotations

from typing import cast

from awoke._native import IncomingCall
from awoke.rpc.responder import call_log
from awoke.rpc.responder.call_log import CallLog, times_of


def test_quantiles_are_those_of_the_times() -> None:
    assert times_of([]) == (None, None)
    assert times_of([4.0]) == (4.0, 4.0)
    assert times_of([float(each) for each in range(100)]) == (50.0, 95.0)


def test_a_method_has_outcomes_and_times_and_a_reply_of_no_known_method_counts_nothing() -> None:
    log = CallLog()
    log.ended("quote", "ok", 0.001, 0.002)
    log.ended("quote", "internal", 0.003, 0.004)
    log.acknowledged("quote", 0.005)
    log.acknowledged("other", 0.005)
    (found,) = log.methods()
    assert (found.method, found.outcomes) == ("quote", {"ok": 1, "internal": 1})
    assert (found.queue.most_s, found.run.most_s, found.reply.most_s) == (0.003, 0.004, 0.005)


def test_methods_are_bounded() -> None:
    log = CallLog()
    for number in range(call_log.METHODS_MAX + 5):
        log.ended(str(number), "ok", 0.0, 0.0)
    assert len(log.methods()) == call_log.METHODS_MAX


def test_calls_at_work_are_kept_in_their_order_until_they_are_left() -> None:
    log, first, second = CallLog(), cast(IncomingCall, object()), cast(IncomingCall, object())
    log.began(first)
    log.began(second)
    assert log.at_work() == [first, second]
    log.left(first)
    assert log.at_work() == [second]


def test_rejections_are_counted_by_reason() -> None:
    log = CallLog()
    for reason in ("expired", "queue_full", "expired"):
        log.rejected(reason)
    assert log.rejections() == {"expired": 2, "queue_full": 1}
