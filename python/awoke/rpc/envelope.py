"""The body of an argument or a result in a format: its bytes, with the headers that say how to read them.

A body without headers is the bytes themselves. Else it begins with `MAGIC`. Then come the number of headers in two
bytes; of each header its name and its value, each with its length in four bytes before it; and the bytes. `MAGIC` alone
is None. Numbers are big-endian.
"""

from __future__ import annotations

from awoke.payloads.formats.format import Payload

MAGIC = b"\xffrpc"

Opened = tuple[bytes | None, list[tuple[str, bytes | None]]]


def closed(payload: Payload | None) -> bytes:
    """Returns a value, or None, as a body."""
    if payload is None:
        return MAGIC
    data, headers = payload
    if not headers and not data.startswith(MAGIC):
        return data
    parts = [MAGIC, len(headers).to_bytes(2)]
    for text, value in headers:
        name = text.encode()
        parts += [len(name).to_bytes(4), name, len(value).to_bytes(4), value]
    return b"".join((*parts, data))


def opened(body: bytes) -> Opened:
    """Returns the bytes of a value, or None, and the headers.

    Raises:
        ValueError: The body ends within its headers.
    """
    if not body.startswith(MAGIC):
        return body, []
    if len(body) == len(MAGIC):
        return None, []
    at = len(MAGIC) + 2
    _check(body, at)
    count = int.from_bytes(body[at - 2 : at])
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _part(body, at)
        value, at = _part(body, at)
        headers.append((name.decode(), value))
    return body[at:], headers


def _part(body: bytes, at: int) -> tuple[bytes, int]:
    _check(body, at + 4)
    end = at + 4 + int.from_bytes(body[at : at + 4])
    _check(body, end)
    return body[at + 4 : end], end


def _check(body: bytes, end: int) -> None:
    if end > len(body):
        raise ValueError("the body ends within its headers")
