"""Attempts at the message of a dead letter, compared."""

from __future__ import annotations

from typing import Any

from awoke.console.explorer.parts import Parts
from awoke.console.letters.attempts import attempts_of, find, show_letter
from awoke.console.views import ErrorRecord
from awoke.settings import load
from tests.unit.cli.fakes import FIRST_MS, letter


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
    with Parts(load({}).values) as parts:
        found = show_letter(chosen, [chosen], [], parts)
    assert (found.row.offset, found.message.value.form, found.lost_value_bytes) == (7, "hidden", None)


def test_a_letter_is_found_by_its_place() -> None:
    chosen = letter(7, partition=2)
    assert find([letter(0), chosen], (2, 7)) == chosen
    assert find([chosen], (0, 7)) is None
