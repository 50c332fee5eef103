"""JSON that awoke writes and reads by itself: reports, error records, audits, pauses. One `encode` and one `decode`.

A writer to a topic may write anything there, and a thread that reads it must outlive that. So `decode` has no
exception: it returns None for all that is not of the type, also for what is nested too deep, and callers count it.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

Kind = TypeVar("Kind")

Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Number = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
"""A number that can be multiplied and rounded."""
Moment = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Milliseconds since 1970, up to the year 9999: as a date, it can be shown."""
Text = Annotated[str, msgspec.Meta(max_length=20_000)]
Name = Annotated[str, msgspec.Meta(max_length=1_000)]

UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError)
"""The errors of bytes that are no record. `UnicodeDecodeError` is a `ValueError`."""


def encode(record: Any) -> bytes:
    """Returns a record as JSON. The name of a topic may be an `awoke.Topic`, which msgspec does not write."""
    return msgspec.json.encode(record, enc_hook=_plain)


def decode(data: bytes | msgspec.Raw | str | None, kind: type[Kind]) -> Kind | None:
    """Returns the record of this type that bytes encode; None if they are none."""
    try:
        return msgspec.json.decode(data or b"", type=kind)
    except UNREADABLE:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"a record has no {type(value).__name__}")
