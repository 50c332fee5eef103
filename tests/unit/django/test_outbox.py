"""Rows of the outbox: they are part of the transaction, and hold what the producer would send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import transaction

from awoke.django import DjangoApp, outbox
from awoke.django.models import OutboxMessage
from awoke.errors import EncodeError
from awoke.payloads.message import Outgoing
from awoke.text.json_bytes import bytes_of_json


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [({"a": 1}, 7, (b'{"a":1}', b"7")), ("text", "key", (b"text", b"key")), (None, b"key", (None, b"key"))],
)
def test_values_and_keys_are_encoded_when_they_are_written(
    value: object, key: object, expected: tuple[bytes | None, bytes | None]
) -> None:
    with transaction.atomic():
        outbox.send(DjangoApp("shop"), "orders", value, key=key, headers={"tenant": "a"})
        row = OutboxMessage.objects.get()
        transaction.set_rollback(True)
    assert (row.topic, row.value, row.key, row.headers) == ("orders", *expected, [["tenant", "a"]])
    assert not OutboxMessage.objects.exists()


def test_every_part_of_a_message_is_written() -> None:
    headers = [("id", b"\xff\x00"), ("id", None), ("name", "\u00fc"), ("zero", "a\0b")]
    with transaction.atomic():
        outbox.send(DjangoApp("shop"), "orders", b"", headers=headers, partition=3, timestamp_ms=1_000)
        row = OutboxMessage.objects.get()
        transaction.set_rollback(True)
    assert (row.partition, row.timestamp_ms) == (3, 1_000)
    assert [name for name, _ in row.headers] == ["id", "id", "name", "zero"]
    assert [bytes_of_json(value) for _, value in row.headers] == [b"\xff\x00", None, "\u00fc".encode(), b"a\0b"]
    assert "\\u0000" not in json.dumps(row.headers), "PostgreSQL has no place for it"


@pytest.mark.parametrize(
    "part", [{"partition": -1}, {"timestamp_ms": 0}, {"headers": {"a\0b": "v"}}], ids=lambda part: str(*part)
)
def test_what_no_relay_could_send_is_refused_at_once(part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|zero byte"):
        outbox.send(DjangoApp("shop"), "orders", b"", **part)
    assert not OutboxMessage.objects.exists()


def test_middleware_of_outgoing_messages_sees_them() -> None:
    app = DjangoApp("shop")

    @app.outgoing
    def mark(message: Outgoing) -> Outgoing:
        return message._replace(headers={"marked": b"yes"})

    with transaction.atomic():
        outbox.send(app, "orders", b"")
        assert OutboxMessage.objects.get().headers == [["marked", "yes"]]
        transaction.set_rollback(True)


def test_a_value_that_cannot_be_encoded_writes_no_row() -> None:
    with pytest.raises((EncodeError, TypeError)):
        outbox.send(DjangoApp("shop"), "orders", object())
    assert not OutboxMessage.objects.exists()
