"""Rows of the outbox: they are part of the transaction, and hold what the producer would send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import transaction

import awoke
from awoke.django import DjangoApp, outbox
from awoke.django.models import OutboxMessage
from awoke.django.relay import Relay
from awoke.errors import EncodeError
from awoke.payloads.message import Outgoing
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.text.json_bytes import bytes_of_json
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import WITHIN_S


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


@pytest.mark.parametrize("value", [{"name": "Ada"}, b"Ada, as bytes", "Ada, as text"], ids=["dict", "bytes", "text"])
@pytest.mark.parametrize("by", ["object", "name"])
def test_a_value_for_an_encrypted_topic_is_encrypted_in_its_row(value: Any, by: str) -> None:
    app, keys = DjangoApp("shop"), {"a": b"k" * 32}
    patients = app.topic("patients", value=awoke.encrypted(dict, keys=keys, current="a"))
    headers: dict[str, bytes | str | None] = {
        "awoke-encryption-key": b"a",
        "awoke-encryption-version": b"2",
        "tenant": "x",
    }
    with transaction.atomic():
        outbox.send(app, patients if by == "object" else "patients", value, headers=headers)
        row = OutboxMessage.objects.get()
        transaction.set_rollback(True)
    assert b"Ada" not in bytes(row.value)
    said = [(name, bytes_of_json(each)) for name, each in row.headers]
    decode: Any = awoke.encrypted(bytes, keys=keys, current="a").decoder("patients", "value", NO_SCHEMAS)
    assert b"Ada" in decode(bytes(row.value), said)
    assert sorted(name for name, _ in said) == sorted(headers), "each once"


# A relay keeps the sockets that wake it until its process ends.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_encrypted_value_leaves_the_outbox_so_and_is_read(mock_cluster: MockCluster) -> None:
    app, keys = DjangoApp("shop", bootstrap_servers=mock_cluster.bootstrap_servers), {"a": b"k" * 32}
    patients = app.topic(unique("patients"), value=awoke.encrypted(dict, keys=keys, current="a"))
    mock_cluster.create_topic(patients)
    with transaction.atomic():
        outbox.send(app, patients, {"name": "Ada"}, key="1")
    assert Relay(app, name=unique("outbox")).run_once() == 1
    with awoke.Reader(patients, bootstrap_servers=mock_cluster.bootstrap_servers) as reader:
        (message,) = reader.read_until_end(WITHIN_S)
        assert message.value == {"name": "Ada"}
        assert b"Ada" not in (message.raw_value or b"Ada")


def test_a_value_that_cannot_be_encoded_writes_no_row() -> None:
    with pytest.raises((EncodeError, TypeError)):
        outbox.send(DjangoApp("shop"), "orders", object())
    assert not OutboxMessage.objects.exists()
