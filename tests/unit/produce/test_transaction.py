"""Transactions: what leaves together, what an exception leaves out, and whose turn it is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest

import awoke
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.message import Outgoing, Record
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.payloads.topic_formats import TopicFormats
from awoke.produce.transaction import NEVER_S, ConsumerTransaction, Transaction


class FakeOpen:
    """A transaction of the engine's."""

    def __init__(self, said: list[Any]) -> None:
        self.said = said

    def produce(self, topic: str, record: Record, timeout_s: float | None) -> str:
        options = {**record.options, "timeout_s": timeout_s}
        self.said.append((topic, record.value, {name: each for name, each in options.items() if each is not None}))
        return "handle"

    def commit(self, timeout_s: float | None) -> None:
        self.said.append(("commit", timeout_s))

    def abort(self) -> None:
        self.said.append("abort")


class FakeProducer:
    """The engine's producer; `error` is what its next begin raises."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self.error: BaseException | None = None

    def begin(self, timeout_s: float | None) -> FakeOpen:
        if self.error is not None:
            raise self.error
        self.said.append(("begin", timeout_s))
        return FakeOpen(self.said)

    def transaction(self, *middleware: Any, timeout_s: float | None = None) -> Transaction:
        producer: Any = self
        return Transaction(producer, middleware, TopicFormats((), BY_TYPE, NO_SCHEMAS), self.turns, timeout_s)


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


def test_a_block_is_one_transaction(producer: FakeProducer) -> None:
    with producer.transaction(timeout_s=3.0) as transaction:
        handle: Any = transaction.produce("orders", b"1", key="k", timeout_s=1.0)
        assert handle == "handle"
    assert producer.said == [("begin", 3.0), ("orders", b"1", {"key": "k", "timeout_s": 1.0}), ("commit", 3.0)]


def test_a_block_that_raises_is_aborted(producer: FakeProducer) -> None:
    with pytest.raises(ZeroDivisionError), producer.transaction() as transaction:
        transaction.produce("orders", b"1")
        raise ZeroDivisionError
    assert producer.said[-1] == "abort"
    assert ("commit", None) not in producer.said


def test_messages_of_all_kinds_are_sent_in_order(producer: FakeProducer) -> None:
    with producer.transaction() as transaction:
        assert len(transaction.produce_many("orders", [b"1", (b"2", "k"), Record(b"3", partition=2)])) == 3
    assert producer.said[1:-1] == [
        ("orders", b"1", {}),
        ("orders", b"2", {"key": "k"}),
        ("orders", b"3", {"partition": 2}),
    ]


def test_a_message_passes_the_middleware_of_the_producer(producer: FakeProducer) -> None:
    def sign(message: Outgoing) -> Outgoing:
        return message._replace(topic="signed", value=message.value + b"!").with_header("by", "me")

    with producer.transaction(sign) as transaction:
        transaction.produce("orders", b"1", key="k", timeout_s=1.0)
    assert producer.said[1] == ("signed", b"1!", {"key": "k", "headers": [("by", "me")], "timeout_s": 1.0})


def test_nothing_is_sent_before_the_block_or_after_it(producer: FakeProducer) -> None:
    transaction = producer.transaction()
    with pytest.raises(awoke.ClosedError, match="produce within its with block"):
        transaction.produce("orders", b"1")
    with transaction:
        pass
    with pytest.raises(awoke.ClosedError, match="produce within its with block"):
        transaction.produce("orders", b"1")
    assert producer.said == [("begin", None), ("commit", None)]


async def test_an_awaited_block_commits_and_one_that_raises_is_aborted(producer: FakeProducer) -> None:
    async with producer.transaction(timeout_s=3.0) as transaction:
        transaction.produce("orders", b"1")
    with pytest.raises(ZeroDivisionError):
        async with producer.transaction():
            raise ZeroDivisionError
    assert producer.said == [("begin", 3.0), ("orders", b"1", {}), ("commit", 3.0), ("begin", None), "abort"]


async def test_tasks_of_a_loop_take_turns(producer: FakeProducer) -> None:
    go = asyncio.Event()

    async def send(name: str) -> None:
        async with producer.transaction() as transaction:
            transaction.produce("orders", name)
            await go.wait()

    tasks = [asyncio.ensure_future(send(name)) for name in ("first", "second")]
    go.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 10)
    begin, commit = ("begin", None), ("commit", None)
    assert producer.said == [begin, ("orders", "first", {}), commit, begin, ("orders", "second", {}), commit]


async def test_a_begin_that_fails_gives_the_turn_on(producer: FakeProducer) -> None:
    producer.error = awoke.ClosedError("closed")
    with pytest.raises(awoke.ClosedError):
        async with producer.transaction():
            pass
    producer.error = None
    async with asyncio.timeout(10), producer.transaction():
        pass
    assert producer.said == [("begin", None), ("commit", None)]


class FakeCommit:
    """A commit of the engine's; `error` is what it ends with."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.waited: list[float] = []
        self.error = error

    def wait(self, timeout_s: float) -> None:
        self.waited.append(timeout_s)
        if self.error is not None:
            raise self.error

    def __await__(self) -> Any:
        if self.error is not None:
            raise self.error
        self.waited.append(0.0)
        return iter(())


class FakeEntry:
    """Messages of a job inside a transaction that others share."""

    def __init__(self, commit: FakeCommit) -> None:
        self.sent, self.submitted, self.pending = list[Any](), list[Any](), commit

    def produce(self, topic: str, value: Any, **options: Any) -> None:
        self.sent.append((topic, value, options))

    def submit(self, job: Any, offset: int | None) -> FakeCommit:
        self.submitted.append((job, offset))
        return self.pending


JOB: Any = "the job"
MESSAGE: Any = SimpleNamespace(offset=7)


def of_job(commit: FakeCommit | None = None) -> tuple[ConsumerTransaction, Any]:
    entry: Any = FakeEntry(commit or FakeCommit())
    return ConsumerTransaction(entry, JOB), entry


def test_the_messages_of_a_consumer_leave_with_its_progress_at_the_end_of_the_block() -> None:
    transaction, entry = of_job()
    with transaction:
        transaction.produce("totals", 1, key="k")
        assert entry.submitted == []
    assert entry.sent == [("totals", 1, {"key": "k"})]
    assert entry.submitted == [(JOB, None)]
    assert entry.pending.waited == [NEVER_S]


def test_a_mark_bounds_the_progress() -> None:
    transaction, entry = of_job()
    with transaction:
        transaction.mark(MESSAGE)
    assert entry.submitted == [(JOB, 7)]


def test_nothing_of_a_block_that_raises_is_submitted() -> None:
    transaction, entry = of_job()
    with pytest.raises(ZeroDivisionError), transaction:
        raise ZeroDivisionError
    assert entry.submitted == []


def test_a_commit_that_fails_is_raised_at_the_end_of_the_block() -> None:
    transaction, _ = of_job(FakeCommit(awoke.FencedError("taken away")))
    with pytest.raises(awoke.FencedError), transaction:
        pass


async def test_an_awaited_block_of_a_consumer_awaits_the_commit() -> None:
    transaction, entry = of_job()
    async with transaction:
        transaction.mark(MESSAGE)
    assert (entry.submitted, entry.pending.waited) == ([(JOB, 7)], [0.0])
    failing, _ = of_job(FakeCommit(awoke.FencedError("taken away")))
    with pytest.raises(awoke.FencedError):
        async with failing:
            pass


async def test_nothing_of_an_awaited_block_that_raises_is_submitted() -> None:
    transaction, entry = of_job()
    with pytest.raises(ZeroDivisionError):
        async with transaction:
            raise ZeroDivisionError
    assert entry.submitted == []


def test_a_block_is_used_once() -> None:
    transaction, entry = of_job()
    with transaction:
        pass
    with pytest.raises(awoke.ClosedError):
        transaction.produce("totals", 1)
    with pytest.raises(awoke.ClosedError):
        transaction.mark(MESSAGE)
    with pytest.raises(awoke.ClosedError), transaction:
        pass
    assert entry.submitted == [(JOB, None)]
