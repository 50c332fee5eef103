"""Messages that are sent if, and only if, the transaction of the database is committed: `outbox.send` writes a row.

The row is part of the transaction. A relay (`manage.py awoke_outbox`) sends it to Kafka and deletes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connections, router

import awoke
from awoke.django.models import OutboxMessage
from awoke.payloads.message import Outgoing
from awoke.produce.middleware import through

CHANNEL = "awoke_outbox"
"""The channel on which PostgreSQL tells a relay of new rows, when they are committed."""


def send(
    app: awoke.App,
    topic: str,
    value: Any,
    *,
    key: Any = None,
    headers: Mapping[str, str] | None = None,
    using: str | None = None,
) -> None:
    """Writes a message into the outbox, as a part of the open transaction of the database.

    It is encoded now, as by the app's producer. Messages are sent in the order of their rows; the order of a key holds
    if the transactions that send it wait for each other, as by `select_for_update`. Blocks for an INSERT.

    Raises:
        EncodeError: a value that can't be turned into bytes. DatabaseError: see Django.
    """
    message = app.topic_formats(through(app.middleware, Outgoing(topic, value, key, headers)))
    pairs = [(name, _text(text)) for name, text in (dict(message.headers or {})).items()]
    using = using or router.db_for_write(OutboxMessage)
    OutboxMessage.objects.using(using).create(
        topic=message.topic,
        key=_bytes(app, message.key),
        value=_bytes(app, message.value),
        headers=pairs,
    )
    if connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")


def _bytes(app: awoke.App, value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else bytes(app.format.encode(value))


def _text(value: bytes | str | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
