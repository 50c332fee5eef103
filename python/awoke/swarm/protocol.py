"""The messages between mold, nodes and supervisor, over sockets that keep messages apart (SOCK_SEQPACKET).

The first byte names the format: JSON, or the binary vitals, which a thread of the engine writes without Python. Mold
and nodes run user code, so the supervisor trusts no message: `decode` refuses one that has not a type declared here.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterable
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from awoke.operate.commands.views import Audit, CommandResult, OperatorCommand, SwarmNode

MESSAGE_MAX = 1 << 20
TEXT_MAX = 50_000
"""The most characters of an error's text."""
SHOWN_TEXT_MAX = 500
"""The most characters of an error's text that other nodes are told."""
DESCRIPTORS_MAX = 4
VITALS = struct.Struct("<IQIQQQQIq")
VITALS_MARK = b"V"
JSON_MARK = b"J"

Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Decoded = TypeVar("Decoded")


class Vitals(NamedTuple):
    """A sign of life. The order of the fields is the engine's (`lifeline.rs`)."""

    sequence: int
    resident_bytes: int
    threads: int
    gil_wait_ms: int
    """The time for which a Python thread that was woken has waited for the GIL."""
    oldest_job_ms: int
    """The run time of the oldest job."""
    poll_age_ms: int
    """The time since the group member's thread polled last."""
    jobs: int
    """The jobs that workers got since the start."""
    assigned: int
    """The number of assigned partitions, as Python knew last."""
    lag: int
    """The lag in messages, as Python knew last; -1 if unknown."""


# A mold to its supervisor.


class MoldReady(msgspec.Struct, tag_field="kind", tag="ready"):
    """The app is imported."""

    resident_bytes: Number
    single: str = ""
    """The reason why only one node may run the app; empty where any number may."""


class Refused(msgspec.Struct, tag_field="kind", tag="refused"):
    """The app can't run as it is."""

    text: str


class Forked(msgspec.Struct, tag_field="kind", tag="forked"):
    """A node's process exists; comes with its pidfd."""

    node: Number
    pid: Annotated[int, msgspec.Meta(gt=0, lt=1 << 31)]


class NotForked(msgspec.Struct, tag_field="kind", tag="not_forked"):
    """A node's process could not be started, or not be reported."""

    node: Number
    text: str


# A supervisor to a mold.


class Fork(msgspec.Struct, tag_field="kind", tag="fork"):
    """Asks for a node; comes with the node's end of its control socket."""

    node: Number


# A node to its supervisor.


class Tripwire(msgspec.Struct, tag_field="kind", tag="tripwire"):
    """Comes with a descriptor that becomes readable at the process's end."""


class NodeReady(msgspec.Struct, tag_field="kind", tag="ready"):
    """The app runs."""


class Assigned(msgspec.Struct, tag_field="kind", tag="assigned"):
    """The group has assigned partitions to it."""


class Holds(msgspec.Struct, tag_field="kind", tag="holds"):
    """The number of partitions that are assigned to it now."""

    count: Number


class BrokerConnections(msgspec.Struct, tag_field="kind", tag="connections"):
    """The reason why it has no connection to brokers; empty if it has one."""

    text: str


class StartFailed(msgspec.Struct, tag_field="kind", tag="failed"):
    """The reason why the process ends."""

    text: str
    is_name_taken: bool = False
    """True if another process has the name of this node: the next one would take it back, and so on for ever."""


class NodeAnswered(msgspec.Struct, tag_field="kind", tag="answered"):
    """The answer to `Ask`."""

    request: Number
    result: CommandResult


# A supervisor to a node.


class Ask(msgspec.Struct, tag_field="kind", tag="ask"):
    """Asks to execute a command, or for `metrics` and `health`."""

    request: Number
    command: OperatorCommand


class AuditRecord(msgspec.Struct, tag_field="kind", tag="record"):
    """Tells of a command on the supervisor's socket, for the audit. It has no answer."""

    audit: Audit


class Swarm(msgspec.Struct, tag_field="kind", tag="swarm"):
    """Tells the nodes of the swarm, for the reports of this one. It has no answer."""

    pid: Number
    nodes: list[SwarmNode]


MoldSays = MoldReady | Refused | Forked | NotForked
NodeSays = Tripwire | NodeReady | Assigned | Holds | BrokerConnections | StartFailed | NodeAnswered
NodeIsAsked = Ask | Swarm | AuditRecord
FROM_MOLD: msgspec.json.Decoder[MoldSays] = msgspec.json.Decoder(MoldSays)
TO_MOLD: msgspec.json.Decoder[Fork] = msgspec.json.Decoder(Fork)
FROM_NODE: msgspec.json.Decoder[NodeSays] = msgspec.json.Decoder(NodeSays)
TO_NODE: msgspec.json.Decoder[NodeIsAsked] = msgspec.json.Decoder(NodeIsAsked)


class Received(NamedTuple):
    """A message, not decoded yet, and the descriptors that came with it; empty at the end."""

    data: bytes
    descriptors: list[int]


def pair() -> tuple[socket.socket, socket.socket]:
    """Returns the two ends of a control socket; the first one does not block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


def encode(message: msgspec.Struct) -> bytes:
    """Returns a JSON message as bytes."""
    return JSON_MARK + msgspec.json.encode(message)


def decode(data: bytes, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
    """Returns a JSON message.

    Raises:
        ValueError: The data is none of the expected messages.
    """
    if data[:1] != JSON_MARK:
        raise ValueError(f"a message of {len(data)} bytes that begins with {data[:1]!r}")
    try:
        return decoder.decode(data[1:])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None


def decode_node(data: bytes) -> Vitals | NodeSays:
    """Returns a message of a node.

    Raises:
        ValueError: The data is no message of a node.
    """
    if data[:1] == VITALS_MARK and len(data) == 1 + VITALS.size:
        return Vitals(*VITALS.unpack(data[1:]))
    return decode(data, FROM_NODE)


def receive(control: socket.socket) -> Received | None:
    """Returns the next message; `None` if there is none yet.

    Descriptors are missing if this process may open no more.
    """
    try:
        data, descriptors, _, _ = socket.recv_fds(control, MESSAGE_MAX, DESCRIPTORS_MAX)
    except BlockingIOError:
        return None
    except OSError:
        return Received(b"", [])
    for each in descriptors:
        os.set_inheritable(each, False)  # Python 3.11 ignores the flag of `recv_fds` that does it.
    return Received(data, descriptors)


def close_all(descriptors: Iterable[int]) -> None:
    """Closes descriptors that came with a message and are not used."""
    for each in descriptors:
        with contextlib.suppress(OSError):
            os.close(each)
