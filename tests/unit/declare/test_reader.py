"""Readers: where they start, when they are at the end, and how a wait of theirs ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke._native import Notifier
from awoke.admin import TopicInfo
from awoke.declare import reader as module
from awoke.observe.events import EventSource
from tests.support.clusters import MockCluster, unique
from tests.support.messages import stored_message

Found = Any
"""A batch, the end of a partition as topic and number, or None for no message within the time."""


class Batch(list[str]):
    """Messages of one partition."""

    def __init__(self, partition: int, *messages: Any) -> None:
        super().__init__(messages)
        self.topic, self.partition = "orders", partition


class FakeNative:
    """Stands for the engine's reader: gives what a test has put into it."""

    def __init__(self, properties: Any, starts: list[Any], decoders: Any, box: Any) -> None:
        self.starts, self.found, self.waits = starts, deque[Found](), list[float | None]()
        self.is_closed = False
        self._notifier = Notifier()
        self.fileno, self.clear = self._notifier.fileno, self._notifier.clear

    def next(self, timeout_s: float | None) -> Found:
        self.waits.append(timeout_s)
        if timeout_s is None and not self.found:
            raise awoke.ClosedError("the reader is closed")
        return self.found.popleft() if self.found else None

    def put(self, *found: Found) -> None:
        self.found.extend(found)
        self._notifier.notify()

    def close(self) -> None:
        self.is_closed = True


class FakeAdmin:
    """Brokers with the topic `orders` of three partitions."""

    def __init__(self, **_: Any) -> None: ...

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, *_: object) -> None: ...

    def find_topic(self, name: str, timeout_s: float) -> TopicInfo:
        if name != "orders":
            raise awoke.UnknownTopic(f"no topic {name}", 3, "UNKNOWN_TOPIC_OR_PART")
        partitions: Any = [SimpleNamespace(partition=number) for number in range(3)]
        return TopicInfo(name, partitions)

    def start_offsets(self, topic: str, timeout_s: float, *, partitions: list[int]) -> dict[int, int]:
        return {partition: 70 + partition for partition in partitions}


@pytest.fixture
def without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Admin", FakeAdmin)
    monkeypatch.setattr("awoke.declare.reader._native.Reader", FakeNative)


@pytest.fixture
def reader(without_engine: None) -> Iterator[awoke.Reader]:
    """A reader of the partitions 0 and 1."""
    with awoke.Reader("orders", start={0: "earliest", 1: "earliest"}) as reader:
        yield reader


def native_of(reader: awoke.Reader) -> FakeNative:
    native: Any = reader._native
    assert isinstance(native, FakeNative)
    return native


MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "starts"),
    [
        ("earliest", [("orders", number, "offset", 70 + number) for number in range(3)]),
        ({1: "earliest", 0: "latest"}, [("orders", 1, "offset", 71), ("orders", 0, "latest", 0)]),
        (42, [("orders", number, "offset", 42) for number in range(3)]),
        ({2: -5, 0: MOMENT}, [("orders", 2, "last", 5), ("orders", 0, "time", int(MOMENT.timestamp() * 1_000))]),
    ],
)
@pytest.mark.usefixtures("without_engine")
def test_a_start_is_for_all_partitions_or_for_those_that_are_named(start: Any, starts: list[Any]) -> None:
    with awoke.Reader(["orders"], start=start) as reader:
        assert native_of(reader).starts == starts


@pytest.mark.parametrize(
    "error", [awoke.KafkaError("no leader", 5, "LEADER_NOT_AVAILABLE"), awoke.OperationTimeout("late", "offsets", 0.5)]
)
@pytest.mark.usefixtures("without_engine")
def test_a_first_offset_that_is_not_told_is_left_to_the_client(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: Any, **__: Any) -> dict[int, int]:
        raise error

    monkeypatch.setattr(FakeAdmin, "start_offsets", refuse)
    with awoke.Reader("orders", start={0: "earliest", 1: 8}) as reader:
        assert native_of(reader).starts == [("orders", 0, "earliest", 0), ("orders", 1, "offset", 8)]


@pytest.mark.usefixtures("without_engine")
def test_a_topic_or_partition_that_does_not_exist_is_named() -> None:
    with pytest.raises(awoke.UnknownTopic, match="payments"):
        awoke.Reader(["orders", "payments"])
    with pytest.raises(awoke.UnknownTopic, match="topic 'orders' has no partition 3"):
        awoke.Reader("orders", start={0: "earliest", 3: "earliest"})


@pytest.mark.parametrize("start", [None, {0: None}, "begin", datetime(2026, 1, 31)])
@pytest.mark.usefixtures("without_engine")
def test_a_start_that_is_none_is_refused(start: Any) -> None:
    with pytest.raises(awoke.ConfigError):
        awoke.Reader("orders", start=start)


@pytest.mark.usefixtures("without_engine")
def test_a_reader_that_can_not_be_made_ends_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[EventSource] = []

    class Noted(EventSource):
        def close(self) -> None:
            closed.append(self)
            super().close()

    def fail(*_: Any) -> None:
        raise awoke.KafkaError("no", -1, "_FAIL")

    monkeypatch.setattr(module, "EventSource", Noted)
    monkeypatch.setattr("awoke.declare.reader._native.Reader", fail)
    with pytest.raises(awoke.KafkaError):
        awoke.Reader("orders")
    assert len(closed) == 1


def test_the_end_is_reached_when_every_partition_is_at_its_end(reader: awoke.Reader) -> None:
    native_of(reader).put(Batch(0, "a", "b"), ("orders", 0), Batch(1, "c"), ("orders", 1), Batch(1, "later"))
    found: list[Any] = list(reader.read_until_end())
    assert found == ["a", "b", "c"]
    assert native_of(reader).waits == [None] * 4


def test_a_partition_that_goes_on_behind_its_end_is_not_at_the_end(reader: awoke.Reader) -> None:
    native_of(reader).put(("orders", 0), Batch(0, "a"), ("orders", 1), Batch(1, "b"), ("orders", 1), ("orders", 0))
    found: list[Any] = list(reader.read_until_end())
    assert found == ["a", "b"]


def test_a_reader_at_the_end_waits_for_nothing(reader: awoke.Reader) -> None:
    native_of(reader).put(("orders", 0), ("orders", 1))
    assert list(reader.read_until_end()) == []
    assert list(reader.read_until_end()) == []
    assert native_of(reader).waits == [None, None, 0.0], "two ends were told, and then it only looked"


def stored(*places: tuple[int, int]) -> list[Any]:
    return [stored_message(None, b"", [], "orders", partition, offset) for partition, offset in places]


def test_a_number_of_messages_is_read_of_each_partition_or_up_to_its_end(reader: awoke.Reader) -> None:
    many, few = stored((0, 0), (0, 1), (0, 2)), stored((1, 5))
    native_of(reader).put(Batch(0, *many), Batch(0, *stored((0, 3))), Batch(1, *few), ("orders", 1))
    assert list(reader.read_up_to(2)) == [*many[:2], *few]
    assert native_of(reader).waits == [None] * 4


def test_a_number_of_messages_that_does_not_come_in_time_is_an_error(reader: awoke.Reader) -> None:
    with pytest.raises(awoke.OperationTimeout, match=r"not there within 0 s"):
        list(reader.read_up_to(1, 0))


def test_an_end_that_is_not_reached_in_time_is_an_error(reader: awoke.Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = iter([100.0, 101.0, 104.0, 105.0])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(times_s)))
    native_of(reader).put(Batch(0, "a"), ("orders", 0))
    found: list[Any] = []
    with pytest.raises(awoke.OperationTimeout, match=r"not there within 5\.0 s"):
        found.extend(reader.read_until_end(5.0))
    assert native_of(reader).waits == [4.0, 1.0]


def test_an_iteration_goes_on_over_the_end_until_the_reader_closes(
    reader: awoke.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("awoke.waiting.time.patience", None)  # As outside of tests.
    native_of(reader).put(Batch(0, "a"), ("orders", 0), ("orders", 1), Batch(1, "b"))
    found: list[Any] = []
    with pytest.raises(awoke.ClosedError):
        for message in reader:
            found.append(message)
    assert found == ["a", "b"]


async def test_a_task_reads_until_the_end_and_waits_on_the_loop(reader: awoke.Reader) -> None:
    native = native_of(reader)
    found: list[Any] = []

    async def read() -> None:
        found.extend([message async for message in reader.aread_until_end(30)])

    task = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    native.put(Batch(0, "a"), ("orders", 0))
    await asyncio.sleep(0)
    assert not task.done()
    native.put(("orders", 1))
    await asyncio.wait_for(task, 10)
    assert found == ["a"]
    assert set(native.waits) == {0.0}, "the loop is not blocked"


async def test_a_task_hears_that_the_end_is_not_reached_in_time(reader: awoke.Reader) -> None:
    with pytest.raises(awoke.OperationTimeout, match=r"not there within 0\.01 s"):
        async for _ in reader.aread_until_end(0.01):
            pass
    assert not asyncio.get_running_loop().remove_reader(native_of(reader).fileno()), "it watches no longer"


async def test_a_task_that_is_cancelled_watches_no_longer(reader: awoke.Reader) -> None:
    async def read(messages: AsyncIterator[Any]) -> None:
        async for _ in messages:
            pass

    native_of(reader).put()
    task = asyncio.ensure_future(read(aiter(reader)))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not asyncio.get_running_loop().remove_reader(native_of(reader).fileno())


def test_a_reader_closes_once_more_without_effect(reader: awoke.Reader) -> None:
    reader.close()
    reader.close()
    assert native_of(reader).is_closed


def test_a_reader_reads_what_brokers_have(mock_cluster: MockCluster) -> None:
    topic = unique("orders")
    mock_cluster.create_topic(topic, 2)
    with awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        for number in range(4):
            producer.produce(topic, b"%d" % number, partition=number % 2).wait(30)
    with awoke.Reader(topic, bootstrap_servers=mock_cluster.bootstrap_servers, start=-1) as reader:
        assert sorted(message.value or b"" for message in reader.read_until_end(30)) == [b"2", b"3"]
