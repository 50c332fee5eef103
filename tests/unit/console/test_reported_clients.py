"""What Kafka clients tell a report: transactions that are open or aborted, topics that stand still, a full queue."""

from __future__ import annotations

import msgspec
import pytest

from awoke.console import reported_clients
from awoke.console.reported_clients import (
    CODES_MAX,
    GONE_MS,
    AbortedTransactions,
    FullQueue,
    OneClient,
    PartitionStatistics,
    ReportedOutputs,
    StableOffsets,
    TopicStatistics,
    client_of,
)
from awoke.console.views import OutputTopic
from awoke.observe.events import ClientStatistics, TransactionAbort


def event(document: object) -> ClientStatistics:
    return ClientStatistics(client="shop", json=msgspec.json.encode(document).decode())


def test_a_producers_messages_are_unanswered_until_they_are_acknowledged() -> None:
    partition = {"msgs": 9, "msgq_cnt": 1, "xmit_msgq_cnt": 2, "msgs_inflight": 4, "added_later": [1]}
    document = {"type": "producer", "name": "shop#1", "topics": {"orders": {"partitions": {"0": partition}}}}
    client = client_of(event(document))
    assert client is not None
    found = client.topics["orders"].partitions["0"]
    assert (client.type, client.name, found.unanswered, found.msgs) == ("producer", "shop#1", 7, 9)


@pytest.mark.parametrize(("next_offset", "waiting", "expected"), [(5, 0, 5), (0, 0, 0), (5, 1, None), (-1001, 0, None)])
def test_a_partition_is_read_to_its_next_offset_once_nothing_waits(
    next_offset: int, waiting: int, expected: int | None
) -> None:
    assert PartitionStatistics(next_offset=next_offset, fetchq_cnt=waiting).read_offset == expected


@pytest.mark.parametrize("document", [{}, [], {"type": "producer", "topics": 3}])
def test_statistics_of_an_unknown_form_tell_nothing(document: object) -> None:
    assert client_of(event(document)) is None


def told(
    offsets: StableOffsets, last_stable: int, end: int, kind: str = "consumer", more: str = "", number: int = 0
) -> bool:
    text = (
        f'{{"type": "{kind}", "topics": {{"orders": {{"partitions": {{'
        f'"{number}": {{"ls_offset": {last_stable}, "hi_offset": {end}{more}}}, "-1": {{"ls_offset": 5}}}}}}}}}}'
    )
    client = client_of(ClientStatistics(client="c", json=text))
    assert client is not None
    return offsets.take(client)


def test_an_open_transaction_keeps_the_time_at_which_it_was_seen_first(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1_000, 2_000, 3_000])
    monkeypatch.setattr(reported_clients, "wall_ms", lambda: next(times))
    offsets = StableOffsets()
    told(offsets, 5, 8)
    told(offsets, 5, 9)
    assert offsets.find("orders", 0) == (5, 1_000, None)
    told(offsets, 7, 9)
    assert offsets.find("orders", 0) == (7, 2_000, None)
    told(offsets, 9, 9)
    assert offsets.find("orders", 0) == (9, None, None)


def test_what_is_not_known_is_not_told() -> None:
    offsets = StableOffsets()
    told(offsets, -1001, 8)
    told(offsets, 5, 8, "producer")
    assert client_of(ClientStatistics(client="c", json="{")) is None
    assert offsets.find("orders", 0) is None


def test_a_transaction_that_appears_or_ends_is_a_change() -> None:
    offsets = StableOffsets()
    ends = [(5, 5), (5, 8), (5, 9), (9, 9), (10, 10)]
    assert [told(offsets, last_stable, end) for last_stable, end in ends] == [False, True, False, True, False]
    assert not told(offsets, 5, 12, "producer")


def test_what_was_read_is_told_once_no_fetched_message_waits() -> None:
    offsets = StableOffsets()
    told(offsets, 6, 8, more=', "next_offset": 5, "fetchq_cnt": 0')
    told(offsets, 5, 8, more=', "next_offset": 5, "fetchq_cnt": 2', number=1)
    read = [None if found is None else found.read_offset for found in map(offsets.find, ["orders"] * 2, range(2))]
    assert read == [5, None]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time, which a test moves."""
    found = [1_000]
    monkeypatch.setattr(reported_clients, "wall_ms", lambda: found[0])
    return found


def client(given: int, waiting: int, *, topic: str = "out", name: str = "p-1", kind: str = "producer") -> OneClient:
    at = PartitionStatistics(msgs=given, msgq_cnt=1, xmit_msgq_cnt=1, msgs_inflight=waiting - 2)
    at = at if waiting else PartitionStatistics(msgs=given)
    return OneClient(type=kind, name=name, topics={topic: TopicStatistics(partitions={"0": at})})


def test_a_topic_waits_once_nothing_was_acknowledged_between_two_statistics(now: list[int]) -> None:
    found = ReportedOutputs()
    assert not found.take(client(9, 4))
    assert found.waiting() == []
    now[0] = 6_000
    assert found.take(client(12, 7))  # Three more were sent, and as many as before answered.
    assert found.waiting() == [OutputTopic(topic="out", messages=7, since_ms=1_000)]
    now[0] = 11_000
    assert not found.take(client(12, 7))
    assert found.waiting() == [OutputTopic(topic="out", messages=7, since_ms=1_000)]
    now[0] = 16_000
    assert found.take(client(12, 6))
    assert found.waiting() == []
    assert [each.since_ms for each in found.waiting(with_slow=True)] == [None]
    now[0] = 21_000
    assert found.take(client(12, 6))
    assert [each.since_ms for each in found.waiting()] == [16_000]


def test_a_topic_without_messages_does_not_wait(now: list[int]) -> None:
    found = ReportedOutputs()
    for _ in range(3):
        assert not found.take(client(5, 0))
        assert not found.take(client(5, 4, kind="consumer"))
    assert found.waiting(with_slow=True) == []


def test_clients_are_added_up_and_forgotten_when_they_are_closed(now: list[int]) -> None:
    found = ReportedOutputs()
    for name in ("p-1", "p-2"):
        for _ in range(2):
            found.take(client(9, 4, name=name))
            found.take(client(9, 9, name=name, topic="slow"))
    assert [(each.topic, each.messages) for each in found.waiting()] == [("out", 8), ("slow", 18)]
    now[0] += GONE_MS + 1
    assert found.waiting() == []
    found.take(client(9, 4, name="p-3"))
    assert list(found._known) == [("p-3", "out")]


def test_a_queue_is_full_by_messages_or_by_bytes(now: list[int]) -> None:
    full = FullQueue({"queue.buffering.max.messages": 10, "queue.buffering.max.kbytes": "1"})
    for messages, size_bytes, since_ms in [
        *((9, 90, None), (10, 90, 1_000), (11, 90, 1_000), (9, 90, None)),
        *((1, 512, None), (1, 513, 1_000), (0, 0, None)),
    ]:
        full.look(messages, size_bytes)
        assert full.since_ms == since_ms, (messages, size_bytes)
    unlimited = FullQueue({"queue.buffering.max.messages": 0})
    unlimited.look(1_000_000, 1)
    assert unlimited.since_ms is None


def test_aborted_transactions_are_counted_by_code_with_the_last_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(1, 99))
    monkeypatch.setattr(reported_clients, "wall_ms", lambda: next(times))
    found = AbortedTransactions()
    for code, text in (("A", "first"), ("B", "other"), ("A", "last" * 999)):
        found.on_event(TransactionAbort(client="producer", code=1, code_name=code, text=text))
    told = [(each.code, each.count, each.last_ms, each.last_text[:5]) for each in found.all()]
    assert told == [("A", 2, 3, "lastl"), ("B", 1, 2, "other")]
    assert len(found.all()[0].last_text) == 500


def test_their_number_is_bounded() -> None:
    found = AbortedTransactions()
    for number in range(CODES_MAX + 1):
        found.on_event(TransactionAbort(client="producer", code=1, code_name=str(number), text=""))
    assert [each.code for each in found.all()] == [str(number) for number in range(CODES_MAX, 0, -1)]
