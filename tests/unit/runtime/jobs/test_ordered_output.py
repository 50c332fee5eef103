"""An ordered output: results leave in the order of their messages, and a job ends with its last answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, cast

import pytest

import awoke
from awoke._native import HookJob, Job, OrderedQueue, OrderedResults
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.payloads.message import Record
from awoke.runtime.jobs import ordered_output as module
from awoke.runtime.jobs.ordered_output import OrderedOutputs, OutgoingResults, check_encodable
from awoke.runtime.jobs.outputs import produce
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

REFUSED = awoke.DeliveryFailed("refused", 87, "INVALID_RECORD")
TOO_LARGE = awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE")
RECORD = Record(b"result")


def handle(message: Any) -> None: ...


class Answers:
    """The brokers' answers, which come when a test says so; stands for awoke's callback thread."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Any, Callable[[Any], object]]] = []

    def call_back(self, handle: Any, callback: Callable[[Any], object]) -> None:
        self.waiting.append((handle, callback))

    def answer(self, place: int = 0) -> None:
        handle, callback = self.waiting.pop(place)
        callback(handle)

    def answer_all(self) -> None:
        while self.waiting:
            self.answer()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    answers = Answers()
    monkeypatch.setattr(module, "call_back", answers.call_back)
    return answers


class Case:
    """The results of one job, whose messages have the offsets and ordinals from 0 on."""

    def __init__(
        self,
        *errors: BaseException | None,
        messages: int = 3,
        alone: Sequence[BaseException | None] = (),
        queue: OrderedQueue | None = None,
    ) -> None:
        produced, again = ([FakeHandle(error) for error in each] for each in (errors, alone))
        self.context = FakeContext(producer=FakeProducer(*produced), alone=FakeProducer(*again))
        options: Any = {"concurrency": awoke.by_key()}
        self.route = Route("orders", handle, options, KindOptions(output="out", ordered=True))
        self.job, self.ended = FakeJob(messages, is_of_lanes=True), list[BaseException | None]()
        self.queue = OrderedQueue(None, "out") if queue is None else queue
        self.results = self.results_of(list(range(messages)))
        self.outgoing = self.outgoing_of(self.results)

    def results_of(self, offsets: Sequence[int], ordinals: Sequence[int | None] | None = None) -> OrderedResults:
        return OrderedResults(self.queue, offsets, offsets if ordinals is None else ordinals)

    def outgoing_of(self, results: OrderedResults) -> OutgoingResults:
        return OutgoingResults(
            cast(Any, self.context), self.route, results, lambda job, error: self.ended.append(error)
        )

    def send(self, offset: int, *records: Record | awoke.Outgoing) -> None:
        self.results.add(self.outgoing, offset, (copy_context(), list(records) if records else RECORD))

    def wait(self, *offsets: int) -> None:
        """Adds results of another job, which wait for those before them."""
        results = self.results_of(offsets)
        for offset in offsets:
            results.add(self.outgoing_of(results), offset, (copy_context(), Record(b"%d" % offset)))

    def seal(self) -> None:
        self.outgoing.seal(cast(Job, self.job))

    @property
    def sent(self) -> list[Any]:
        return [value for _, value in self.context.producer.sent]


@pytest.mark.parametrize("places", [(1, 0, 0), (0, 0, 0)], ids=["a later one first", "in order"])
def test_a_job_ends_with_its_last_answer_in_whatever_order_they_come(answers: Answers, places: tuple[int, ...]) -> None:
    case = Case()
    for offset in range(3):
        case.send(offset)
    case.seal()
    for place in places:
        assert case.ended == []
        answers.answer(place)
    assert case.job.said == [("leave_slot", True)]
    assert case.ended == [None]


def test_a_job_whose_answers_came_before_its_end_ends_at_once(answers: Answers) -> None:
    case = Case(messages=1)
    case.send(0)
    answers.answer()
    assert case.ended == []
    case.seal()
    assert case.job.said == [("leave_slot", False)]
    assert case.ended == [None]


def test_a_job_without_results_ends_at_once() -> None:
    case = Case(messages=2)
    case.results.skip(0)
    case.results.skip(1)
    case.seal()
    assert case.job.said == [("leave_slot", False)]
    assert case.ended == [None]


def test_a_message_is_done_when_all_of_its_records_are_answered(answers: Answers) -> None:
    case = Case(messages=1)
    case.send(0, RECORD, RECORD, RECORD)
    case.seal()
    for _ in range(2):
        answers.answer()
    assert case.ended == []
    answers.answer()
    assert case.ended == [None]


@pytest.mark.parametrize("places", [(2, 1, 0, 0), (0, 0, 0, 0)], ids=["later one first", "in order"])
def test_nothing_from_the_first_refused_message_on_is_done(answers: Answers, places: tuple[int, ...]) -> None:
    first = ValueError("the first")
    case = Case(None, first, REFUSED, None, messages=4)
    for offset in range(4):
        case.send(offset)
    case.seal()
    for place in places:
        answers.answer(place)
    assert set(case.job.said[1:]) == {("done_before", 1)}
    assert case.ended == [first]


def test_refused_messages_of_other_lanes_fail_each_for_itself(answers: Answers) -> None:
    case = Case(None, REFUSED, None, TOO_LARGE, None, messages=5, alone=[TOO_LARGE])
    case.job.has_several_lanes = True
    for offset in range(5):
        case.send(offset)
    case.seal()
    answers.answer_all()
    assert case.ended == [REFUSED, TOO_LARGE, None]
    second = case.job.parts[1]
    assert (case.job.said[-1], second.said[-1]) == (("done_before", 1), ("done_before", 3))
    assert second.parts[3].offsets == [4]


def test_a_record_that_can_not_be_sent_keeps_those_behind_it_back(answers: Answers) -> None:
    case, produced = Case(messages=1), list[Any]()

    def produce(topic: str, value: Any, **_: Any) -> FakeHandle:
        produced.append(value)
        if value == b"2":
            raise awoke.QueueFull("no room")
        return FakeHandle()

    vars(case.context.producer)["produce"] = produce
    case.send(0, Record(b"1"), Record(b"2"), Record(b"3"))
    case.seal()
    answers.answer_all()
    assert produced == [b"1", b"2"]
    assert [type(error) for error in case.ended] == [awoke.QueueFull]


def test_a_record_that_was_refused_with_others_is_sent_alone(answers: Answers) -> None:
    case = Case(TOO_LARGE, messages=1)
    case.send(0)
    case.seal()
    answers.answer()
    assert case.ended == []
    assert case.context.alone.sent == [("out", b"result")]
    answers.answer()
    assert case.ended == [None]


def test_a_result_goes_to_its_own_topic_also_alone(answers: Answers) -> None:
    case = Case(None, TOO_LARGE, messages=1)
    case.send(0, RECORD, awoke.Outgoing("other", b"more"))
    case.seal()
    answers.answer_all()
    assert case.context.producer.sent == [("out", b"result"), ("other", b"more")]
    assert case.context.alone.sent == [("other", b"more")]
    assert case.ended == [None]


def test_a_record_that_is_refused_alone_fails_its_message(answers: Answers) -> None:
    case = Case(TOO_LARGE, messages=1, alone=[TOO_LARGE])
    case.send(0)
    case.seal()
    answers.answer_all()
    assert case.ended == [TOO_LARGE]


def test_a_record_that_can_not_be_sent_alone_fails_its_message(answers: Answers) -> None:
    case = Case(TOO_LARGE, messages=1)

    def closed(*_: Any, **__: Any) -> FakeHandle:
        raise awoke.ClosedError("the process stops")

    vars(case.context.alone)["produce"] = closed
    case.send(0)
    case.seal()
    answers.answer_all()
    assert [type(error) for error in case.ended] == [awoke.ClosedError]


def test_a_partition_is_kept_for_results_under_way_and_not_for_those_that_wait(answers: Answers) -> None:
    case = Case()
    case.results = case.results_of([0, 2])  # 1 is another job's.
    case.outgoing = case.outgoing_of(case.results)
    case.send(0)
    case.send(2)
    case.seal()
    answers.answer()
    assert case.job.said == [("leave_slot", True), ("done_before", 2), "allow_revoke"]
    case.queue.skip(1)
    assert case.job.said[3:] == ["keep_assigned", "keep_assigned"]
    answers.answer()
    assert case.ended == [None]


def test_a_job_of_a_lost_partition_ends_all_the_same(answers: Answers) -> None:
    case = Case(REFUSED, messages=1)

    def done(offset: int) -> None:
        raise awoke.FencedError("taken away", "orders", 0)

    vars(case.job)["done_before"] = done
    case.send(0)
    case.seal()
    answers.answer()
    assert case.ended == [REFUSED]


def test_answers_of_several_threads_end_a_job_once(answers: Answers) -> None:
    case = Case(messages=400)
    for offset in range(400):
        case.send(offset)
    together = threading.Barrier(5)

    def answer(mine: list[Any]) -> None:
        together.wait(30)
        for handle, callback in mine:
            callback(handle)

    threads = [threading.Thread(target=answer, args=(answers.waiting[place::4],)) for place in range(4)]
    for thread in threads:
        thread.start()
    together.wait(30)
    case.seal()
    for thread in threads:
        thread.join(30)
    assert case.ended == [None]


def test_jobs_of_several_threads_send_in_order_and_each_ends_once(answers: Answers) -> None:
    first = Case(messages=0)
    cases = [Case(messages=0, queue=first.queue) for _ in range(8)]
    together, sent = threading.Barrier(len(cases)), list[bytes]()
    for case in cases:
        vars(case.context)["producer"] = first.context.producer

    def work(place: int) -> None:
        case = cases[place]
        together.wait(30)
        for turn in range(20):
            offsets = [(turn * 5 + number) * len(cases) + place for number in range(5)]
            results = case.results_of(offsets)
            outgoing = case.outgoing_of(results)
            for offset in offsets:
                if offset % 7:
                    results.add(outgoing, offset, (copy_context(), Record(b"%d" % offset)))
            job = FakeJob(len(offsets), is_of_lanes=True)
            job.offsets = offsets
            outgoing.seal(cast(Job, job))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    answers.answer_all()
    sent = [value for _, value in first.context.producer.sent]
    assert sent == [b"%d" % offset for offset in range(800) if offset % 7]
    assert [case.ended for case in cases] == [[None] * 20] * len(cases)


def test_a_result_is_sent_behind_those_before_it(answers: Answers) -> None:
    case = Case(messages=1)
    case.wait(2, 1)
    assert case.sent == []
    case.send(0, Record(b"0"))
    assert case.sent == [b"0", b"1", b"2"]


def test_a_skipped_place_holds_up_no_result(answers: Answers) -> None:
    case = Case()
    case.wait(2)
    for ordinal in (0, None, 1):
        case.queue.skip(ordinal)
    assert case.sent == [b"2"]
    case.queue.skip(0)  # Its turn is over: no error.


def test_results_of_a_partition_that_was_given_back_are_dropped() -> None:
    case = Case(messages=2)
    case.wait(1)
    case.queue.close()
    case.send(0)
    case.seal()
    case.queue.skip(0)
    assert (case.sent, case.ended) == ([], [])


def job_of(generation: int = 1, epoch: int = 0) -> Job:
    job = FakeJob(is_of_lanes=True)
    vars(job).update(generation=generation, epoch=epoch)
    return cast(Job, job)


def test_each_assignment_and_each_reading_of_it_has_a_queue_of_its_own() -> None:
    case = Case()
    outputs = OrderedOutputs(cast(Any, case.context), case.route)
    first = outputs.of(job_of())
    assert outputs.of(job_of()) is first
    assert outputs.of(job_of(epoch=1)) is not first
    assert outputs.of(job_of(generation=2)) is not first


def test_the_end_of_an_assignment_drops_its_queues_only(answers: Answers) -> None:
    case = Case()
    outputs = OrderedOutputs(cast(Any, case.context), case.route)
    ended, other = outputs.of(job_of(epoch=1)), outputs.of(job_of(generation=2))
    outputs.forget(cast(HookJob, FakeJob(name="revoked")))
    for queue in (ended, other):
        case.queue = queue
        case.wait(0)
    assert len(case.sent) == 1, "of the other assignment"
    assert outputs.of(job_of(generation=2)) is other
    assert outputs.of(job_of(epoch=1)) is not ended


def test_threads_that_are_first_at_once_share_a_queue() -> None:
    case, together = Case(), threading.Barrier(8)
    outputs, found = OrderedOutputs(cast(Any, case.context), case.route), list[OrderedQueue]()

    def ask() -> None:
        together.wait(30)
        found.append(outputs.of(job_of()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({id(each) for each in found}) == 1


@pytest.mark.parametrize(("is_of_lanes", "sent"), [(True, [b"1"]), (False, [])])
def test_the_first_message_of_a_job_with_lanes_is_skipped(
    answers: Answers, is_of_lanes: bool, sent: list[bytes]
) -> None:
    case = Case()
    outputs = OrderedOutputs(cast(Any, case.context), case.route)
    case.queue = outputs.of(job_of())
    case.wait(1)
    outputs.skip_first(cast(Job, FakeJob(is_of_lanes=is_of_lanes)))
    assert case.sent == sent


def test_a_result_of_before_a_seek_is_sent_at_once(answers: Answers) -> None:
    case = Case()
    case.results = case.results_of([1, 0], [None, None])
    case.send(1, Record(b"1"))
    case.send(0, Record(b"0"))
    assert case.sent == [b"1", b"0"]


def test_a_message_without_records_gives_its_turn_to_the_next(answers: Answers) -> None:
    case = Case()
    case.wait(1)
    assert case.sent == []
    case.results.skip(0)
    assert case.sent == [b"1"]


def test_a_result_whose_turn_is_over_is_sent_at_once(answers: Answers) -> None:
    case = Case()
    case.queue.skip(0)
    case.send(0, Record(b"again"))
    assert case.sent == [b"again"]


def test_messages_that_the_function_was_not_called_for_give_their_turns_to_later_ones(answers: Answers) -> None:
    case = Case()
    case.send(2, Record(b"2"))
    assert case.sent == [b"2"]


@pytest.mark.parametrize(("place", "sent"), [(1, []), (2, [b"2"]), (None, [b"2"])])
def test_messages_before_the_end_of_a_job_give_their_turns_to_later_ones(
    answers: Answers, place: int | None, sent: list[bytes]
) -> None:
    case = Case(messages=2)
    case.wait(2)
    case.outgoing.seal(cast(Job, case.job), place)
    assert case.sent == sent


def test_a_record_keeps_its_key_headers_partition_and_time() -> None:
    given: list[Any] = []

    class Producer:
        def produce(self, topic: str, value: Any, **options: Any) -> Any:
            given.append((topic, value, options))

    route = Route("orders", handle, {}, KindOptions(output="out"))
    record = Record(b"v", "key", {"h": b"1"}, 3, 1_700_000_000_000)
    produce(cast(Any, Producer()), route, record)
    produce(cast(Any, Producer()), route, awoke.Outgoing("other", *record))
    options = {"key": "key", "headers": {"h": b"1"}, "partition": 3, "timestamp_ms": 1_700_000_000_000}
    assert given == [("out", b"v", options), ("other", b"v", options)]


def test_a_result_is_encoded_for_its_own_topic_before_it_waits_for_its_turn() -> None:
    encoded: list[awoke.Outgoing] = []

    def encode(message: awoke.Outgoing) -> awoke.Outgoing:
        encoded.append(message)
        if message.topic == "other":
            raise awoke.EncodeError("no good")
        return message

    outgoing = awoke.Outgoing("other", b"2")
    check_encodable(RECORD, "out", encode)
    with pytest.raises(awoke.EncodeError):
        check_encodable([RECORD, outgoing], "out", encode)
    assert encoded == [awoke.Outgoing("out", b"result"), awoke.Outgoing("out", b"result"), outgoing]


# Whole jobs.


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
def test_the_messages_before_one_that_fails_end_by_themselves(is_async: bool) -> None:
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
