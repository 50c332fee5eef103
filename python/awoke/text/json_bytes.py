"""Bytes in JSON: text where the bytes are UTF-8, and else base64. One form for recordings, envelopes and outboxes.

Bytes with a zero byte are base64, too: PostgreSQL's JSON has no place for it, and many tools cut a text there.
"""

from __future__ import annotations

import base64
import contextlib
from typing import Any

BytesAsJson = str | dict[str, str] | None
"""Bytes in a document: text, `{"base64": …}`, or null."""


def json_of_bytes(data: bytes | None) -> BytesAsJson:
    """Returns bytes as they stand in a document."""
    if data is None:
        return None
    with contextlib.suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode()
    return {"base64": base64.b64encode(data).decode()}


def bytes_of_json(value: Any) -> bytes | None:
    """Returns the bytes that stand in a document.

    Raises:
        ValueError: They are neither text, base64 nor null.
    """
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        return base64.b64decode(value["base64"], validate=True)
    raise ValueError(f"expected text, {{'base64': …}} or null, got {type(value).__name__}")
