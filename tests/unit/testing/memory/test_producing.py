"""A producer in memory, and its transactions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import awoke
from awoke.payloads.message import Record
from awoke.testing.memory.producing import Answered, MemoryProducer, MemoryTransactions, Sent


@pytest.fixture
def sent() -> list[Sent]:
    return []


@pytest.fixture
def producer(sent: list[Sent]) -> MemoryProducer:
    return MemoryProducer(awoke.App("shop"), sent.append)


def test_a_message_is_kept_and_delivered(producer: MemoryProducer, sent: list[Sent]) -> None:
    handle = producer.produce("a", {"x": 1}, key="k", headers={"h": "y"}, partition=2, timestamp_ms=5, timeout_s=1)
    assert sent == [Sent("a", {"x": 1}, b"k", [("h", b"y")], 2, 5, b'{"x":1}')]
    assert handle.done()
    assert tuple(handle.wait()) == ("a", 2, 0, 5)
    assert producer.produce("a", None).result().offset == 1
    assert producer.produce("b", b"").result() == ("b", 0, 0, None)


def test_many_messages_are_kept_in_order(producer: MemoryProducer, sent: list[Sent]) -> None:
    handles = producer.produce_many("a", [b"x", ("y", "k"), Record("z", key=b"l")])
    assert [(each.data, each.key) for each in sent] == [(b"x", None), (b"y", b"k"), (b"z", b"l")]
    assert awoke.wait_all(handles)[2].offset == 2


def test_a_handle_is_awaited(producer: MemoryProducer) -> None:
    async def within() -> Any:
        return await producer.produce("a", b"x")

    assert asyncio.run(within()).offset == 0


def test_what_cant_be_sent_is_refused(producer: MemoryProducer, sent: list[Sent]) -> None:
    with pytest.raises(awoke.EncodeError):
        producer.produce("a", object())
    with pytest.raises(TypeError, match="a key is bytes, text or None, not int"):
        producer.produce("a", b"", key=5)
    with pytest.raises(awoke.ConfigError, match="needs brokers"):
        producer.transaction()
    assert sent == []


def test_an_entry_sends_nothing_before_it_is_submitted(producer: MemoryProducer, sent: list[Sent]) -> None:
    entry = MemoryTransactions(producer).entry()
    entry.produce("a", b"x")
    with pytest.raises(awoke.EncodeError):
        entry.produce_all([("a", Record(b"y")), ("a", Record(object()))])
    entry.produce_all([("a", Record(b"z"))])
    assert sent == []

    class Job:
        def done(self, offset: int) -> None:
            self.offset = offset

    job: Any = Job()
    assert entry.submit(job, 7).result() is None
    assert (job.offset, [each.data for each in sent]) == (7, [b"x", b"z"])


def test_an_answer_is_there_for_each_way_of_waiting() -> None:
    async def within() -> int:
        return await answer

    answer = Answered(3)
    assert (answer.wait(), answer.result(), answer.done(), asyncio.run(within())) == (3, 3, True, 3)
