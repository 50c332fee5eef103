"""The format of dead letters: the message unchanged, and headers with its origin and the reason of its failure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from awoke._native import Message
from awoke.payloads.message import Record
from awoke.settings import number
from awoke.text.printable import text_of
from awoke.waiting.clock import wall_ms

TOPIC = "awoke-original-topic"
PARTITION = "awoke-original-partition"
OFFSET = "awoke-original-offset"
TIMESTAMP = "awoke-original-timestamp-ms"
GROUP = "awoke-group"
ATTEMPTS = "awoke-attempts"
ERROR_TYPE = "awoke-error-type"
ERROR_TEXT = "awoke-error-message"
FAILED_AT = "awoke-failed-at-ms"
HANDLER = "awoke-handler"
VALUE_BYTES = "awoke-original-value-bytes"
VALUE_SHA256 = "awoke-original-value-sha256"
ABOUT_VALUE = (VALUE_BYTES, VALUE_SHA256)
"""Headers of a letter that was sent without its value, which was too large for the dead letter topic."""
HEADERS = (
    *(TOPIC, PARTITION, OFFSET, TIMESTAMP, GROUP, ATTEMPTS, ERROR_TYPE, ERROR_TEXT, FAILED_AT, HANDLER),
    *ABOUT_VALUE,
)
"""The headers that awoke adds, in this order, behind the message's own."""

ERROR_TEXT_MAX = 1_000
"""Characters of the error's text that are kept."""


LETTER_BYTES_MAX = 100_000_000
"""The largest dead letter that is sent: brokers end the connection at larger requests (`socket.request.max.bytes`)."""
LETTER_KB_MAX = LETTER_BYTES_MAX // 1_000
MESSAGE_BYTES_MAX, BATCH_BYTES_MAX, QUEUE_KB = 1_000_000, 1_000_000, 1_048_576
"""librdkafka's defaults."""


class LetterOrigin(NamedTuple):
    """The origin of a dead letter, and the reason of its failure."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    """Of the original message."""
    group: str
    attempts: int
    error_type: str
    error_text: str
    failed_at_ms: int
    """Milliseconds since 1970."""
    handler: str = ""
    """The name of the handler that failed; empty in dead letters of older versions."""
    value_bytes: int | None = None
    """The size of the original value, where the letter was sent without it."""
    value_sha256: str = ""
    """Its digest, as hexadecimal digits."""


def letter(
    message: Message[Any], group: str, attempts: int, error: BaseException, handler: str = "", *, has_value: bool = True
) -> Record:
    """Returns the dead letter of a message: key, value and headers unchanged, and awoke's headers behind them.

    A letter without the value has an empty one: in a compacted topic a tombstone would delete the key's earlier
    letters. It has headers with the value's size and digest. Every letter names the message's topic, partition and
    offset.
    """
    kind = type(error)
    added: list[tuple[str, bytes | str | None]] = [
        (TOPIC, message.topic),
        (PARTITION, str(message.partition)),
        (OFFSET, str(message.offset)),
        (TIMESTAMP, str(message.timestamp_ms if message.timestamp_ms is not None else "")),
        (GROUP, group),
        (ATTEMPTS, str(attempts)),
        (ERROR_TYPE, f"{kind.__module__}.{kind.__qualname__}"),
        (ERROR_TEXT, writable(text_of(error)[:ERROR_TEXT_MAX])),
        (FAILED_AT, str(wall_ms())),
        (HANDLER, writable(handler)),
    ]
    value = message.raw_value
    if not has_value:
        whole, value = value or b"", b""
        added += [(VALUE_BYTES, str(len(whole))), (VALUE_SHA256, hashlib.sha256(whole).hexdigest())]
    return Record(value, message.key, [*message.headers, *added])


def producer_properties(kafka: Mapping[str, str]) -> dict[str, str]:
    """Returns librdkafka's properties for a producer of dead letters, which leave the size limit to the brokers.

    A dead letter is larger than its message, which may come from a producer with another limit. Batches keep their
    size.
    """
    bytes_max = number(kafka, "message.max.bytes", MESSAGE_BYTES_MAX)
    return {
        "message.max.bytes": str(max(bytes_max, LETTER_BYTES_MAX)),
        "batch.size": str(min(bytes_max, number(kafka, "batch.size", BATCH_BYTES_MAX))),
        "queue.buffering.max.kbytes": str(
            max(number(kafka, "queue.buffering.max.kbytes", QUEUE_KB), 2 * LETTER_KB_MAX)
        ),
    }


def writable(text: str) -> str:
    """Returns text that can be encoded as UTF-8; the text of an error may hold lone surrogates."""
    return text.encode(errors="backslashreplace").decode()


def origin(message: Message[Any]) -> LetterOrigin | None:
    """Returns the origin from the headers of a dead letter; None for a message that is no dead letter of awoke's."""
    found = {name: (value or b"").decode(errors="replace") for name, value in own_headers(message)}
    try:
        return LetterOrigin(
            found[TOPIC],
            int(found[PARTITION]),
            int(found[OFFSET]),
            int(found[TIMESTAMP]) if found[TIMESTAMP] else None,
            found[GROUP],
            int(found[ATTEMPTS]),
            found[ERROR_TYPE],
            found[ERROR_TEXT],
            int(found[FAILED_AT]),
            found.get(HANDLER, ""),
            int(found[VALUE_BYTES]) if VALUE_BYTES in found else None,
            found.get(VALUE_SHA256, ""),
        )
    except (KeyError, ValueError):
        return None


def own_headers(message: Message[Any]) -> list[tuple[str, bytes | None]]:
    """Returns the headers that the last dead lettering added; the message's own may have the same names."""
    headers = message.headers
    begin = max((place for place, (name, _) in enumerate(headers) if name == TOPIC), default=len(headers))
    return [(name, value) for name, value in headers[begin:] if name in HEADERS]


def original(message: Message[Any]) -> Record:
    """Returns the original message of a dead letter, to be sent again."""
    headers = [(name, value) for name, value in message.headers if name not in HEADERS]
    return Record(message.raw_value, message.key, headers)
