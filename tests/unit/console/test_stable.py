"""The last stable offsets in librdkafka's statistics."""

from __future__ import annotations

import pytest

from awoke.console import stable
from awoke.console.client_statistics import client_of
from awoke.console.stable import StableOffsets
from awoke.observe.events import ClientStatistics


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
    monkeypatch.setattr(stable, "wall_ms", lambda: next(times))
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
