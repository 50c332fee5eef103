"""Messages that are decoded by the schemas that they name, and the notes about the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from awoke.errors import ConfigError, DecodeError
from awoke.payloads.decoding.registered import Decoded, RegisteredFormat, ShownPart, part_of
from awoke.payloads.registry import RegistryUnavailable, Schema, SchemaNotFound, SchemaRegistry
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.registry.wire_format import header_value, prefix
from awoke.testing.registry import EmbeddedRegistry

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "item", "type": "string"},
        {"name": "at", "type": {"type": "int", "logicalType": "date"}},
        {"name": "photo", "type": "bytes"},
    ],
}
PAYMENT = {"type": "object", "properties": {"amount": {"type": "number"}}}


class Written(NamedTuple):
    """The schemas of a registry, and the function that decodes by them."""

    order: Any
    payment: Any
    decode: Any


@pytest.fixture
def written() -> Iterator[Written]:
    """A registry with a schema of Avro and one of JSON."""
    with EmbeddedRegistry() as registry, SchemaRegistry(registry.url) as client:
        order = client.register("orders-value", Schema(json.dumps(ORDER)))
        payment = client.register("payments-value", Schema(json.dumps(PAYMENT), "JSON"))
        schemas = Schemas(lambda: client)
        yield Written(order, payment, RegisteredFormat(schemas).decoder("orders", "value", schemas))


AVRO = b"\x06tea\x02\x02\xff"


def test_avro_becomes_json(written: Written) -> None:
    text = '{"item":"tea","at":"1970-01-02","photo":"/w=="}'
    assert written.decode(prefix(written.order.id) + AVRO, []) == Decoded(text, written.order.id)
    headers = [("__value_schema_id", header_value(written.order.guid))]
    assert written.decode(AVRO, headers) == Decoded(text, written.order.guid)


def test_json_is_checked_by_its_schema(written: Written) -> None:
    before = prefix(written.payment.id)
    assert written.decode(before + b'{ "amount": 2 }', []) == Decoded('{"amount":2}', written.payment.id)
    with pytest.raises(ValueError, match="breaks the rule 'type'"):
        written.decode(before + b'{"amount": "two"}', [])


def test_no_content_controls_the_terminal(written: Written) -> None:
    decoded = written.decode(prefix(written.payment.id) + '{"a": "\u2028\x9b\\u001b"}'.encode(), [])
    assert decoded.json.isprintable()
    assert json.loads(decoded.json) == {"a": "\u2028\x9b\x1b"}


def test_the_format_only_reads(written: Written) -> None:
    with pytest.raises(TypeError, match="only reads"):
        RegisteredFormat(Schemas.none()).encoder("orders", "value", Schemas.none())


class FakeMessage:
    """A message whose key and value decode, or fail for a reason."""

    def __init__(self, raw: bytes | None, found: object, headers: list[tuple[str, bytes | None]] | None = None) -> None:
        self.raw_key = self.raw_value = raw
        self.headers = headers or []
        self._found = found

    @property
    def value(self) -> object:
        if isinstance(self._found, BaseException):
            raise DecodeError("it does not decode") from self._found
        return self._found

    key = value


DECODED = Decoded("1", 1)


def test_a_decoded_part_is_shown_so() -> None:
    assert part_of(FakeMessage(b"\0ab", DECODED), "value") == ShownPart("value", b"\0ab", DECODED)
    assert part_of(FakeMessage(b"\0ab", DECODED), "key") == ShownPart("key", b"\0ab", DECODED)


def test_a_tombstone_and_a_key_without_a_schema_are_no_failures() -> None:
    assert part_of(FakeMessage(None, ValueError()), "value") == ShownPart("value", None)
    assert part_of(FakeMessage(b"k1", ValueError()), "key") == ShownPart("key", b"k1")


def test_a_key_that_names_its_schema_in_a_header_is_decoded() -> None:
    message = FakeMessage(b"k1", DECODED, [("__key_schema_id", b"")])
    assert part_of(message, "key") == ShownPart("key", b"k1", DECODED)


@pytest.mark.parametrize(
    ("cause", "note"),
    [
        (ValueError("no schema"), "no schema"),
        (SchemaNotFound("no such id"), "no such id"),
        (EOFError("end"), "EOFError: end"),
    ],
)
def test_a_part_that_does_not_decode_has_a_note(cause: Exception, note: str) -> None:
    assert part_of(FakeMessage(b"ab", cause), "value") == ShownPart("value", b"ab", note=note)


@pytest.mark.parametrize("cause", [RegistryUnavailable("away"), ConfigError("no fastavro"), KeyboardInterrupt()])
def test_a_failure_of_all_messages_ends_the_command(cause: BaseException) -> None:
    with pytest.raises(type(cause)):
        part_of(FakeMessage(b"ab", cause), "value")
