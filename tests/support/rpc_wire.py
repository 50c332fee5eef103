"""A client of calls in another language: it writes and reads the records of a service by hand, signatures included."""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
import time
from collections.abc import Mapping

import awoke
from awoke import rpc
from tests.support.waiting import WITHIN_S, Collected

ID = b"sixteen bytes id"

Headers = dict[str, bytes | str | None]

SIGNED = (
    "rpc-kind",
    "rpc-id",
    "rpc-method",
    "rpc-caller",
    "rpc-deadline-ms",
    "rpc-budget-ms",
    "rpc-reply-topic",
    "rpc-reply-partition",
    "rpc-idempotency-key",
    "rpc-credit",
    "rpc-signed",
)


class Wire:
    """A service, and a producer that writes to its topics by hand."""

    def __init__(self, app: awoke.App, producer: awoke.Producer) -> None:
        self.app, self._producer = app, producer
        self.refused = Collected[str]()
        app.events.subscribe("rpc.refused", lambda event: self.refused.add(event.fields["reason"]))

    def headers(self, **more: str | bytes | None) -> Headers:
        """Returns the headers of a call of `echo`."""
        plain: Headers = {
            "rpc-kind": "call",
            "rpc-id": ID,
            "rpc-method": "echo",
            "rpc-reply-topic": f"{self.app.name}.rpc.replies",
            "rpc-reply-partition": "0",
            "rpc-deadline-ms": str(int((time.time() + WITHIN_S) * 1_000)),
        }
        changed = {**plain, **{name.replace("_", "-"): value for name, value in more.items()}}
        return {name: value for name, value in changed.items() if value is not None}

    @property
    def topic(self) -> str:
        """The topic of requests."""
        return f"{self.app.name}.rpc.calls"

    def call(self, body: bytes, headers: Headers, *, key: bytes | None = None) -> None:
        """Writes a request."""
        self._producer.produce(self.topic, body, key=key, headers=headers, partition=0).wait(WITHIN_S)

    def reply(self, caller: rpc.Caller, body: bytes, headers: Headers) -> None:
        """Writes a reply to a caller's partition."""
        topic, partition = caller.replies_at
        self._producer.produce(topic, body, headers=headers, partition=partition).wait(WITHIN_S)

    def replies(self, count: int) -> list[tuple[str, object]]:
        """Waits for this many replies of the service; returns kind and body of each."""
        found: list[tuple[str, object]] = []
        topic, settings = f"{self.app.name}.rpc.replies", self.app.settings
        with awoke.Reader(topic, bootstrap_servers=settings.bootstrap_servers) as reader:
            for message in reader:
                headers = dict(message.headers)
                if headers["rpc-id"] == ID:
                    found.append(((headers["rpc-kind"] or b"").decode(), json.loads(message.value or b"null")))
                if len(found) == count:
                    break
        return found


def signature(secret: bytes, fields: list[bytes | None]) -> bytes:
    """Returns a signature, as `docs/rpc_protocol.md` says."""
    mac = hmac.new(secret, digestmod=hashlib.sha256)
    for field in fields:
        mac.update(struct.pack(">Q", 2**64 - 1 if field is None else len(field)))
        mac.update(field or b"")
    return b"\x01" + mac.digest()


def sign_request(secret: bytes, topic: str, key: bytes | None, headers: Mapping[str, object], body: bytes) -> bytes:
    """Returns the signature of a request."""
    plain = {name: value.encode() if isinstance(value, str) else value for name, value in headers.items()}
    listed: bytes = plain.get("rpc-signed") or b""  # type: ignore[assignment]
    names = [name for name in listed.decode().split(",") if name]
    fields = [b"awoke-rpc-request-v1", topic.encode(), key, *(plain.get(name) for name in (*SIGNED, *names)), body]
    return signature(secret, fields)  # type: ignore[arg-type]


def sign_reply(secret: bytes, topic: str, call: bytes, kind: str, body: bytes) -> bytes:
    """Returns the signature of the only reply to a call."""
    return signature(secret, [b"awoke-rpc-reply-v1", topic.encode(), call, kind.encode(), None, None, body])
