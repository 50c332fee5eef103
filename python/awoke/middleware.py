"""What every message that leaves may go through: headers that are added, values that are turned into others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Headers = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]


class Outgoing(NamedTuple):
    """A message on its way out; `_replace` makes another one of it."""

    topic: str
    value: Any
    """As it was given to `produce`: not encoded yet."""
    key: bytes | str | None = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp_ms: int | None = None

    def with_header(self, name: str, value: bytes | str | None) -> Outgoing:
        """The message with one header more, behind those that it has."""
        headers = self.headers or ()
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        return self._replace(headers=[*pairs, (name, value)])


Middleware = Callable[[Outgoing], Outgoing]
"""Makes of a message what is to be sent. Runs on the thread that sends; what it raises keeps the message from being sent."""


def through(middleware: Sequence[Middleware], message: Outgoing) -> Outgoing:
    """What the functions, in their order, make of a message."""
    for each in middleware:
        message = each(message)
    return message
