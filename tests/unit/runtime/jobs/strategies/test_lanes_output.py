"""A function with an output, several jobs of a partition at once: no worker waits for an acknowledgement."""

from __future__ import annotations

from typing import Any

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
    return executor(function, context, output="out", concurrency=awoke.by_key(), **options)


@KINDS
def test_a_job_leaves_its_slot_and_ends_when_its_results_are_acknowledged(is_async: bool) -> None:
    context = FakeContext()
    job = process(
        lanes(handler(lambda message: b"result", is_async), context), FakeJob(is_of_lanes=True), on_loop=is_async
    )
    wait_for_callbacks()
    assert context.producer.sent == [("out", b"result")] * 3
    assert (job.said, job.detached) == ([("leave_slot", True), "complete"], 0)


@KINDS
def test_a_job_without_results_ends_at_once(is_async: bool) -> None:
    job = process(
        lanes(handler(lambda message: None, is_async), FakeContext()), FakeJob(is_of_lanes=True), on_loop=is_async
    )
    assert job.said == [("leave_slot", False), "complete"]


@KINDS
def test_the_messages_before_one_that_fails_end_as_a_job_of_their_own(is_async: bool) -> None:
    context = FakeContext()
    job = process(lanes(handler(fails_at(2), is_async), context), FakeJob(is_of_lanes=True), on_loop=is_async)
    wait_for_callbacks()
    assert context.producer.sent == [("out", b"result")] * 2
    assert (job.said, job.detached) == (["retry"], 1)
    assert job.parts[1].said == [("leave_slot", True), "complete"]


def test_a_message_that_fails_first_leaves_no_part_behind() -> None:
    job = process(lanes(fails_at(0), FakeContext()), FakeJob(is_of_lanes=True), on_loop=False)
    assert (job.said, job.parts) == (["retry"], {})


def test_a_result_that_the_broker_refuses_is_the_failure_of_its_message() -> None:
    refused = FakeHandle(awoke.DeliveryFailed("refused", 87, "INVALID_RECORD"))
    context = FakeContext(producer=FakeProducer(FakeHandle(), refused))
    ran = lanes(lambda message: b"r", context, dead_letter="dead", retry=awoke.Retry(attempts=1))
    job = process(ran, FakeJob(is_of_lanes=True), on_loop=False)
    wait_for_callbacks()
    assert context.heard == ["job.failed", "message.dead_lettered"]
    assert job.said == [("leave_slot", True), ("done_before", 1), ("done", 1), "release_rest"]


def test_a_result_that_was_refused_in_company_is_sent_alone_and_those_behind_it_follow() -> None:
    too_large = FakeHandle(awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE"))
    context = FakeContext(producer=FakeProducer(FakeHandle(), too_large))
    job = process(lanes(lambda message: b"%d" % message.offset, context), FakeJob(is_of_lanes=True), on_loop=False)
    wait_for_callbacks()
    assert context.alone.sent == [("out", b"1"), ("out", b"2")]
    assert job.said[-1] == "complete"


@KINDS
def test_all_that_a_generator_yields_is_sent_each_to_its_topic(is_async: bool) -> None:
    context = FakeContext()
    job = process(lanes(yields(is_async), context), FakeJob(is_of_lanes=True), on_loop=is_async)
    wait_for_callbacks()
    assert context.producer.sent == YIELDED
    assert job.said == [("leave_slot", True), "complete"]
