"""Dead letters picked, grouped by fingerprint, and compared with the earlier attempts at their messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from awoke.console.explorer.parts import DecodedParts
from awoke.console.letters.listing import (
    TEXT_MAX,
    Read,
    attempts_of,
    find,
    fingerprint_of,
    list_letters,
    show_letter,
    without_details,
)
from awoke.console.views import ErrorRecord
from awoke.operate.dead_letters.letters import Filter
from awoke.settings import load
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


def record(attempt: int, at_ms: int, **changes: Any) -> ErrorRecord:
    fields: dict[str, Any] = {"node": "a", "error_type": "ValueError", "error_text": "no card", "traceback": "line 1"}
    fields |= {"topic": "orders", "partition": 3, "offset": 5, **changes}
    return ErrorRecord(
        major=1, minor=0, at_ms=at_ms, app="shop", event="job.failed", fingerprint="f", attempt=attempt, **fields
    )


def test_attempts_are_compared_with_the_one_before() -> None:
    chosen = letter(0, error_text="no card")
    errors = [
        record(2, FIRST_MS - 10, node="b"),
        record(1, FIRST_MS - 20),
        record(3, FIRST_MS - 5, node="b", error_type="KeyError", traceback="line 2"),
        record(1, FIRST_MS - 4, offset=6),
    ]
    found = attempts_of(chosen, [chosen, letter(1, origin_offset="6")], errors)
    assert [(each.place, each.attempt, each.changed) for each in found] == [
        ("errors", 1, []),
        ("errors", 2, ["node"]),
        ("errors", 3, ["error_type", "traceback"]),
        ("0:0", 2, ["error_type"]),
    ]


def test_a_message_that_became_a_letter_twice_has_both() -> None:
    first, second = letter(0), letter(4, failed_at_ms=str(FIRST_MS + 9))
    assert [each.place for each in attempts_of(second, [first, second], [])] == ["0:0", "0:4"]


def test_a_letter_is_shown_with_its_contents_hidden() -> None:
    chosen = letter(7, value=b"secret")
    with DecodedParts(load({}).values) as parts:
        found = show_letter(chosen, [chosen], [], parts)
    assert (found.row.offset, found.message.value.form, found.lost_value_bytes) == (7, "hidden", None)


def test_a_letter_is_found_by_its_place() -> None:
    chosen = letter(7, partition=2)
    assert find([letter(0), chosen], (2, 7)) == chosen
    assert find([chosen], (0, 7)) is None


def test_letters_that_differ_in_details_have_one_fingerprint() -> None:
    first = fingerprint_of(letter(0, error_text="no card 'a1' for order 7"))
    assert first == fingerprint_of(letter(1, error_text="no card 'b2' for order 99"))
    assert first != fingerprint_of(letter(2, error_text="no bank 'a1' for order 7"))
    assert first != fingerprint_of(letter(3, error_text="no card 'a1' for order 7", handler="book"))
    assert first != fingerprint_of(letter(4, error_text="no card 'a1' for order 7", error_type="KeyError"))


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("id 0x7f3f and 12", "id … and …"),
        ('no "x y" here', "no … here"),
        ("uuid 550e8400-e29b", "uuid …-e…b"),
        ("x" * 5_000, "x" * TEXT_MAX),
        ("'" + "y" * 5_000, "'" + "y" * (TEXT_MAX - 1)),
    ],
)
def test_details_are_left_out(text: str, rest: str) -> None:
    assert without_details(text) == rest
