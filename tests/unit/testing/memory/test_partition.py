"""A partition in memory: what is due, taken, done and sought."""

from __future__ import annotations

from awoke.testing.memory.partition import BEGINNING, END, MemoryPartition
from awoke.testing.messages import MessageParts


def partition_of(count: int, lanes: list[object] | None = None) -> MemoryPartition:
    partition = MemoryPartition("orders", 0, [MessageParts(at + 5, b"v", b"k", [], 1_000 * at) for at in range(count)])
    partition.split(lanes)
    return partition


def taken(partition: MemoryPartition, limit: int = 100) -> list[int]:
    return [each.offset for each in partition.take(limit)[1]]


def test_without_lanes_all_messages_are_one_unit_in_order() -> None:
    partition = partition_of(3)
    assert not partition.has_lanes
    assert taken(partition, 2) == [5, 6]
    assert partition.due() is None


def test_a_unit_whose_job_has_ended_is_due_again_at_its_time() -> None:
    partition = partition_of(3)
    unit, entries = partition.take(2)
    partition.put_back(unit, entries[1:], 4.0)
    assert partition.due() == (4.0, 1)
    assert taken(partition) == [6, 7]


def test_the_unit_that_is_due_first_comes_first_and_then_the_older_message() -> None:
    partition = partition_of(4, ["a", "b", None, None])
    (unit, entries), (other, others) = partition.take(9), partition.take(9)
    partition.put_back(unit, entries, 3.0)
    partition.put_back(other, others, 2.0)
    assert [taken(partition) for _ in range(4)] == [[7], [8], [6], [5]]


def test_the_stored_offset_moves_up_to_the_first_message_that_is_not_done() -> None:
    partition = partition_of(3)
    partition.done(partition.entries[1:2])
    assert partition.committed() is None
    partition.done(partition.entries[:1])
    assert partition.committed() == (7, None)
    partition.annotate(9, "text")
    assert partition.committed() == (9, "text")


def test_the_first_waiting_message_is_known_when_messages_come_back() -> None:
    partition = partition_of(3, ["a", "b", "c"])
    unit, entries = partition.take(9)
    assert partition.first_waiting() == 1
    partition.take(9)
    partition.take(9)
    assert partition.first_waiting() == 3
    partition.put_back(unit, entries, 1.0)
    assert partition.first_waiting() == 0


def test_a_seek_begins_another_reading() -> None:
    partition = partition_of(3)
    _, entries = partition.take(9)
    entries[1].failed = 2
    partition.done(entries)
    partition.seek(6)
    assert partition.is_interrupted
    partition.apply_seek()
    assert (partition.epoch, partition.is_interrupted, entries[1].failed) == (1, False, 0)
    assert taken(partition) == [6, 7]
    for to, offsets in ((BEGINNING, [5, 6, 7]), (END, [])):
        partition.seek(to)
        partition.apply_seek()
        assert (taken(partition) if partition.due() else []) == offsets


def test_a_time_has_the_first_offset_at_or_after_it() -> None:
    partition = partition_of(3)
    assert [partition.offset_at(at_ms) for at_ms in (0, 1_500, 2_000, 2_001)] == [5, 7, 7, END]


def test_a_back_off_is_cleared() -> None:
    partition = partition_of(1)
    partition.put_back(*partition.take(9), 60.0)
    partition.clear_backoff()
    assert partition.due() == (0.0, 0)
    assert taken(partition) == [5]
    assert partition.due() is None
