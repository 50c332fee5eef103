"""A topic is read when its first end is reached, in whatever steps the offsets go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from awoke.console.ends import Unread


def message(partition: int, offset: int) -> Any:
    return SimpleNamespace(partition=partition, offset=offset)


def test_an_empty_topic_is_read() -> None:
    assert not Unread({0: 0, 1: 0})


def test_a_topic_is_read_when_each_partition_is() -> None:
    unread = Unread({0: 2, 1: 1})
    for at, is_left in (((0, 0), True), ((1, 0), True), ((0, 1), False), ((0, 2), False)):
        unread.take(message(*at))
        assert bool(unread) == is_left


def test_a_gap_in_the_offsets_hides_no_end() -> None:
    unread = Unread({0: 5})
    unread.take(message(0, 9))
    assert not unread
