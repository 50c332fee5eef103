"""Builds messages and batches as handlers get them, of values that no broker has sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from awoke._native import Batch, Decoders, Message, make_batch
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.message import Headers, header_pairs
from awoke.waiting.clock import wall_ms

__all__ = ["batch", "message"]

TOPIC = "test"
"""The topic of a message that names none. A route that gets the message gives it its own."""

Pairs = list[tuple[str, bytes | None]]
"""Headers in order, as bytes."""


class MessageParts(NamedTuple):
    """A message as brokers keep it."""

    offset: int
    value: bytes | None
    key: bytes | None
    headers: Pairs
    timestamp_ms: int | None


def message(
    value: Any,
    /,
    *,
    key: Any = None,
    headers: Headers | None = None,
    topic: str = TOPIC,
    partition: int = 0,
    offset: int = 0,
    timestamp_ms: int | Literal["now"] | None = "now",
    attempt: int = 1,
) -> Message[Any, Any]:
    """Returns a message with this value: bytes, text, None (a tombstone), or any value that JSON can hold.

    Its `value` and `key` are what was given, text as bytes. A route that gets the message encodes them as its topic
    does, and decodes them for its handler. `timestamp_ms` is now if it is left out; None is a message without one.
    Does not block.

    Raises:
        EncodeError: the value, or the key, can't be written as JSON.
    """
    at_ms = wall_ms() if timestamp_ms == "now" else timestamp_ms
    parts = MessageParts(offset, encoded(value), encoded(key), headers_of(headers), at_ms)
    return make_batch((topic, partition), [parts], _decoders([value], [key]), attempt)[0]


def batch(messages: Sequence[Any], /, *, attempt: int = 1) -> Batch[Any, Any]:
    """Returns a batch of messages, all of one topic-partition; of another value, `message` makes one.

    An offset that is not larger than the one before it becomes the next one. `attempt` is that of the first message.
    Does not block.

    Raises:
        ValueError: there is no message, or they are of several topic-partitions; EncodeError: as `message`.
    """
    found = [each if isinstance(each, Message) else message(each) for each in messages]
    places = {(each.topic, each.partition) for each in found}
    if len(places) != 1:
        raise ValueError(f"a batch has messages of one topic-partition, not of {sorted(places)!r}")
    ((topic, partition),) = places
    decoders = _decoders([each.value for each in found], [each.key for each in found])
    return make_batch((topic, partition), ascending([parts_of(each) for each in found]), decoders, attempt)


def parts_of(message: Message[Any, Any]) -> MessageParts:
    """Returns the bytes of a message."""
    return MessageParts(message.offset, message.raw_value, message.raw_key, message.headers, message.timestamp_ms)


def ascending(messages: Sequence[MessageParts]) -> list[MessageParts]:
    """Returns messages of one partition with ascending offsets; those that ascend already are kept."""
    found: list[MessageParts] = []
    for each in messages:
        at_least = found[-1].offset + 1 if found else 0
        found.append(each._replace(offset=max(each.offset, at_least)))
    return found


def encoded(value: Any) -> bytes | None:
    """Returns a value as bytes: text as UTF-8, and what is neither bytes, text nor None as JSON.

    Raises:
        EncodeError: it can't be written as JSON.
    """
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else BY_TYPE.encode(value)


def headers_of(headers: Headers | None) -> Pairs:
    """Returns headers as a message has them."""
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in header_pairs(headers)]


def _decoders(values: Sequence[Any], keys: Sequence[Any]) -> Decoders | None:
    """Returns functions that give back the values and keys that were given; None if all of them are bytes."""
    by_data = [
        {encoded(each): each for each in given if not isinstance(each, str | bytes | None)} for given in (values, keys)
    ]
    if not any(by_data):
        return None
    value_of, key_of = (lambda data, known=known: known.get(data, data) for known in by_data)
    return Decoders(value_of, key_of)
