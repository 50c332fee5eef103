"""Rows of the outbox: they are part of the transaction, and hold what the producer would send."""

from __future__ import annotations

import pytest
from django.db import transaction

from awoke.django import DjangoApp, outbox
from awoke.django.models import OutboxMessage
from awoke.errors import EncodeError
from awoke.payloads.message import Outgoing


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
