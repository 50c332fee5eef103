"""Events of calls: what was refused is one metric, by its reason."""

from __future__ import annotations

from awoke.observe.events import RpcFailed, RpcRefused, RpcReplyRefused
from tests.support.events import example_of


def test_refused_records_and_refused_replies_are_one_counter_by_reason() -> None:
    forged, reply = example_of(RpcRefused, reason="forged"), example_of(RpcReplyRefused)
    assert forged.counter is reply.counter
    assert (forged.label_values, reply.label_values) == (("forged",), ("reply_refused",))


def test_a_method_that_failed_is_counted_by_its_name_and_not_by_its_caller() -> None:
    assert example_of(RpcFailed, method="find", caller="web").label_values == ("find",)
