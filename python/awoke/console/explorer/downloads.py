"""Makes files of messages: the bytes of a key or a value as they are, or all parts of a message as JSON."""

from __future__ import annotations

import base64
import re
from typing import Any, Literal

import msgspec

from awoke._native import Message
from awoke.codecs.formats import Part
from awoke.console.explorer.parts import Parts
from awoke.console.explorer.views import Download
from awoke.errors import AwokeError
from awoke.secrets import HIDDEN

Kind = Literal["key", "value", "message"]
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
BYTES = "application/octet-stream"
"""No browser shows it: content of a topic may be a page with scripts."""


def download(message: Message[Any, Any], kind: Kind, shown: Parts) -> Download:
    """Returns a file with the message or a part of it. Its content is foreign: only for who may see payloads.

    In a message, secret fields are masked; a part that has some is no file of its own. May block for a schema.

    Raises:
        AwokeError: There is no key, or the message is a tombstone; the part has secret fields.
    """
    name = UNSAFE.sub("_", f"{message.topic}-{message.partition}-{message.offset}")
    if kind == "message":
        content = msgspec.json.encode(parts(message, shown))
        return Download(name=f"{name}.json", media_type="application/json", content=content)
    raw = message.raw_key if kind == "key" else message.raw_value
    at = f"{message.topic}[{message.partition}] offset {message.offset}"
    if raw is None:
        raise AwokeError(f"{at} has no {kind}")
    if shown.secrets(message.topic, kind, message.headers):
        raise AwokeError(f"the {kind} of {at} has secret fields: download the message, in which they are masked")
    return Download(name=f"{name}.{kind}.bin", media_type=BYTES, content=raw)


def parts(message: Message[Any, Any], shown: Parts) -> dict[str, Any]:
    """Returns all parts of a message for a JSON document: text as it is, and other bytes as base64 beside it.

    A part with secret fields is JSON in which they are masked. May block for a schema.
    """
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        **named("key", without_secrets(message, "key", message.raw_key, shown)),
        **named("value", without_secrets(message, "value", message.raw_value, shown)),
        "headers": [{"name": name, **named("value", value)} for name, value in message.headers],
    }


def without_secrets(message: Message[Any, Any], part: Part, raw: bytes | None, shown: Parts) -> bytes | None:
    """Returns a key or a value as it is, or as JSON in which its secret fields are masked."""
    if raw is None or not shown.secrets(message.topic, part, message.headers):
        return raw
    content = shown.content(message.topic, part, raw, message.headers)
    return (HIDDEN if content.text is None or content.is_cut else content.text).encode()


def named(name: str, content: bytes | None) -> dict[str, str | None]:
    """Returns content under its name, or as base64 under `name_base64` where it is no text."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}
