"""The ends of calls, with a reply or without; and of their jobs, with the reply or the transaction that holds it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke import rpc
from awoke.errors import (
    ClosedError,
    FencedError,
    KafkaError,
    MessageTooLarge,
    ProducerFenced,
    QueueFull,
)
from awoke.rpc.context import ForAnother
from awoke.rpc.protocol import read_problem
from awoke.rpc.responder import endings, reply_transactions
from awoke.rpc.responder.endings import Endings, PartitionWithdrawn
from awoke.rpc.responder.methods import Rpc
from awoke.rpc.responder.reply_transactions import RETRY_S
from awoke.rpc.responder.schema_loads import NotExecuted
from tests.unit.rpc.responder.fakes import (
    FakeAdmission,
    FakeCall,
    FakeHost,
    FakeMetrics,
    FakeReplies,
    FakeTransactions,
)
from tests.unit.runtime.fakes import FakeHandle

TOO_LARGE = MessageTooLarge("larger than 1000 bytes", "shop.rpc.replies", 2_000)
DENIED = KafkaError("denied", 29, "TOPIC_AUTHORIZATION_FAILED")
FULL = QueueFull("no room")
FENCED = FencedError("taken away", "shop.rpc.calls", 2)
NO_LEADER = KafkaError("no leader", 5, "LEADER_NOT_AVAILABLE", is_retriable=True)
REPLICA_FENCED = ProducerFenced("fenced", 90, "PRODUCER_FENCED")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has callbacks called at once: every handle here has its result."""

    def call_back(handle: Any, callback: Callable[[Any], object]) -> None:
        callback(handle)

    monkeypatch.setattr(endings, "call_back", call_back)
    monkeypatch.setattr(reply_transactions, "call_back", call_back)


class Case:
    """The ends of a responder's calls, one call, and a duplicate that waits for its answer."""

    def __init__(self, *errors: BaseException | None, host: FakeHost | None = None, **options: Any) -> None:
        self.rpc, self.events, self.heard = Rpc("shop"), awoke.Events(), list[Any]()
        self.rpc.options(**options)
        self.events.subscribe("*", self.heard.append)
        self.host, self.replies, self.admission = host or FakeHost(), FakeReplies(*errors), FakeAdmission()
        self.call, self.duplicate = FakeCall(), FakeCall()
        self.admission.duplicates.append(self.duplicate)
        parts = cast(Any, (self.host, self.rpc, self.events, self.replies, self.admission))
        self.ends = Endings(*parts)

    def reply(self) -> None:
        self.ends.reply(cast(Any, self.call), "reply", b"7")

    def fail(self, error: BaseException) -> None:
        self.ends.fail(cast(Any, self.call), error)

    @property
    def problem(self) -> Any:
        return self.replies.problem(self.call)

    @property
    def endings(self) -> list[tuple[str, float]]:
        return self.replies.endings(self.call)

    @property
    def endings_of_duplicate(self) -> list[tuple[str, float]]:
        return self.replies.endings(self.duplicate)


SETTLED = [("settled", RETRY_S)]
REPEATED_AT_ONCE = [("given back", 0.0)]
REPEATED_LATER = [("given back", RETRY_S)]


def test_a_result_is_sent_to_the_call_and_its_duplicates() -> None:
    case = Case()
    case.reply()
    assert [reply[1:] for reply in case.replies.sent] == [("reply", b"7", None)] * 2
    assert case.endings == case.endings_of_duplicate == SETTLED
    assert case.admission.final == [("reply", b"7")], "it is kept for later duplicates"


def test_an_error_that_a_method_declares_is_sent_as_it_is_and_is_no_event() -> None:
    case = Case()
    case.fail(rpc.NotFound("gone", details={"sku": "A1"}))
    assert (case.problem.code, case.problem.message, case.problem.details) == ("not_found", "gone", {"sku": "A1"})
    assert case.replies.problem(case.duplicate).code == "not_found"
    assert case.heard == []
    assert case.admission.final[0][0] is None, "an error is not kept for later duplicates"


def test_an_unexpected_error_is_an_event_and_tells_no_secrets() -> None:
    case, error = Case(), ValueError("the password is hunter2")
    case.fail(error)
    assert case.problem.code == "internal"
    assert "hunter2" not in case.problem.message
    assert case.problem.traceback is None
    assert [(each.name, each.method, each.error) for each in case.heard] == [("rpc.failed", "quote", error)]


def test_a_traceback_is_sent_where_the_service_says_so() -> None:
    case = Case(tracebacks=True)
    case.fail(ValueError("because"))
    assert "because" in case.problem.message
    assert "ValueError: because" in case.problem.traceback


def test_details_that_are_no_json_are_left_out() -> None:
    case = Case()
    case.fail(rpc.NotFound("gone", details={"sku": object()}))
    assert (case.problem.code, case.problem.message, case.problem.details) == ("not_found", "gone", None)


@pytest.mark.parametrize(
    ("error", "is_cancelled", "code"),
    [(asyncio.CancelledError(), False, "unavailable"), (rpc.DeadlineExceeded("too long"), True, "deadline_exceeded")],
    ids=["the responder stops", "its time is over"],
)
def test_duplicates_are_executed_when_the_error_is_the_calls_own(
    error: BaseException, is_cancelled: bool, code: str
) -> None:
    case = Case()
    case.call.target.is_async, case.call.is_cancelled = True, is_cancelled
    case.ends.is_closing = not is_cancelled
    case.fail(error)
    assert case.problem.code == code
    assert case.replies.kinds(case.duplicate) == []
    assert case.endings_of_duplicate == REPEATED_AT_ONCE
    assert case.host.ended == []


def test_a_method_that_was_not_executed_is_a_rejection_and_its_duplicates_are_executed() -> None:
    case = Case()
    case.fail(NotExecuted(rpc.Unavailable("no registry")))
    assert (case.problem.code, case.problem.is_rejected) == ("unavailable", True)
    assert case.endings_of_duplicate == REPEATED_AT_ONCE


@pytest.mark.parametrize(
    ("error", "ending"), [(ForAnother(), ("settled", 0.0)), (PartitionWithdrawn(), ("given back", 0.0))]
)
def test_a_call_that_another_responder_answers_gets_no_reply_here(error: Exception, ending: tuple[str, float]) -> None:
    case = Case()
    case.fail(error)
    assert case.replies.sent == []
    assert case.endings == case.endings_of_duplicate == [ending]


def test_a_cancelled_call_is_told_so_and_its_duplicates_are_executed() -> None:
    case = Case()
    case.call.cancel()
    case.reply()
    assert case.problem.code == "cancelled"
    assert case.endings == SETTLED
    assert case.endings_of_duplicate == REPEATED_AT_ONCE
    assert case.admission.final == [(None, case.replies.sent[0][2])]


def test_an_error_that_ends_the_process_is_told_to_caller_and_host() -> None:
    case, error = Case(), SystemExit(3)
    case.fail(error)
    assert (case.problem.code, case.problem.message) == ("internal", "the responder ends")
    assert case.host.ended == [error]


def test_a_reply_that_is_too_large_is_an_error_for_the_caller() -> None:
    case = Case(TOO_LARGE)
    case.reply()
    assert (case.problem.code, case.problem.is_retryable) == ("resource_exhausted", False)
    assert "too large" in case.problem.message
    assert case.endings == SETTLED


def test_an_error_that_is_too_large_keeps_its_code() -> None:
    case = Case(TOO_LARGE)
    case.fail(rpc.NotFound("x" * 2_000))
    assert case.problem.code == "not_found"
    assert "too large to be sent" in case.problem.message


def test_a_result_of_a_stream_that_is_too_large_is_an_error_of_the_method() -> None:
    case = Case(TOO_LARGE)
    with pytest.raises(rpc.ResourceExhausted, match="too large"):
        case.ends.send(cast(Any, case.call), "item", b"x")
    assert case.replies.sent == []


@pytest.mark.parametrize(("error", "code"), [(DENIED, 29), (TOO_LARGE, 10)])
def test_a_reply_that_is_refused_for_good_is_an_event_and_the_call_is_over(error: Exception, code: int) -> None:
    case = Case(error, error)
    case.admission.duplicates.clear()
    case.reply()
    (event,) = [each for each in case.heard if each.name == "rpc.reply_refused"]
    assert (event.topic, event.partition, event.offset, event.code) == ("shop.rpc.calls", 2, 7, code)
    assert case.endings == SETTLED


def test_a_call_whose_reply_found_no_room_is_executed_again() -> None:
    case = Case(FULL)
    case.reply()
    assert case.endings == REPEATED_LATER
    assert case.replies.kinds(case.duplicate) == ["reply"], "its own reply could be sent"


def test_an_error_of_awokes_own_executes_the_call_again(caplog: pytest.LogCaptureFixture) -> None:
    case = Case(RuntimeError("a middleware"))
    case.fail(rpc.NotFound("gone"))
    assert case.endings == case.endings_of_duplicate == REPEATED_LATER
    assert "could not be answered" in caplog.text


def test_a_duplicate_that_can_not_be_answered_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    case, other = Case(None, RuntimeError("a middleware")), FakeCall()
    case.admission.duplicates.append(other)
    case.reply()
    assert case.endings == SETTLED
    assert case.endings_of_duplicate == REPEATED_LATER
    assert case.replies.kinds(other) == ["reply"]


def test_a_call_is_given_back_with_its_duplicates() -> None:
    case = Case()
    case.ends.give_back(cast(Any, case.call), 1.5)
    assert case.endings == case.endings_of_duplicate == [("given back", 1.5)]


def test_calls_are_counted_by_method_and_outcome_with_their_times() -> None:
    case = Case(host=FakeHost(metrics=FakeMetrics()))
    case.call.last = FakeHandle()
    case.admission.duplicates.clear()
    case.fail(rpc.NotFound("gone"))
    metrics: Any = case.host.metrics
    assert metrics.ended == [("quote", "not_found", 0.25, 0.5)]
    ((method, reply_s),) = metrics.acknowledged
    assert method == "quote"
    assert reply_s >= 0


def test_calls_of_unknown_methods_are_counted_together() -> None:
    case = Case(host=FakeHost(metrics=FakeMetrics()))
    vars(case.call)["target"] = None
    case.ends.reject(cast(Any, case.call), "unknown_method")
    assert cast(Any, case.host.metrics).ended[0][:2] == ("", "unimplemented")


# In transactions.


class Exactly(Case):
    """As `Case`, where replies and offsets are one transaction, with these outcomes."""

    def __init__(self, *outcomes: Any) -> None:
        self.transactions = FakeTransactions(*outcomes)
        super().__init__(host=FakeHost(transactions=self.transactions), mode="exactly_once")
        self.call.transaction_entry = self.transactions.entry()

    @property
    def job(self) -> Any:
        return self.replies.jobs[id(self.call)]

    def replied(self, place: int = 0) -> list[Any]:
        """Returns the replies in a transaction."""
        return self.transactions.made[place].sent


def test_a_reply_is_committed_with_the_offset_of_its_call() -> None:
    case = Exactly()
    case.reply()
    (mine, other) = case.transactions.made
    headers = {"rpc-kind": "reply", "rpc-code": None}
    assert mine.sent == [("shop.rpc.replies", b"7", {"partition": 1, "headers": headers})]
    assert mine.submitted == [(case.job, None)]
    assert case.job.said == [("leave_slot", True), "complete"]
    assert case.endings == SETTLED
    assert other.sent == mine.sent, "the duplicate's"
    assert case.replies.sent == [], "nothing goes beside the transactions"


def test_a_call_without_a_reply_address_commits_its_offset_only() -> None:
    case = Exactly()
    case.call.reply_to = None
    case.reply()
    assert case.replied() == []
    assert len(case.transactions.made[0].submitted) == 1


def test_messages_of_a_method_that_failed_are_not_sent() -> None:
    case = Exactly()
    case.call.transaction_entry.produce("out", b"1")
    case.fail(rpc.Aborted("not this one"))
    assert case.transactions.made[0].submitted == []
    ((topic, body, _),) = case.replied(1)
    assert (topic, read_problem(body).code) == ("shop.rpc.replies", "aborted")


@pytest.mark.parametrize("error", [ClosedError("closed"), FENCED])
def test_a_call_of_a_lost_partition_is_left_to_its_next_owner(error: Exception) -> None:
    for outcome in (error, FakeHandle(error)):
        case = Exactly(outcome)
        case.reply()
        assert case.job.said == [("leave_slot", True), "retry"]
        assert case.endings == case.endings_of_duplicate == REPEATED_AT_ONCE
        assert case.admission.final == [(None, b"7")]


def test_a_call_whose_job_has_gone_is_not_submitted() -> None:
    case = Exactly()
    case.replies.is_fenced = True
    case.reply()
    assert case.transactions.made[0].submitted == []
    assert case.endings_of_duplicate == REPEATED_AT_ONCE


def test_a_reply_that_was_not_committed_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    case = Exactly(FakeHandle(NO_LEADER))
    case.reply()
    assert case.endings == REPEATED_LATER
    assert case.endings_of_duplicate == REPEATED_AT_ONCE
    assert "was not committed" in caplog.text


def test_a_producer_that_is_fenced_ends_the_app() -> None:
    case = Exactly(FakeHandle(REPLICA_FENCED))
    case.reply()
    assert case.endings == REPEATED_AT_ONCE
    assert case.host.ended == [REPLICA_FENCED]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TOO_LARGE, "resource_exhausted"),
        (MessageTooLarge("too large", "out", 2_000), "internal"),
        (DENIED, "internal"),
    ],
)
def test_a_transaction_that_is_refused_for_good_is_replaced_by_an_error(error: Exception, code: str) -> None:
    case = Exactly(FakeHandle(error))
    case.admission.duplicates.clear()
    case.reply()
    assert [read_problem(body).code for _, body, _ in case.replied(1)] == [code]
    assert case.job.said == [("leave_slot", True), "complete"]
    assert case.endings == SETTLED


def test_an_error_that_is_refused_too_commits_the_offset_alone_and_is_an_event() -> None:
    case = Exactly(FakeHandle(DENIED), FakeHandle(DENIED))
    case.admission.duplicates.clear()
    case.reply()
    own, error_instead, nothing = case.transactions.made
    assert [len(each.sent) for each in (own, error_instead, nothing)] == [1, 1, 0]
    assert [each.name for each in case.heard] == ["rpc.reply_refused"]
    assert case.endings == SETTLED


def test_an_offset_that_is_refused_alone_is_committed_later() -> None:
    case = Exactly(*[FakeHandle(DENIED)] * 3)
    case.admission.duplicates.clear()
    case.reply()
    assert len(case.transactions.made) == 3
    assert case.endings == REPEATED_LATER


def test_a_partition_that_is_lost_after_the_commit_is_no_error() -> None:
    case = Exactly()

    def complete() -> None:
        raise FENCED

    job = SimpleNamespace(leave_slot=lambda keeps: None, complete=complete)
    case.replies.jobs[id(case.call)] = cast(Any, job)
    case.reply()
    assert case.endings == SETTLED


SOURCE = Path(__file__).resolve().parents[4] / "crates" / "engine" / "src" / "rpc" / "responder" / "request.rs"


def names_of(enum: str) -> set[str]:
    """The names of an enum's variants, as the engine has them."""
    implementation = re.search(rf"^impl {enum} \{{(.*?)^\}}", SOURCE.read_text(), re.MULTILINE | re.DOTALL)
    assert implementation is not None
    return set(re.findall(r'=> "([a-z_]+)"', implementation[1]))


# Without being executed.


def unexecuted(kind: str, reason: str, **host: Any) -> Case:
    """Ends a call that is not executed for this reason."""
    case = Case(host=FakeHost(**host))
    case.call.cached_body = b"1"
    case.ends.end_unexecuted(cast(Any, case.call), kind, reason)
    return case


@pytest.mark.parametrize("reason", sorted(names_of("RejectReason")))
def test_every_reason_of_the_engine_has_an_error_for_the_caller(reason: str) -> None:
    case = unexecuted("rejected", reason)
    assert case.heard == []
    assert case.problem.message
    assert case.problem.is_rejected
    assert (case.problem.retry_after_s is not None) == (case.problem.code == rpc.ResourceExhausted.code)
    assert case.endings_of_duplicate == REPEATED_AT_ONCE, "the reason is the call's own"


@pytest.mark.parametrize("reason", sorted(names_of("InvalidRequest")))
def test_a_record_without_a_reply_is_an_event(reason: str) -> None:
    case = unexecuted("invalid", reason)
    assert (case.endings, case.replies.sent) == ([("settled", 0.0)], [])
    (event,) = case.heard
    assert (event.name, event.reason, event.partition, event.offset) == ("rpc.refused", reason, 2, 7)


def test_a_repeated_call_gets_the_cached_answer() -> None:
    metrics = FakeMetrics()
    case = unexecuted("cached", "reply", metrics=metrics)
    assert [reply[1:] for reply in case.replies.sent] == [("reply", b"1", None)]
    assert (case.heard, metrics.ended[0][1]) == ([], "cached")
