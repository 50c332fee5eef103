"""Results on their way to an output: a message is done when its records and all before it are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

import awoke
from awoke._native import HookJob, Job, Message
from awoke.message import Record
from awoke.route_options import KindOptions
from awoke.routing import Route
from awoke.runtime import outgoing as module
from awoke.runtime.outgoing import OrderedOutput, OrderedOutputs, Outgoing, Results
from tests.unit.runtime.fakes import FakeBatch, FakeContext, FakeHandle, FakeJob, FakeProducer

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


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    answers = Answers()
    monkeypatch.setattr(module, "call_back", answers.call_back)
    return answers


class Case:
    """The results of one job."""

    def __init__(self, *errors: BaseException | None, alone: Sequence[BaseException | None] = ()) -> None:
        produced, again = ([FakeHandle(error) for error in each] for each in (errors, alone))
        self.context = FakeContext(producer=FakeProducer(*produced), alone=FakeProducer(*again))
        options: Any = {"concurrency": awoke.by_key()}
        self.route = Route("orders", handle, options, KindOptions(output="out", ordered=True))
        self.job, self.ended = FakeJob(is_of_lanes=True), list[BaseException | None]()
        self.outgoing = Outgoing(lambda job, error: self.ended.append(error))

    def send(self, offset: int, *records: Record | awoke.Outgoing) -> None:
        self.outgoing.add(offset)
        answer = list(records) if records else RECORD
        self.outgoing.send(cast(Any, self.context), self.route, offset, answer)

    def seal(self) -> None:
        self.outgoing.seal(cast(Job, self.job))

    def ordered(self) -> OrderedOutput:
        return OrderedOutput(cast(Any, self.context), self.route)

    @property
    def sent(self) -> list[Any]:
        return [value for _, value in self.context.producer.sent]


def test_a_job_ends_with_its_last_answer_in_whatever_order_they_come(answers: Answers) -> None:
    case = Case()
    for offset in range(3):
        case.send(offset)
    case.seal()
    assert case.job.said == [("leave_slot", True)]
    answers.answer(1)
    assert case.job.said == [("leave_slot", True)], "the message before it has no answer"
    answers.answer(0)
    assert case.job.said[1:] == [("done", 1)]
    assert case.ended == []
    answers.answer(0)
    assert case.job.said[2:] == [("done", 2)]
    assert case.ended == [None]


def test_a_job_whose_answers_came_before_its_end_ends_at_once(answers: Answers) -> None:
    case = Case()
    case.send(0)
    answers.answer()
    assert case.ended == []
    case.seal()
    assert case.job.said == [("leave_slot", False), ("done", 0)]
    assert case.ended == [None]


def test_a_message_without_a_result_is_done_in_its_turn(answers: Answers) -> None:
    case = Case()
    case.send(0)
    case.outgoing.add(1)
    case.outgoing.complete_without_result(1)
    case.seal()
    assert case.job.said == [("leave_slot", True)]
    answers.answer()
    assert case.job.said[1:] == [("done", 1)]
    assert case.ended == [None]


def test_a_message_is_done_when_all_of_its_records_are_answered(answers: Answers) -> None:
    case = Case()
    case.send(0, RECORD, RECORD, RECORD)
    case.seal()
    for _ in range(2):
        answers.answer()
    assert case.job.said == [("leave_slot", True)]
    answers.answer()
    assert case.job.said[1:] == [("done", 0)]
    assert case.ended == [None]


@pytest.mark.parametrize("places", [(2, 1, 0, 0), (0, 0, 0, 0)], ids=["later one first", "in order"])
def test_nothing_from_the_first_refused_message_on_is_done(answers: Answers, places: tuple[int, ...]) -> None:
    first = ValueError("the first")
    case = Case(None, first, REFUSED, None)
    for offset in range(4):
        case.send(offset)
    case.seal()
    for place in places:
        answers.answer(place)
    assert case.job.said[1:] == [("done", 0)]
    assert case.ended == [first]


def test_a_record_that_can_not_be_sent_keeps_those_behind_it_back(answers: Answers) -> None:
    case, produced = Case(), list[Any]()

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
    case = Case(TOO_LARGE)
    case.send(0)
    case.seal()
    answers.answer()
    assert case.ended == []
    assert case.context.alone.sent == [("out", b"result")]
    answers.answer()
    assert case.ended == [None]


def test_a_result_goes_to_its_own_topic_also_alone(answers: Answers) -> None:
    case = Case(None, TOO_LARGE)
    case.send(0, RECORD, awoke.Outgoing("other", b"more"))
    case.seal()
    answers.answer_all()
    assert case.context.producer.sent == [("out", b"result"), ("other", b"more")]
    assert case.context.alone.sent == [("other", b"more")]
    assert case.ended == [None]


def test_a_single_result_may_name_its_topic(answers: Answers) -> None:
    case = Case()
    ordered = case.ordered()
    case.outgoing.add(0)
    assert ordered.add(0, case.outgoing, 0, awoke.Outgoing("other", b"0"))
    case.seal()
    answers.answer_all()
    assert (case.context.producer.sent, case.ended) == ([("other", b"0")], [None])


def test_a_record_that_is_refused_alone_fails_its_message(answers: Answers) -> None:
    case = Case(TOO_LARGE, alone=[TOO_LARGE])
    case.send(0)
    case.seal()
    answers.answer_all()
    assert case.ended == [TOO_LARGE]


def test_a_record_that_can_not_be_sent_alone_fails_its_message(answers: Answers) -> None:
    case = Case(TOO_LARGE)

    def closed(*_: Any, **__: Any) -> FakeHandle:
        raise awoke.ClosedError("the process stops")

    vars(case.context.alone)["produce"] = closed
    case.send(0)
    case.seal()
    answers.answer_all()
    assert [type(error) for error in case.ended] == [awoke.ClosedError]


def test_a_partition_is_kept_for_results_under_way_and_not_for_those_that_wait(answers: Answers) -> None:
    case = Case()
    case.send(0)
    case.outgoing.add(1)  # Its turn has not come.
    case.seal()
    answers.answer()
    assert case.job.said == [("leave_slot", True), ("done", 0), "allow_revoke"]
    case.outgoing.send(cast(Any, case.context), case.route, 1, RECORD)
    assert case.job.said[3:] == ["keep_assigned"]
    answers.answer()
    assert case.ended == [None]


def test_a_job_of_a_lost_partition_ends_all_the_same(answers: Answers) -> None:
    case = Case()

    def done(offset: int) -> None:
        raise awoke.FencedError("taken away", "orders", 0)

    vars(case.job)["done"] = done
    case.send(0)
    case.seal()
    answers.answer()
    assert case.ended == [None]


def test_answers_of_several_threads_end_a_job_once(answers: Answers) -> None:
    case = Case()
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
    assert case.job.said[-1] == ("done", 399)
    stored = [each[1] for each in case.job.said if each[0] == "done"]
    assert stored == sorted(stored)


def test_an_ordered_output_sends_a_result_behind_those_before_it(answers: Answers) -> None:
    case = Case()
    output = case.ordered()
    for offset in (0, 1):
        case.outgoing.add(offset)
    assert output.add(1, case.outgoing, 1, Record(b"1"))
    assert case.sent == []
    assert output.add(0, case.outgoing, 0, Record(b"0"))
    assert case.sent == [b"0", b"1"]


def test_a_skipped_place_holds_up_no_result(answers: Answers) -> None:
    case = Case()
    output = case.ordered()
    output.add(2, case.outgoing, 2, Record(b"2"))
    output.skip([0, None, 1])
    assert case.sent == [b"2"]
    output.skip([0])  # Its turn is over: no error.


def test_a_result_whose_turn_is_over_is_sent_by_its_job() -> None:
    case = Case()
    output = case.ordered()
    output.skip([0])
    assert not output.add(0, case.outgoing, 0, RECORD)


def test_results_of_a_partition_that_was_given_back_are_dropped() -> None:
    case = Case()
    output = case.ordered()
    output.add(1, case.outgoing, 1, RECORD)
    output.close()
    assert output.add(0, case.outgoing, 0, RECORD)
    output.skip([0])
    assert case.sent == []


def job_of(generation: int = 1, epoch: int = 0) -> Job:
    job = FakeJob(is_of_lanes=True)
    vars(job).update(generation=generation, epoch=epoch)
    return cast(Job, job)


def test_each_assignment_and_each_reading_of_it_has_an_output_of_its_own() -> None:
    case = Case()
    outputs = OrderedOutputs(cast(Any, case.context), case.route)
    first = outputs.of(job_of())
    assert outputs.of(job_of()) is first
    assert outputs.of(job_of(epoch=1)) is not first
    assert outputs.of(job_of(generation=2)) is not first


def test_the_end_of_an_assignment_drops_its_outputs_only() -> None:
    case = Case()
    outputs = OrderedOutputs(cast(Any, case.context), case.route)
    ended, other = outputs.of(job_of(epoch=1)), outputs.of(job_of(generation=2))
    outputs.forget(cast(HookJob, FakeJob(name="revoked")))
    for output in (ended, other):
        output.add(0, case.outgoing, 0, RECORD)
    assert len(case.sent) == 1, "of the other assignment"
    assert outputs.of(job_of(generation=2)) is other
    assert outputs.of(job_of(epoch=1)) is not ended


def test_threads_that_are_first_at_once_share_an_output() -> None:
    case, together = Case(), threading.Barrier(8)
    outputs, found = OrderedOutputs(cast(Any, case.context), case.route), list[OrderedOutput]()

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
def test_the_first_message_of_a_job_with_lanes_is_skipped(is_of_lanes: bool, sent: list[bytes]) -> None:
    case = Case()
    outputs = OrderedOutputs(cast(Any, case.context), case.route)
    outputs.of(job_of()).add(1, case.outgoing, 1, Record(b"1"))
    outputs.skip_first(cast(Job, FakeJob(is_of_lanes=is_of_lanes)))
    assert case.sent == sent


def message(offset: int) -> Message[Any]:
    return cast("Message[Any]", FakeBatch(FakeJob(), [offset])[0])


def results(case: Case, ordered: OrderedOutput, *offsets: int) -> Results:
    places = {offset: offset for offset in offsets}
    return Results(cast(Any, case.context), case.route, case.outgoing, ordered, places)


def test_a_result_of_before_a_seek_is_sent_at_once(answers: Answers) -> None:
    case = Case()
    found = results(case, case.ordered())
    found.add(message(1), Record(b"1"))
    found.add(message(0), Record(b"0"))
    assert case.sent == [b"1", b"0"]


@pytest.mark.parametrize("answer", [None, []])
def test_a_message_without_records_gives_its_turn_to_the_next(answers: Answers, answer: Any) -> None:
    case = Case()
    found = results(case, case.ordered(), 0, 1)
    found.add(message(1), Record(b"1"))
    assert case.sent == []
    found.add(message(0), answer)
    assert case.sent == [b"1"]


def test_a_result_whose_turn_is_over_is_sent_at_once(answers: Answers) -> None:
    case = Case()
    ordered = case.ordered()
    ordered.skip([0])
    results(case, ordered, 0).add(message(0), Record(b"again"))
    assert case.sent == [b"again"]


@pytest.mark.parametrize(("before", "sent"), [(2, [b"2"]), (None, [b"2"]), (1, [])])
def test_messages_that_the_function_was_not_called_for_give_their_turns_to_later_ones(
    answers: Answers, before: int | None, sent: list[bytes]
) -> None:
    case = Case()
    found = results(case, case.ordered(), 0, 1, 2)
    found.add(message(2), Record(b"2"))
    found.skip_before(before)
    assert case.sent == sent


def test_a_record_keeps_its_key_headers_partition_and_time() -> None:
    given: list[Any] = []

    class Producer:
        def produce(self, topic: str, value: Any, **options: Any) -> Any:
            given.append((topic, value, options))

    route = Route("orders", handle, {}, KindOptions(output="out"))
    record = Record(b"v", "key", {"h": b"1"}, 3, 1_700_000_000_000)
    module.produce(cast(Any, Producer()), route, record)
    module.produce(cast(Any, Producer()), route, awoke.Outgoing("other", *record))
    options = {"key": "key", "headers": {"h": b"1"}, "partition": 3, "timestamp_ms": 1_700_000_000_000}
    assert given == [("out", b"v", options), ("other", b"v", options)]
