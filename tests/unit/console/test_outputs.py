"""Topics that acknowledge nothing, and a producer without room."""

from __future__ import annotations

import pytest

from awoke.console import outputs
from awoke.console.client_statistics import OneClient, PartitionStatistics, TopicStatistics
from awoke.console.outputs import GONE_MS, FullQueue, Outputs
from awoke.console.producing_views import Output


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time, which a test moves."""
    found = [1_000]
    monkeypatch.setattr(outputs, "wall_ms", lambda: found[0])
    return found


def client(given: int, waiting: int, *, topic: str = "out", name: str = "p-1", kind: str = "producer") -> OneClient:
    at = PartitionStatistics(msgs=given, msgq_cnt=1, xmit_msgq_cnt=1, msgs_inflight=waiting - 2)
    at = at if waiting else PartitionStatistics(msgs=given)
    return OneClient(type=kind, name=name, topics={topic: TopicStatistics(partitions={"0": at})})


def test_a_topic_waits_once_nothing_was_acknowledged_between_two_statistics(now: list[int]) -> None:
    found = Outputs()
    assert not found.take(client(9, 4))
    assert found.waiting() == []
    now[0] = 6_000
    assert found.take(client(12, 7))  # Three more were sent, and as many as before answered.
    assert found.waiting() == [Output(topic="out", messages=7, since_ms=1_000)]
    now[0] = 11_000
    assert not found.take(client(12, 7))
    assert found.waiting() == [Output(topic="out", messages=7, since_ms=1_000)]
    now[0] = 16_000
    assert found.take(client(12, 6))
    assert found.waiting() == []
    assert [each.since_ms for each in found.waiting(with_slow=True)] == [None]
    now[0] = 21_000
    assert found.take(client(12, 6))
    assert [each.since_ms for each in found.waiting()] == [16_000]


def test_a_topic_without_messages_does_not_wait(now: list[int]) -> None:
    found = Outputs()
    for _ in range(3):
        assert not found.take(client(5, 0))
        assert not found.take(client(5, 4, kind="consumer"))
    assert found.waiting(with_slow=True) == []


def test_clients_are_added_up_and_forgotten_when_they_are_closed(now: list[int]) -> None:
    found = Outputs()
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
