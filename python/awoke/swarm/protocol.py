"""What mold, nodes and supervisor say to each other, over sockets that keep messages apart (SOCK_SEQPACKET).

A message is one byte that says what it is, and the rest: JSON, but for the vitals, which a thread writes that knows no
Python.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, NamedTuple

import msgspec

MESSAGE_MAX = 1 << 20
VITALS = struct.Struct("<IQIQQQQIq")
VITALS_MARK = b"V"
JSON_MARK = b"J"


class Vitals(NamedTuple):
    """How a node is, in the order in which the engine writes it (`lifeline.rs`)."""

    sequence: int
    resident_bytes: int
    threads: int
    gil_wait_ms: int
    """How long a Python thread that was woken has waited for the GIL."""
    oldest_job_ms: int
    """How long the oldest job has run."""
    poll_age_ms: int
    """How long ago the group member's thread came up last."""
    jobs: int
    """Given to workers since the start."""
    assigned: int
    """Partitions, as Python knew last."""
    lag: int
    """Messages, as Python knew last; -1 unknown."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


def encode(kind: str, **fields: Any) -> bytes:
    """A message of JSON."""
    return JSON_MARK + msgspec.json.encode({"kind": kind, **fields})


def decode(data: bytes) -> Vitals | dict[str, Any]:
    """What a message says.

    Raises:
        ValueError: it is none of ours.
    """
    if data[:1] == VITALS_MARK and len(data) == 1 + VITALS.size:
        return Vitals(*VITALS.unpack(data[1:]))
    if data[:1] == JSON_MARK:
        found: dict[str, Any] = msgspec.json.decode(data[1:], type=dict[str, Any])
        return found
    raise ValueError(f"a message of {len(data)} bytes that begins with {data[:1]!r}")
