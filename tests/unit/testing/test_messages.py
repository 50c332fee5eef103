"""Messages and batches of values that no broker has sent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke import testing
from awoke.testing.messages import MessageParts, ascending


class Order(msgspec.Struct):
    id: int


def test_a_message_has_what_it_was_given() -> None:
    headers: list[tuple[str, bytes | str | None]] = [("trace", "a"), ("trace", b"b"), ("none", None)]
    found = testing.message(
        b"v", key="k", headers=headers, topic="orders", partition=3, offset=7, timestamp_ms=5, attempt=2
    )
    assert isinstance(found, awoke.Message)
    assert (found.topic, found.partition, found.offset, found.timestamp_ms) == ("orders", 3, 7, 5)
    assert (found.value, found.key, found.attempt) == (b"v", b"k", 2)
    assert found.headers == [("trace", b"a"), ("trace", b"b"), ("none", None)]


def test_a_message_gives_back_a_value_that_is_no_bytes_and_holds_it_as_json() -> None:
    order = Order(1)
    found = testing.message(order, key=4)
    assert found.value is order
    assert (found.raw_value, found.key, found.raw_key) == (b'{"id":1}', 4, b"4")


def test_text_is_bytes_and_a_tombstone_is_none() -> None:
    assert testing.message("text").value == b"text"
    assert testing.message(None).value is None


def test_a_message_is_of_now_if_nothing_else_is_said() -> None:
    before = testing.message(b"")
    assert before.timestamp_ms is not None
    assert 0 <= (testing.message(b"").timestamp_ms or 0) - before.timestamp_ms < 60_000


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(awoke.EncodeError):
        testing.message(object())


def test_a_batch_has_messages_and_values_with_ascending_offsets() -> None:
    found = testing.batch([testing.message(Order(1), offset=5), Order(2), b"x"], attempt=2)
    assert isinstance(found, awoke.Batch)
    assert found.offsets() == [5, 6, 7]
    assert found.values() == [Order(1), Order(2), b"x"]
    assert [each.attempt for each in found] == [2, 1, 1]


@pytest.mark.parametrize(
    "messages", [[], [testing.message(b"", partition=0), testing.message(b"", partition=1)]], ids=["none", "several"]
)
def test_a_batch_of_no_or_several_partitions_is_refused(messages: list[awoke.Message[Any]]) -> None:
    with pytest.raises(ValueError, match="one topic-partition"):
        testing.batch(messages)


def test_offsets_that_ascend_are_kept() -> None:
    parts = [MessageParts(offset, None, None, [], None) for offset in (3, 9, 9, 0, 20)]
    assert [each.offset for each in ascending(parts)] == [3, 9, 10, 11, 20]


def test_a_message_may_have_no_timestamp() -> None:
    assert testing.message(b"", timestamp_ms=None).timestamp_ms is None
