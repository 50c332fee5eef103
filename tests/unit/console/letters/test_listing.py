"""Dead letters picked, and grouped by fingerprint."""

from __future__ import annotations

import msgspec

from awoke.console.letters.fingerprints import fingerprint_of
from awoke.console.letters.listing import Read, list_letters
from awoke.operate.dead_letters.letters import Filter
from tests.unit.cli.fakes import FIRST_MS, letter

LETTERS = [
    letter(0, error_text="no card 1", failed_at_ms=str(FIRST_MS)),
    letter(1, error_text="no card 2", failed_at_ms=str(FIRST_MS + 2), topic="refunds"),
    letter(2, error_text="timed out", failed_at_ms=str(FIRST_MS + 1), error_type="TimeoutError"),
]


def test_letters_are_grouped_and_the_last_to_fail_come_first() -> None:
    found = list_letters("dead", Read(LETTERS, 4, is_partial=False))
    assert [each.offset for each in found.letters] == [1, 2, 0]
    cards, late = found.groups
    assert (cards.count, cards.topics, cards.first_ms, cards.last_ms, cards.example.offset) == (
        2,
        ["refunds", "orders"],
        FIRST_MS,
        FIRST_MS + 2,
        1,
    )
    assert (late.error_type, found.others) == ("TimeoutError", 4)


def test_letters_are_picked_by_filter_and_fingerprint() -> None:
    read = Read(LETTERS, 0, is_partial=False)
    assert [each.offset for each in list_letters("dead", read, Filter(error="timed")).letters] == [2]
    mark = fingerprint_of(LETTERS[0])
    assert [each.offset for each in list_letters("dead", read, fingerprint=mark).letters] == [1, 0]


def test_numbers_of_forged_headers_stay_json() -> None:
    forged = letter(0, origin_offset="9" * 40, failed_at_ms="9" * 40)
    (row,) = list_letters("dead", Read([forged], 0, is_partial=False)).letters
    assert row.original_offset == "9" * 40
    assert msgspec.json.decode(msgspec.json.encode(row))["failed_at_ms"] < 1 << 54
