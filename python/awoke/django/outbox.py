"""Messages that are sent if, and only if, the transaction of the database is committed: `outbox.send` writes a row.

The row is part of the transaction. A relay (`manage.py awoke_outbox`) sends it to Kafka and deletes it.
"""

from __future__ import annotations

from typing import Any

from django.db import connections, router

import awoke
from awoke.django.models import OutboxMessage
from awoke.payloads.message import Headers, Outgoing, header_pairs
from awoke.produce.middleware import through
from awoke.text.json_bytes import json_of_bytes

CHANNEL = "awoke_outbox"
"""The channel on which PostgreSQL tells a relay of new rows, when they are committed."""


def send(
    app: awoke.App,
    topic: str,
    value: Any,
    *,
    key: Any = None,
    headers: Headers | None = None,
    partition: int | None = None,
    timestamp_ms: int | None = None,
    using: str | None = None,
) -> None:
    """Writes a message into the outbox, as a part of the open transaction of the database.

    It is encoded now, and has all parts of a message that the app's producer sends. Messages are sent in the order of
    their rows; the order of a key holds if the transactions that send it wait for each other, as by
    `select_for_update`. Blocks for an INSERT.

    Raises:
        EncodeError: a value that can't be turned into bytes. ValueError: no relay could send the message.
        DatabaseError: see Django.
    """
    sent = through(app.middleware, Outgoing(topic, value, key, headers, partition, timestamp_ms))
    message = app.topic_formats(sent)
    check_sendable(message)
    pairs = [(name, json_of_bytes(_encoded(text))) for name, text in header_pairs(message.headers)]
    using = using or router.db_for_write(OutboxMessage)
    OutboxMessage.objects.using(using).create(
        topic=message.topic,
        key=_bytes(app, message.key),
        value=_bytes(app, message.value),
        headers=pairs,
        partition=message.partition,
        timestamp_ms=message.timestamp_ms,
    )
    if connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")


def _bytes(app: awoke.App, value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else bytes(app.format.encode(value))


def _encoded(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def check_sendable(message: Outgoing) -> None:
    """Refuses what the relay could not send, for ever: the messages behind it would wait.

    Raises:
        ValueError: Says which part is wrong.
    """
    if message.partition is not None and message.partition < 0:
        raise ValueError(f"partition must be 0 or more, not {message.partition}")
    if message.timestamp_ms is not None and message.timestamp_ms < 1:
        raise ValueError(f"timestamp_ms must be 1 or more, not {message.timestamp_ms}")
    for name, _ in header_pairs(message.headers):
        if "\0" in name:
            raise ValueError(f"the header name {name!r} has a zero byte")
