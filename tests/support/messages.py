"""Messages without an engine."""

from __future__ import annotations

from typing import NamedTuple


class StoredMessage(NamedTuple):
    """A message as a reader gives it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    topic: str = "orders.dead"
    partition: int = 0
    offset: int = 7
    timestamp_ms: int | None = 1_760_000_000_000

    @property
    def raw_value(self) -> bytes | None:
        return self.value

    @property
    def raw_key(self) -> bytes | None:
        return self.key
