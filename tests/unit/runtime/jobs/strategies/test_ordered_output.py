"""A function with an output, several jobs of a partition at once: results leave in the order of the messages."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from tests.unit.runtime.fakes import (
    KINDS,
    YIELDED,
    FakeContext,
    FakeHandle,
    FakeJob,
    FakeProducer,
    executor,
    fails_at,
    handler,
    process,
    wait_for_callbacks,
    yields,
)


def lanes(function: Any, context: FakeContext, **options: Any) -> Any:
    return executor(function, context, output="out", ordered=True, concurrency=awoke.by_key(), **options)


@KINDS
def test_a_job_ends_by_itself_when_its_results_are_acknowledged(is_async: bool) -> None:
    context = FakeContext()
    ran = lanes(handler(lambda message: b"result", is_async), context)
    job = process(ran, FakeJob(is_of_lanes=True), on_loop=is_async)
    wait_for_callbacks()
    assert context.producer.sent == [("out", b"result")] * 3
    assert job.said[-1] == "complete"
    assert job.detached == 0


@KINDS
def test_the_messages_before_one_that_fails_end_as_a_job_of_their_own(is_async: bool) -> None:
    context = FakeContext()
    ran = lanes(handler(fails_at(2), is_async), context)
    job = process(ran, FakeJob(is_of_lanes=True), on_loop=is_async)
    wait_for_callbacks()
    assert job.said == ["retry"]
    assert job.parts[1].said[-1] == "complete"
    assert job.detached == 1


@pytest.mark.parametrize(("has_several_lanes", "said"), [(True, ["release_rest"]), (False, [])])
def test_what_a_job_of_several_lanes_leaves_does_not_wait_for_its_results(
    has_several_lanes: bool, said: list[str]
) -> None:
    context = FakeContext()
    ran = lanes(lambda message: b"%d" % message.offset, context)
    left = FakeJob(2, is_of_lanes=True)
    left.offsets = [0, 2]
    vars(left).update(has_several_lanes=has_several_lanes, rest_offset=1)
    process(ran, left, on_loop=False)
    assert context.producer.sent == [("out", b"0")]
    assert [each for each in left.said if each == "release_rest"] == said
    rest = FakeJob(1, is_of_lanes=True)
    rest.offsets = [1]
    process(ran, rest, on_loop=False)
    wait_for_callbacks()
    assert [value for _, value in context.producer.sent] == [b"0", b"1", b"2"]
    ended = left.parts[2] if has_several_lanes else left
    assert ended.said[-1] == "complete"


def test_results_leave_in_the_order_of_their_messages() -> None:
    context = FakeContext()
    ran = lanes(lambda message: b"%d" % message.offset, context)
    first, second = FakeJob(2, is_of_lanes=True), FakeJob(2, is_of_lanes=True)
    second.offsets = [2, 3]
    process(ran, second, on_loop=False)
    assert context.producer.sent == [], "they wait for those before them"
    process(ran, first, on_loop=False)
    wait_for_callbacks()
    assert [value for _, value in context.producer.sent] == [b"0", b"1", b"2", b"3"]
    assert (first.said[-1], second.said[-1]) == ("complete", "complete")


def test_a_result_that_the_broker_refuses_fails_its_job_later() -> None:
    refused = FakeHandle(awoke.DeliveryFailed("refused", 87, "INVALID_RECORD"))
    context = FakeContext(producer=FakeProducer(FakeHandle(), refused))
    ran = lanes(lambda message: b"r", context, dead_letter="dead", retry=awoke.Retry(attempts=1))
    job = process(ran, FakeJob(is_of_lanes=True), on_loop=False)
    wait_for_callbacks()
    assert context.heard == ["job.failed", "message.dead_lettered"]
    assert job.said[-1] == "release_rest"


@KINDS
def test_all_that_a_generator_yields_leaves_in_the_turn_of_its_message(is_async: bool) -> None:
    context = FakeContext()
    ran = lanes(yields(is_async), context)
    second, first = FakeJob(1, is_of_lanes=True), FakeJob(2, is_of_lanes=True)
    second.offsets = [2]
    process(ran, second, on_loop=is_async)
    assert context.producer.sent == []
    process(ran, first, on_loop=is_async)
    wait_for_callbacks()
    assert context.producer.sent == YIELDED
    assert (first.said[-1], second.said[-1]) == ("complete", "complete")
