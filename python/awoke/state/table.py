"""Tables: dictionaries that survive. A handler reads and writes the rows of its message's partition.

A reference is a table that others write: a compacted topic of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar

from awoke import _native
from awoke._native import JobRows
from awoke.errors import ClosedError, EncodeError, StateError
from awoke.observe.ledger import Acting, acting
from awoke.payloads.formats.format import Format
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.topics import Topic
from awoke.state.row_formats import RowFormats

Key = TypeVar("Key")
Value = TypeVar("Value")

COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "3600000",
    "delete.retention.ms": "86400000",
}
"""The settings of a changelog: Kafka keeps the last value of each key, and removes a deleted one after a day."""


SEGMENT_MS_MIN = 60_000
"""Kafka deletes whole segments: with a short time to live they are short, too."""


class KeyedRows(Mapping[Key, Value], Generic[Key, Value]):
    """Rows by key, with as many partitions as the topic of the route that names them."""

    _kind = "table"
    """The name of the object in the texts of errors."""
    _is_followed = False
    """True if others write the rows."""

    def __init__(
        self,
        name: str,
        topic: Topic,
        key: Any,
        value: Any,
        default: Format,
        schemas: Schemas,
        ttl_s: float | None = None,
    ) -> None:
        self.name, self.ttl_s = name, ttl_s
        self.changelog = topic
        """The topic whose records are the rows."""
        self.native = _native.Table(name, str(topic), self._is_followed, ttl_s)
        formats = RowFormats(f"{self._kind} {name!r}", topic, key, value, default, schemas)
        self._encode_key, self._read_key = formats.encode_key, formats.read_key
        self._encode, self._read = formats.encode, formats.read

    def committed(self) -> dict[Key, Value]:
        """Returns the committed rows of all partitions that this process has, wherever it is called. Does not block.

        Raises:
            DecodeError: A row does not decode.
        """
        numbers = [number for number, *_ in self.native.partitions()]
        rows = [pair for number in numbers for pair in self.native.committed_items(number)]
        return {self._read_key(key): self._read(value) for key, value in rows}

    def __bool__(self) -> bool:
        return True

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<{self._kind} {self.name!r}, topic {str(self.changelog)!r}>"


class Table(KeyedRows[Key, Value], MutableMapping[Key, Value]):
    """A dictionary that survives: `app.table("totals", key=str, value=Total)`.

    A handler whose route names it (`tables=[totals]`) reads and writes rows as those of a dictionary. It sees the rows
    of its message's partition, and with lanes the row of its message's key only. What it writes is committed in one
    transaction with its results and its offset, or not at all: a message that fails leaves no row. Each change is a
    record of the changelog, a compacted topic with as many partitions as the topic of the route, from which the rows
    are read when a partition is assigned.

    With `ttl_s` a row is gone that time after it was written last, by the clock of the process that wrote it.

    Outside of a handler of such a route its methods raise StateError. Values that are changed in place are not
    written: set the row again.
    """

    @property
    def topic_config(self) -> dict[str, str]:
        """The settings of its changelog: with a time to live, Kafka deletes old rows, too."""
        if self.ttl_s is None:
            return COMPACTED
        ttl_ms = math.ceil(self.ttl_s * 1_000)
        segment_ms = min(int(COMPACTED["segment.ms"]), max(SEGMENT_MS_MIN, ttl_ms))
        times = {"retention.ms": str(ttl_ms), "segment.ms": str(segment_ms)}
        return {**COMPACTED, "cleanup.policy": "compact,delete", **times}

    def _rows(self) -> tuple[Acting, JobRows]:
        current = acting.get()
        rows = None if current is None or current.rows is None else current.rows.get(self.name)
        if current is None or rows is None:
            raise StateError(f"table {self.name!r} is used in a handler whose route names it: tables=[{self.name}]")
        return current, rows

    def get(self, key: Key, default: Any = None) -> Any:
        """Returns the row of a key, as committed or as this job wrote it; the default where there is none."""
        _, rows = self._rows()
        data = rows.get(self._encode_key(key))
        return default if data is None else self._read(data)

    def __getitem__(self, key: Key) -> Value:
        _, rows = self._rows()
        data = rows.get(self._encode_key(key))
        if data is None:
            raise KeyError(key)
        value: Value = self._read(data)
        return value

    def __setitem__(self, key: Key, value: Value) -> None:
        if value is None:
            raise EncodeError(f"table {self.name!r}: None is no value; `del` deletes a row")
        current, rows = self._rows()
        self._write(current, rows, self._encode_key(key), self._encode(value))

    def __delitem__(self, key: Key) -> None:
        current, rows = self._rows()
        data = self._encode_key(key)
        if rows.get(data) is None:
            raise KeyError(key)
        self._write(current, rows, data, None)

    def __iter__(self) -> Iterator[Key]:
        return iter([self._read_key(key) for key, _ in self._rows()[1].items()])

    def __len__(self) -> int:
        return len(self._rows()[1].items())

    def __contains__(self, key: object) -> bool:
        return self._rows()[1].get(self._encode_key(key)) is not None

    def _write(self, current: Acting, rows: JobRows, key: bytes, value: bytes | None) -> None:
        message = current.message
        if rows.is_of_lane and (key not in current.keys if message is None else key != message.raw_key):
            of = "one of other keys" if message is None else f"of key {message.raw_key!r}"
            text = f"table {self.name!r}: the handler {of} writes the row of key {key!r}"
            raise StateError(
                f"{text}, which another job may write at the same time: by_key() gives it its own rows only"
            )
        # What a class writes for a batch is committed or forgotten as a whole.
        rows.set(0 if message is None else message.offset, key, value)


class ReferenceTable(KeyedRows[Key, Value]):
    """A table that others write: `customers = app.reference("customers", value=Customer)`.

    Its rows are the records of a compacted topic, which has as many partitions as the topic of the route. A handler
    whose route names it (`tables=[customers]`) sees the rows of its message's partition. They are there before its
    first message, and follow the topic from then on. Outside of such a handler its methods raise StateError.
    """

    _kind = "reference"
    _is_followed = True

    def _partition(self) -> int:
        current = acting.get()
        work = None if current is None else current.running
        if work is None:
            raise StateError(f"reference {self.name!r} is used in a handler whose route names it: tables=[{self.name}]")
        partition: int = work.partition
        return partition

    def _found(self, key: Any) -> bytes | None:
        try:
            return self.native.committed(self._partition(), self._encode_key(key))
        except ClosedError:
            text = f"reference {self.name!r} is used in a handler whose route names it: tables=[{self.name}]"
            raise StateError(text) from None

    def get(self, key: Key, default: Any = None) -> Any:
        """Returns the row of a key; the default where there is none."""
        data = self._found(key)
        return default if data is None else self._read(data)

    def __getitem__(self, key: Key) -> Value:
        data = self._found(key)
        if data is None:
            raise KeyError(key)
        value: Value = self._read(data)
        return value

    def __contains__(self, key: object) -> bool:
        return self._found(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return iter([self._read_key(key) for key, _ in self.native.committed_items(self._partition())])

    def __len__(self) -> int:
        return len(self.native.committed_items(self._partition()))
