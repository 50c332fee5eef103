"""The format of dead letters: what is added to a message, what is read back, and what is no dead letter."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from awoke.payloads import dead_letter
from awoke.payloads.dead_letter import LETTER_BYTES_MAX, LetterOrigin, letter, origin, original, producer_properties
from awoke.payloads.message import Record
from tests.support.messages import stored_message

OWN: list[tuple[str, bytes | None]] = [("trace", b"a"), ("trace", None)]


def message(value: bytes | None = b"value", headers: Any = OWN, **more: Any) -> Any:
    return stored_message(b"key", value, headers, topic="orders", partition=3, **more)


def stored(record: Record, **more: Any) -> Any:
    """Returns a record as it is read from the dead letter topic."""
    headers: Any = record.headers
    encoded = [(name, value.encode() if isinstance(value, str) else value) for name, value in headers]
    key: Any = record.key
    return stored_message(key, record.value, encoded, **more)


def test_a_letter_has_the_message_unchanged_and_its_origin_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter, "wall_ms", lambda: 1_770_000_000_123)
    made = letter(message(), "billing", 3, ValueError("no card"), "charge")
    assert (made.value, made.key, made.partition, made.timestamp_ms) == (b"value", b"key", None, None)
    headers: Any = made.headers
    assert headers[:2] == OWN
    assert [name for name, _ in headers[2:]] == list(dead_letter.HEADERS[:-2])
    found = origin(stored(made))
    times_ms = (1_760_000_000_000, 1_770_000_000_123)
    assert found == LetterOrigin(
        "orders", 3, 7, times_ms[0], "billing", 3, "builtins.ValueError", "no card", times_ms[1], "charge"
    )
    assert original(stored(made)) == Record(b"value", b"key", OWN)


def test_a_message_without_a_timestamp_or_a_value_keeps_that() -> None:
    made = letter(message(None, timestamp_ms=None), "billing", 1, ValueError())
    found = origin(stored(made))
    assert found is not None
    assert (found.timestamp_ms, made.value) == (None, None)


@pytest.mark.parametrize("value", [b"x" * 5_000, b"", None])
def test_a_letter_without_its_value_has_its_size_and_digest(value: bytes | None) -> None:
    made = letter(message(value), "billing", 1, ValueError(), has_value=False)
    assert made.value == b"", "a tombstone would delete the earlier letters of its key"
    found = origin(stored(made))
    assert found is not None
    assert (found.value_bytes, found.value_sha256) == (len(value or b""), hashlib.sha256(value or b"").hexdigest())


class Hostile(Exception):
    """An error whose text and module are of user code."""

    def __str__(self) -> str:
        return "lone \ud800 " + "x" * 5_000


def test_the_text_of_an_error_is_bounded_and_can_be_sent() -> None:
    found = origin(stored(letter(message(), "billing", 1, Hostile(), "ch\ud800rge")))
    assert found is not None
    assert found.error_text.startswith(r"lone \ud800 xxx")
    assert len(found.error_text) <= dead_letter.ERROR_TEXT_MAX + len(r"\ud800")
    assert found.error_type == f"{__name__}.Hostile"
    assert found.handler == r"ch\ud800rge"


def test_a_letter_of_a_letter_tells_the_last_failure_and_is_cleaned_of_both() -> None:
    first = stored(letter(message(), "billing", 3, ValueError("first"), "charge"), topic="orders.dead", offset=9)
    found = stored(letter(first, "repair", 1, KeyError("second"), "mend"))
    told = origin(found)
    assert told is not None
    assert (told.topic, told.offset, told.group, told.error_type) == ("orders.dead", 9, "repair", "builtins.KeyError")
    assert original(found).headers == OWN


def test_a_short_letter_of_a_letter_does_not_inherit_what_only_the_first_had() -> None:
    first = stored(letter(message(), "billing", 3, ValueError(), has_value=False))
    told = origin(stored(letter(first, "repair", 1, ValueError())))
    assert told is not None
    assert told.value_bytes is None


COMPLETE: dict[str, bytes] = {
    dead_letter.TOPIC: b"orders",
    dead_letter.PARTITION: b"3",
    dead_letter.OFFSET: b"7",
    dead_letter.TIMESTAMP: b"",
    dead_letter.GROUP: b"billing",
    dead_letter.ATTEMPTS: b"1",
    dead_letter.ERROR_TYPE: b"ValueError",
    dead_letter.ERROR_TEXT: b"\xff",
    dead_letter.FAILED_AT: b"5",
}


def test_a_letter_of_an_older_version_has_no_handler() -> None:
    assert origin(message(headers=[*COMPLETE.items()])) == LetterOrigin(
        "orders", 3, 7, None, "billing", 1, "ValueError", "\ufffd", 5
    )


@pytest.mark.parametrize(
    "changes",
    [
        *({name: None} for name in COMPLETE),
        {dead_letter.OFFSET: b"seven"},
        {dead_letter.FAILED_AT: b""},
        {dead_letter.TIMESTAMP: b"now"},
        {dead_letter.VALUE_BYTES: b"many"},
        {dead_letter.PARTITION: b"9" * 5_000},
    ],
    ids=str,
)
def test_a_message_without_a_complete_origin_is_no_letter(changes: dict[str, bytes | None]) -> None:
    headers = {**COMPLETE, **changes}
    assert origin(message(headers=[(name, value) for name, value in headers.items() if value is not None])) is None
    assert origin(message(headers=[])) is None


@pytest.mark.parametrize(
    ("kafka", "bytes_max", "batch_bytes"),
    [
        ({}, LETTER_BYTES_MAX, 1_000_000),
        ({"message.max.bytes": "5000"}, LETTER_BYTES_MAX, 5_000),
        ({"message.max.bytes": "200000000", "batch.size": "7000"}, 200_000_000, 7_000),
    ],
)
def test_a_producer_of_letters_leaves_their_size_to_the_brokers_and_keeps_its_batches(
    kafka: dict[str, str], bytes_max: int, batch_bytes: int
) -> None:
    found = producer_properties(kafka)
    assert (int(found["message.max.bytes"]), int(found["batch.size"])) == (bytes_max, batch_bytes)


@pytest.mark.parametrize(("given", "expected"), [({}, 1_048_576), ({"queue.buffering.max.kbytes": "1"}, 200_000)])
def test_the_queue_of_a_producer_of_letters_has_room_for_two(given: dict[str, str], expected: int) -> None:
    assert int(producer_properties(given)["queue.buffering.max.kbytes"]) == expected
