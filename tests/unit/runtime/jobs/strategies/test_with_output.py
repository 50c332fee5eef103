"""A function with an output, one job of a partition at a time: the job waits for its acknowledgements."""

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
    yields,
)


@KINDS
def test_a_job_ends_when_its_results_are_acknowledged(is_async: bool) -> None:
    context = FakeContext()
    ran = executor(handler(lambda message: b"result", is_async), context, output="out")
    job = process(ran, FakeJob(), on_loop=True)
    assert context.producer.sent == [("out", b"result")] * 3
    assert (job.said, job.detached) == (["complete"], 0)


@KINDS
def test_a_message_that_fails_waits_for_the_results_before_it(is_async: bool) -> None:
    context = FakeContext()
    job = process(executor(handler(fails_at(2), is_async), context, output="out"), FakeJob(), on_loop=True)
    assert context.producer.sent == [("out", b"result")] * 2
    assert (job.said, job.detached) == ([("done", 1), "retry"], 1)


def test_a_result_that_the_broker_refuses_is_the_failure_of_its_message() -> None:
    handles = FakeHandle(), FakeHandle(awoke.DeliveryFailed("refused", 87, "INVALID_RECORD"))
    context = FakeContext(producer=FakeProducer(*handles))
    retry = awoke.Retry(on_exhausted="skip")
    ran = executor(handler(lambda message: b"r", True), context, output="out", retry=retry)
    job = process(ran, FakeJob(), on_loop=True)
    assert job.said == [("done_before", 1), ("done", 1), "release_rest"]
    assert context.heard == ["job.failed", "message.skipped"]


def test_a_result_that_was_refused_in_company_is_sent_alone_and_those_behind_it_follow() -> None:
    too_large = FakeHandle(awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE"))
    context = FakeContext(producer=FakeProducer(FakeHandle(), too_large))
    ran = executor(handler(lambda message: b"%d" % message.offset, True), context, output="out")
    job = process(ran, FakeJob(), on_loop=True)
    assert context.alone.sent == [("out", b"1"), ("out", b"2")]
    assert job.said == ["complete"]


@KINDS
def test_a_message_that_a_handler_keeps_is_copied(is_async: bool) -> None:
    kept: list[Any] = []
    ran = executor(handler(lambda message: kept.append(message), is_async), FakeContext(), output="out")
    assert process(ran, FakeJob(), on_loop=True).detached == 1


@KINDS
def test_all_that_a_generator_yields_is_sent_each_to_its_topic(is_async: bool) -> None:
    context = FakeContext()
    job = process(executor(yields(is_async), context, output="out"), FakeJob(), on_loop=True)
    assert context.producer.sent == YIELDED
    assert job.said == ["complete"]


@KINDS
def test_a_generator_that_fails_sends_nothing_of_its_message(is_async: bool) -> None:
    def fails(message: Any) -> Any:
        yield b"first"
        raise ValueError("no good")

    async def fails_later(message: Any) -> Any:
        for each in fails(message):
            yield each

    context = FakeContext()
    job = process(executor(fails_later if is_async else fails, context, output="out"), FakeJob(), on_loop=True)
    assert context.producer.sent == []
    assert job.said == ["retry"]
