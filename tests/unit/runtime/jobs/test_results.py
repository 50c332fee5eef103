"""The results of a handler: sent to the output of its route, and acknowledged before their job is over."""

from __future__ import annotations

from typing import Any, cast

import pytest

import awoke
from awoke._native import Job
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.runtime.jobs import results as module
from awoke.runtime.jobs.results import Acknowledgements, WithOutput
from awoke.waiting.drive import drive
from tests.unit.runtime.fakes import (
    KINDS,
    YIELDED,
    FakeContext,
    FakeHandle,
    FakeJob,
    FakeProducer,
    FakeResults,
    executor,
    fails_at,
    handler,
    process,
    wait_for_callbacks,
    yields,
)

TOO_LARGE = awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE")
REFUSED = awoke.DeliveryFailed("refused", 87, "INVALID_RECORD")


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the results kept in Python: the engine's take handles of the engine's only."""
    monkeypatch.setattr(module, "Results", FakeResults)


# No output.


@KINDS
def test_a_function_gets_each_message(is_async: bool) -> None:
    seen: list[int] = []
    ran = executor(handler(lambda message: seen.append(message.offset), is_async), FakeContext())
    job = process(ran, FakeJob(), on_loop=is_async)
    assert seen == [0, 1, 2]
    assert (job.said, job.detached) == (["complete"], 0)


@KINDS
def test_a_job_that_fails_stores_what_is_done_and_copies_its_messages(is_async: bool) -> None:
    context = FakeContext()
    function = handler(lambda message: None if message.offset < 2 else fails_at(2)(message), is_async)
    job = process(executor(function, context), FakeJob(), on_loop=is_async)
    assert (job.said, job.detached) == ([("done", 1), "retry"], 1)
    assert context.heard == ["job.failed"]


@KINDS
def test_a_message_that_a_handler_keeps_is_copied(is_async: bool) -> None:
    kept: list[Any] = []
    ran = executor(handler(lambda message: kept.append(message), is_async), FakeContext())
    job = process(ran, FakeJob(), on_loop=is_async)
    assert (job.said, job.detached) == (["complete"], 1)


@KINDS
def test_a_call_whose_body_has_not_run_fails_its_message(is_async: bool) -> None:
    context = FakeContext()
    job = process(
        executor(handler(lambda message: (each for each in ""), is_async), context), FakeJob(), on_loop=is_async
    )
    assert job.said == ["retry"]
    assert context.heard == ["job.failed"]


# One job of a partition at a time.


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
def test_a_message_that_a_handler_with_an_output_keeps_is_copied(is_async: bool) -> None:
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


def test_each_result_is_sent_to_its_topic_and_kept_as_it_was_returned() -> None:
    sent: list[Any] = []

    class Producer:
        def produce(self, topic: str, value: Any, **options: Any) -> str:
            sent.append((topic, value, options["key"]))
            return "handle"

    route = Route("orders", handle, {}, KindOptions(output=["out", "other"]))
    strategy: Any = WithOutput(route, cast(Any, FakeContext(producer=Producer())))
    message = FakeJob().batch()[2]
    outgoing, record = awoke.Outgoing("third", b"1", "own"), awoke.Record(b"2", "k")
    assert strategy.make(message, [outgoing, record]) == [(2, "handle", outgoing), (2, "handle", record)]
    assert sent == [("third", b"1", "own"), ("out", b"2", "k")]
    assert strategy.make(message, None) == []


# Several jobs of a partition at once.


def lanes(function: Any, context: FakeContext, **options: Any) -> Any:
    return executor(function, context, output="out", concurrency=awoke.by_key(), **options)


@KINDS
def test_a_job_of_lanes_leaves_its_slot_and_ends_when_its_results_are_acknowledged(is_async: bool) -> None:
    context = FakeContext()
    job = process(
        lanes(handler(lambda message: b"result", is_async), context), FakeJob(is_of_lanes=True), on_loop=is_async
    )
    wait_for_callbacks()
    assert context.producer.sent == [("out", b"result")] * 3
    assert (job.said, job.detached) == ([("leave_slot", True), "complete"], 0)


@KINDS
def test_a_job_of_lanes_without_results_ends_at_once(is_async: bool) -> None:
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


def test_a_refused_result_of_lanes_is_the_failure_of_its_message() -> None:
    refused = FakeHandle(awoke.DeliveryFailed("refused", 87, "INVALID_RECORD"))
    context = FakeContext(producer=FakeProducer(FakeHandle(), refused))
    ran = lanes(lambda message: b"r", context, dead_letter="dead", retry=awoke.Retry(attempts=1))
    job = process(ran, FakeJob(is_of_lanes=True), on_loop=False)
    wait_for_callbacks()
    assert context.heard == ["job.failed", "message.dead_lettered"]
    assert job.said == [("leave_slot", True), ("done_before", 1), ("done", 1), "release_rest"]


def test_a_result_of_lanes_that_was_refused_in_company_is_sent_alone_and_those_behind_it_follow() -> None:
    too_large = FakeHandle(awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE"))
    context = FakeContext(producer=FakeProducer(FakeHandle(), too_large))
    job = process(lanes(lambda message: b"%d" % message.offset, context), FakeJob(is_of_lanes=True), on_loop=False)
    wait_for_callbacks()
    assert context.alone.sent == [("out", b"1"), ("out", b"2")]
    assert job.said[-1] == "complete"


@KINDS
def test_all_that_a_generator_of_lanes_yields_is_sent_each_to_its_topic(is_async: bool) -> None:
    context = FakeContext()
    job = process(lanes(yields(is_async), context), FakeJob(is_of_lanes=True), on_loop=is_async)
    wait_for_callbacks()
    assert context.producer.sent == YIELDED
    assert job.said == [("leave_slot", True), "complete"]


# Acknowledgements.


def handle(message: awoke.Message[bytes]) -> bytes:
    return message.value


def sent(*handles: FakeHandle) -> Any:
    results = FakeResults()
    for offset, each in enumerate(handles):
        results.keep(offset, each, (b"%d" % offset, b"key", None, None, None))
    return results


def sent_to(topic: str, *handles: FakeHandle) -> Any:
    """As `sent`, but each result names a topic of its own."""
    results = FakeResults()
    for offset, each in enumerate(handles):
        results.keep(offset, each, awoke.Outgoing(topic, b"%d" % offset, b"key"))
    return results


def check(job: FakeJob, results: Any, context: FakeContext) -> None:
    route = Route("orders", handle, {}, KindOptions(output="out"))
    drive(Acknowledgements(route, cast(Any, context)).check(cast(Job, job), results))


def test_all_that_is_acknowledged_is_forgotten() -> None:
    job, results = FakeJob(), sent(FakeHandle(), FakeHandle())
    check(job, results, FakeContext())
    assert (job.said, len(results)) == ([], 0)


def test_the_first_refusal_is_raised_and_those_before_it_are_done() -> None:
    job, results = FakeJob(), sent(FakeHandle(), FakeHandle(REFUSED), FakeHandle(REFUSED))
    with pytest.raises(awoke.DeliveryFailed, match="refused"):
        check(job, results, FakeContext())
    assert (job.said, len(results)) == ([("done_before", 1)], 0)


def test_one_that_was_refused_in_company_is_sent_alone_with_those_behind_it() -> None:
    context = FakeContext()
    check(FakeJob(), sent(FakeHandle(), FakeHandle(TOO_LARGE), FakeHandle()), context)
    assert context.alone.sent == [("out", b"1"), ("out", b"2")]


def test_one_with_a_topic_of_its_own_is_sent_alone_to_that() -> None:
    context = FakeContext()
    check(FakeJob(), sent_to("other", FakeHandle(TOO_LARGE), FakeHandle()), context)
    assert context.alone.sent == [("other", b"0"), ("other", b"1")]


def test_a_refusal_of_a_partition_that_was_given_back_changes_nothing() -> None:
    class Fenced(FakeJob):
        def done_before(self, offset: int) -> None:
            raise awoke.FencedError("gone")

    with pytest.raises(awoke.DeliveryFailed, match="refused"):
        check(Fenced(), sent(FakeHandle(REFUSED)), FakeContext())


def test_all_refusals_are_found_and_the_handles_forgotten() -> None:
    route = Route("orders", handle, {}, KindOptions(output="out"))
    results = sent(FakeHandle(REFUSED), FakeHandle(), FakeHandle(REFUSED))
    refused = drive(Acknowledgements(route, cast(Any, FakeContext())).refused(results))
    assert refused == [(0, REFUSED), (2, REFUSED)]
    assert len(results) == 0
