"""Makes files of messages: the bytes of a key or a value as they are, or all parts of a message as JSON."""

from __future__ import annotations

import base64
import re
from typing import Any, Literal

import msgspec

from awoke._native import Message
from awoke.console.explorer.views import Download
from awoke.errors import AwokeError

Kind = Literal["key", "value", "message"]
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
BYTES = "application/octet-stream"
"""No browser shows it: content of a topic may be a page with scripts."""


def download(message: Message[Any, Any], kind: Kind) -> Download:
    """Returns a file with the message or a part of it. Its content is foreign: only for who may see payloads.

    Raises:
        AwokeError: There is no key, or the message is a tombstone.
    """
    name = UNSAFE.sub("_", f"{message.topic}-{message.partition}-{message.offset}")
    if kind == "message":
        return Download(name=f"{name}.json", media_type="application/json", content=msgspec.json.encode(parts(message)))
    content = message.raw_key if kind == "key" else message.raw_value
    if content is None:
        at = f"{message.topic}[{message.partition}] offset {message.offset}"
        raise AwokeError(f"{at} has no {kind}")
    return Download(name=f"{name}.{kind}.bin", media_type=BYTES, content=content)


def parts(message: Message[Any, Any]) -> dict[str, Any]:
    """Returns all parts of a message for a JSON document: text as it is, and other bytes as base64 beside it."""
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        **named("key", message.raw_key),
        **named("value", message.raw_value),
        "headers": [{"name": name, **named("value", value)} for name, value in message.headers],
    }


def named(name: str, content: bytes | None) -> dict[str, str | None]:
    """Returns content under its name, or as base64 under `name_base64` where it is no text."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}
