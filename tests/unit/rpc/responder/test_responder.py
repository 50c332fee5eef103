"""The threads of a responder: each call is begun, executed and answered; or rejected, or given back."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke import rpc
from awoke.errors import KafkaError
from awoke.rpc.context import current
from awoke.rpc.responder import responder as module
from awoke.rpc.responder.methods import Rpc
from awoke.rpc.responder.responder import LOOK_AGAIN_S, Responder
from tests.support.waiting import Collected, ahang
from tests.unit.rpc.responder.fakes import (
    FakeAdmission,
    FakeCall,
    FakeCredit,
    FakeHost,
    FakeMember,
    FakeReplies,
    FakeTransactions,
    Scheduled,
)

WITHIN_S = 30.0
DENIED = KafkaError("denied", 29, "TOPIC_AUTHORIZATION_FAILED")


class Engine:
    """The engine's side: calls that a test gives, and what became of them."""

    def __init__(self) -> None:
        self.admission, self.replies = FakeAdmission(), FakeReplies()
        self.over = Collected[None]()
        self.replies.on_end = lambda: self.over.add(None)
        self.partitions = {"shop.rpc.replies": 1}
        self.threads = 0

    def native(self) -> SimpleNamespace:
        """Returns the part of the extension that a responder uses."""
        return SimpleNamespace(
            Scheduler=lambda: Scheduled(self._end_threads),
            Route=lambda *_, **__: SimpleNamespace(expired=3),
            Producer=lambda *_, for_calls: SimpleNamespace(close=lambda timeout_s: 0),
            Admission=lambda *_: self.admission,
            CallReplies=lambda _: self.replies,
        )

    def _end_threads(self) -> None:
        for _ in range(self.threads):
            self.admission.calls.put(None)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(module, "_native", engine.native())
    monkeypatch.setattr("awoke.rpc.topics.partitions_of", lambda settings, names: engine.partitions)
    return engine


class Case:
    """A responder that runs, with one method."""

    def __init__(self, engine: Engine, function: Callable[..., Any], host: FakeHost | None = None, **options: Any):
        self.engine, self.rpc, self.events = engine, Rpc("shop"), awoke.Events()
        self.rpc.options(**{"threads": 1, **options})
        self.rpc.method(function)
        self.name = function.__name__
        self.host = host or FakeHost()
        self.responder = Responder(cast(Any, self.host), self.rpc, self.events, cast(Any, None))
        engine.threads = self.rpc.settings.threads + 1

    def __enter__(self) -> Case:
        self.responder.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.close() == []

    def close(self, within_s: float = WITHIN_S) -> list[threading.Thread]:
        return self.responder.close(time.monotonic() + within_s)

    def call(self, body: bytes = b"{}") -> FakeCall:
        return FakeCall(self.rpc.methods[self.name], body)

    def give(self, *calls: Any) -> None:
        """Gives calls to the threads."""
        for call in calls:
            self.engine.admission.calls.put(call)

    def execute(self, call: FakeCall) -> FakeCall:
        """Gives a call to the threads, and waits until it is over."""
        before = len(self.engine.over.items)
        self.give(call)
        self.engine.over.wait_for(before + 1)
        return call

    def bodies(self, call: FakeCall) -> list[bytes]:
        return [body for each, _, body, _ in self.engine.replies.sent if each is call]

    def problem(self, call: FakeCall) -> Any:
        return self.engine.replies.problem(call)


def double(number: int) -> int:
    return 2 * number


async def adouble(number: int) -> str:
    return f"{2 * number} on {threading.current_thread().name}"


def test_a_method_gets_its_arguments_and_its_caller_the_result(engine: Engine) -> None:
    with Case(engine, double) as case:
        call = case.execute(case.call(b'{"number":21}'))
        assert case.bodies(call) == [b"42"]
        assert call.steps == ["start", "stop"]
    assert engine.admission.released == 1


def test_an_async_method_runs_on_the_event_loop(engine: Engine) -> None:
    with Case(engine, adouble) as case:
        assert [thread.name for thread in case.responder.threads()] == ["awoke-rpc-loop"], "it receives calls, too"
        assert case.bodies(case.execute(case.call(b"[21]"))) == [b'"42 on awoke-rpc-loop"']


def test_beside_a_plain_method_threads_receive_the_calls(engine: Engine) -> None:
    case = Case(engine, adouble)
    case.rpc.method(double)
    engine.threads = 2
    with case:
        names = {thread.name for thread in case.responder.threads()}
        assert names == {"awoke-rpc-loop", "awoke-rpc-0", "awoke-rpc-1"}
        assert case.bodies(case.execute(case.call(b"[21]"))) == [b'"42 on awoke-rpc-loop"']


def test_plain_methods_need_no_event_loop(engine: Engine) -> None:
    with Case(engine, double, threads=3) as case:
        assert [thread.name for thread in case.responder.threads()] == [f"awoke-rpc-{number}" for number in range(4)]


@pytest.mark.parametrize("function", [double, adouble])
def test_wrong_arguments_are_told_to_the_caller(engine: Engine, function: Callable[..., Any]) -> None:
    with Case(engine, function) as case:
        assert case.problem(case.execute(case.call(b'{"number":"x"}'))).code == "invalid_argument"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_method_that_raises_ends_its_call_only(engine: Engine, is_async: bool) -> None:
    def divide(number: int) -> float:
        return 1 / number

    async def adivide(number: int) -> float:
        return 1 / number

    with Case(engine, adivide if is_async else divide) as case:
        assert case.problem(case.execute(case.call(b"[0]"))).code == "internal"
        assert case.bodies(case.execute(case.call(b"[2]"))) == [b"0.5"]


@pytest.mark.parametrize("function", [double, adouble])
def test_the_place_of_a_call_goes_to_the_next_in_the_queue(engine: Engine, function: Callable[..., Any]) -> None:
    with Case(engine, function) as case:
        calls = [case.call(b"[%d]" % number) for number in range(3)]
        engine.admission.following += calls[1:]
        case.give(calls[0])
        engine.over.wait_for(3)
        assert [len(case.bodies(call)) for call in calls] == [1, 1, 1]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_method_finds_its_call(engine: Engine, is_async: bool) -> None:
    def who() -> str:
        return rpc.current_call().caller

    async def awho() -> str:
        return rpc.current_call().caller

    with Case(engine, awho if is_async else who) as case:
        assert case.bodies(case.execute(case.call())) == [b'"web"']


@pytest.mark.parametrize("function", [double, adouble])
def test_when_a_method_has_ended_no_call_is_being_executed(engine: Engine, function: Callable[..., Any]) -> None:
    executing: list[Any] = []

    def on_end() -> None:
        executing.append(current.get())
        engine.over.add(None)

    with Case(engine, function) as case:
        engine.replies.on_end = on_end
        case.execute(case.call(b"[1]"))
    assert executing == [None]


def test_a_call_runs_within_a_span_of_its_message(engine: Engine) -> None:
    spans: list[Any] = []

    @contextlib.contextmanager
    def span(message: Any, handler: str) -> Iterator[None]:
        spans.append((message, handler))
        yield

    with Case(engine, double, FakeHost(tracer=SimpleNamespace(message=span))) as case:
        case.execute(case.call(b"[1]"))
    assert spans == [(None, "double")]


def test_a_call_that_is_rejected_is_not_executed(engine: Engine) -> None:
    with Case(engine, double) as case:
        call = case.call(b"[1]")
        call.not_executed = ("rejected", "queue_full")
        problem = case.problem(case.execute(call))
        assert (problem.code, problem.is_rejected, call.steps) == ("resource_exhausted", True, [])


@pytest.mark.parametrize(
    ("reason", "ending"), [("fenced", ("given back", 0.0)), ("expired", ("settled", pytest.approx(0.2)))]
)
def test_a_call_whose_turn_comes_too_late_is_not_executed(engine: Engine, reason: str, ending: Any) -> None:
    engine.replies.reason = reason
    with Case(engine, double) as case:
        call = case.execute(case.call(b"[1]"))
        assert call.steps == []
        assert engine.replies.endings(call) == [ending]
        assert len(case.bodies(call)) == (reason == "expired")


def test_a_call_with_an_unknown_reply_partition_is_read_again_after_a_lookup(engine: Engine) -> None:
    with Case(engine, double) as case:
        engine.partitions = {"shop.rpc.replies": 2}
        case.responder._reply_topics._began_s = float("-inf")  # The lookup of the start was long ago.
        call = case.call(b"[1]")
        call.not_executed = ("invalid", "reply_partition")
        case.execute(call)
        assert engine.replies.endings(call) == [("given back", LOOK_AGAIN_S)]
    assert engine.admission.topics == [{"shop.rpc.replies": 1}, {"shop.rpc.replies": 2}]


def test_a_partition_that_stays_unknown_is_refused(engine: Engine) -> None:
    with Case(engine, double) as case:
        call = case.call(b"[1]")
        call.not_executed = ("invalid", "reply_partition")  # The lookup of the start was just now.
        case.execute(call)
        assert engine.replies.endings(call) == [("settled", 0.0)]


def test_a_reason_without_an_answer_gives_the_call_back(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with Case(engine, double) as case:
        call = case.call(b"[1]")
        call.not_executed = ("rejected", "no such reason")
        case.execute(call)
        assert engine.replies.endings(call) == [("given back", 1.0)]
    assert "could not be answered (rejected, no such reason)" in caplog.text


@pytest.mark.parametrize(("function", "body"), [(double, b"2"), (adouble, b'"2 on awoke-rpc-loop"')])
def test_a_call_that_can_not_be_received_ends_no_thread(
    engine: Engine, caplog: pytest.LogCaptureFixture, function: Callable[..., Any], body: bytes
) -> None:
    with Case(engine, function) as case:
        case.give(*[RuntimeError("an error of awoke's own")] * 40)
        assert case.bodies(case.execute(case.call(b"[1]"))) == [body]
    assert "could not be received" in caplog.text


@pytest.mark.parametrize("reason", ["unknown_method", "expired"])
def test_a_loop_answers_a_call_that_is_not_executed(engine: Engine, reason: str) -> None:
    with Case(engine, adouble) as case:
        call = case.call(b"[1]")
        call.not_executed = ("rejected", reason)
        assert case.problem(case.execute(call)) is not None
        assert call.steps == []


def test_at_most_once_commits_before_the_method_is_called(engine: Engine) -> None:
    member, commits = FakeMember(), list[int]()

    def look() -> None:
        commits.append(member.commits)

    with Case(engine, look, FakeHost(member=member), mode="at_most_once") as case:
        call = case.execute(case.call())
    assert commits == [1]
    assert engine.replies.jobs[id(call)].said == ["complete"]


@pytest.mark.parametrize("function", [double, adouble])
def test_at_most_once_does_not_execute_what_it_could_not_commit(engine: Engine, function: Callable[..., Any]) -> None:
    with Case(engine, function, FakeHost(member=FakeMember(DENIED)), mode="at_most_once") as case:
        call = case.execute(case.call(b"[1]"))
        problem = case.problem(call)
        assert (problem.code, call.steps) == ("unavailable", [])
        assert "was not executed: its offset could not be committed: denied" in problem.message


def test_at_most_once_does_not_execute_a_call_whose_offset_was_dropped_with_its_partition(engine: Engine) -> None:
    with Case(engine, double, FakeHost(member=FakeMember()), mode="at_most_once") as case:
        call = case.call(b"[1]")
        job = engine.replies.take_job(call)
        vars(job)["assignment"] = lambda: SimpleNamespace(is_current=False)
        problem = case.problem(case.execute(call))
        assert (problem.code, call.steps) == ("unavailable", [])
        assert "was not executed: its partition was taken away" in problem.message


def test_exactly_once_commits_what_a_method_sends_with_its_reply(engine: Engine) -> None:
    transactions = FakeTransactions()

    def order(number: int) -> int:
        sender = rpc.current_call().transaction_entry
        assert sender is not None
        sender.produce("out", number)
        return number

    with Case(engine, order, FakeHost(transactions=transactions), mode="exactly_once") as case:
        case.execute(case.call(b"[7]"))
        (made,) = transactions.made
        assert [(topic, value) for topic, value, _ in made.sent] == [("out", 7), ("shop.rpc.replies", b"7")]


async def hang() -> None:
    await ahang()


def test_an_async_method_ends_at_the_deadline_of_its_call(engine: Engine) -> None:
    with Case(engine, hang) as case:
        call = case.call()
        call.remaining_s = 0.0
        problem = case.problem(case.execute(call))
        assert (problem.code, problem.message) == ("deadline_exceeded", "hang took too long")


def test_a_time_out_of_the_methods_own_is_an_error_of_the_method(engine: Engine) -> None:
    async def wait() -> None:
        raise TimeoutError("a database")

    with Case(engine, wait) as case:
        assert case.problem(case.execute(case.call())).code == "internal"


def test_a_call_that_is_cancelled_cancels_its_task(engine: Engine) -> None:
    began = threading.Event()

    async def hold() -> None:
        began.set()
        await ahang()

    with Case(engine, hold) as case:
        call = case.call()
        case.give(call)
        assert began.wait(WITHIN_S)
        call.cancel()
        engine.over.wait_for(1)
        assert case.problem(call).code == "cancelled"


def test_closing_cancels_tasks_and_leaves_their_duplicates_to_others(engine: Engine) -> None:
    began, duplicate = threading.Event(), FakeCall()

    async def hold() -> None:
        began.set()
        await ahang()

    with Case(engine, hold) as case:
        call = case.call()
        case.give(call)
        assert began.wait(WITHIN_S)
        engine.admission.duplicates.append(duplicate)
        following = case.call()
        engine.admission.following.append(following)
    assert (case.problem(call).code, case.problem(call).message) == ("unavailable", "the responder has stopped")
    assert engine.replies.endings(duplicate) == [("given back", 0.0)]
    assert following.on_cancelled == [], "no further call is begun"


def test_a_method_that_ends_the_process_ends_the_app(engine: Engine) -> None:
    def leave() -> None:
        raise SystemExit(3)

    with Case(engine, leave) as case:
        assert case.problem(case.execute(case.call())).code == "internal"
        assert [type(error) for error in case.host.ended] == [SystemExit]


def count(to: int) -> Iterator[int]:
    yield from range(to)


async def acount(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number


STREAMS = pytest.mark.parametrize("function", [count, acount])


@STREAMS
def test_results_of_a_stream_are_sent_one_by_one_up_to_its_end(engine: Engine, function: Callable[..., Any]) -> None:
    with Case(engine, function) as case:
        call = case.execute(case.call(b"[3]"))
        assert engine.replies.kinds(call) == ["item", "item", "item", "end"]
        assert case.bodies(call) == [b"0", b"1", b"2", b""]


@STREAMS
def test_a_stream_waits_for_credit_for_each_result(engine: Engine, function: Callable[..., Any]) -> None:
    with Case(engine, function) as case:
        call = case.call(b"[5]")
        call.credit = FakeCredit(2)
        case.execute(call)
        assert case.bodies(call) == [b"0", b"1", b"2", b"3", b"4", b""]
        assert call.credit.waits > 0


@STREAMS
def test_a_stream_without_a_reply_address_needs_no_credit(engine: Engine, function: Callable[..., Any]) -> None:
    with Case(engine, function) as case:
        call = case.call(b"[2]")
        call.reply_to, call.credit = None, cast(Any, None)
        case.execute(call)
        assert engine.replies.kinds(call) == ["item", "item", "end"]


@STREAMS
def test_a_stream_is_not_executed_for_a_call_that_wants_one_result(
    engine: Engine, function: Callable[..., Any]
) -> None:
    with Case(engine, function) as case:
        for credit in (None, SimpleNamespace(is_named=False)):
            call = case.call(b"[2]")
            call.credit = cast(Any, credit)
            problem = case.problem(case.execute(call))
            assert problem.code == "invalid_argument"
            assert "use stream" in problem.message


@pytest.mark.parametrize(("is_cancelled", "code"), [(True, "cancelled"), (False, "deadline_exceeded")])
def test_a_stream_that_is_cut_off_is_closed_and_does_not_look_complete(
    engine: Engine, is_cancelled: bool, code: str
) -> None:
    closed = threading.Event()

    def forever() -> Iterator[int]:
        try:
            yield 1
            call.is_cancelled, call.was_cancelled = True, is_cancelled
            yield 2
        finally:
            closed.set()

    with Case(engine, forever) as case:
        call = case.call()
        case.execute(call)
        assert closed.wait(WITHIN_S)
        assert engine.replies.kinds(call) == ["item", "error"]
        assert engine.replies.sent[-1][3] == code


def test_calls_are_counted(engine: Engine) -> None:
    with Case(engine, double) as case:
        assert case.responder.counts() == {"running": 1, "waiting": 2, "expired": 3}


def test_a_method_that_hangs_is_named_at_the_deadline(engine: Engine) -> None:
    began, release = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        release.wait(WITHIN_S)

    case = Case(engine, hold)
    case.responder.start()
    case.give(case.call())
    assert began.wait(WITHIN_S)
    late = case.close(0.0)
    assert late
    assert {thread.name for thread in late} <= {"awoke-rpc-0", "awoke-rpc-1"}
    release.set()
    for thread in case.responder.threads():
        thread.join(WITHIN_S)


def test_a_responder_that_was_not_started_closes(engine: Engine) -> None:
    assert Case(engine, adouble).close() == []
