"""A message to be sent: its record, the options of `produce`, and the same with a topic, as middleware sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, cast

Headers = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]
"""Names and values in order; a sequence of pairs may have a name twice."""


class RecordOptions(TypedDict, total=False):
    """The options of every `produce`, beside the topic and the value."""

    key: Any
    """Bytes, text or None, or of the type of the topic's keys (`awoke.Topic`). Messages of one key go to one partition,
    in order."""
    headers: Headers | None
    partition: int | None
    """None: librdkafka's partitioner chooses it by the key."""
    timestamp_ms: int | None
    """Milliseconds since 1970, from 1; None is the time of sending."""


class ProduceOptions(RecordOptions, total=False):
    """The options of a `produce` that may wait for room in the queue."""

    timeout_s: float | None
    """The time for which it waits; None is the setting `produce_timeout_s`, 0 does not wait."""


class Record(NamedTuple):
    """A record to be sent, for `produce_many`, and for handlers of routes with an output to return."""

    value: Any
    """Bytes, text, None (a tombstone), or what a format encodes."""
    key: Any = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp_ms: int | None = None

    @property
    def options(self) -> RecordOptions:
        """All parts but the value, as the options of `produce`: `produce(topic, record.value, **record.options)`."""
        return {
            "key": self.key,
            "headers": self.headers,
            "partition": self.partition,
            "timestamp_ms": self.timestamp_ms,
        }


def header_pairs(headers: Headers | None) -> list[tuple[str, bytes | str | None]]:
    """Returns headers as pairs, in order."""
    if headers is None:
        return []
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)


class Outgoing(NamedTuple):
    """A message on its way out, as middleware sees it; `_replace` returns a changed copy."""

    topic: str
    value: Any
    """As it was given to `produce`: not encoded yet."""
    key: Any = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp_ms: int | None = None

    @property
    def options(self) -> RecordOptions:
        """All parts but topic and value, as the options of `produce`."""
        return Record(*self[1:]).options

    def with_header(self, name: str, value: bytes | str | None) -> Outgoing:
        """Returns the message with one more header, behind those that it has."""
        return self._replace(headers=[*header_pairs(self.headers), (name, value)])


def addressed(topic: str, record: Record | Outgoing) -> tuple[str, Record]:
    """Returns a record and its topic: its own, where it is an `Outgoing`, else the one that is given."""
    return (record.topic, Record(*record[1:])) if type(record) is Outgoing else (topic, cast("Record", record))


def record_of(message: Any) -> Record:
    """Returns the record of a message of `produce_many`: a `Record`, a pair of value and key, or a value alone."""
    if type(message) is Record:
        return message
    return Record(*message) if type(message) is tuple else Record(message)
