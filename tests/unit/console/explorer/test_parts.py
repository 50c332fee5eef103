"""Contents of messages: decoded by the route's type, as they are, or hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.console.explorer.parts import BYTES_MAX, TEXT_MAX, DecodedParts, RouteDecoders, json_of
from awoke.declare.secret_topics import SecretPart, SecretTopics, secrets_of
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.registry import Schema, SchemaRegistry
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.payloads.secret_paths import SecretPaths
from awoke.settings import load
from awoke.testing.registry import EmbeddedRegistry
from awoke.text.secrets import HIDDEN
from tests.support.messages import stored_message

SETTINGS = load({}).values


class Order(msgspec.Struct):
    item: str
    count: int = 1


@pytest.fixture
def parts() -> Iterator[DecodedParts]:
    routes = {"orders": RouteDecoders.of((Order, None), BY_TYPE, "orders", NO_SCHEMAS)}
    with DecodedParts(SETTINGS, routes, reveals=True) as found:
        yield found


def test_a_value_is_decoded_by_the_type_of_its_route(parts: DecodedParts) -> None:
    found = parts.content("orders", "value", b'{"item":"tea","more":1}', [])
    assert (found.form, found.decoder, found.note) == ("json", "Order", None)
    assert json.loads(found.text or "") == {"item": "tea", "count": 1}


def test_a_value_that_does_not_decode_is_shown_as_it_is_with_the_reason(parts: DecodedParts) -> None:
    found = parts.content("orders", "value", b'{"item":1}', [])
    assert found.form == "json"
    assert "it is not decoded: " in (found.note or "")


@pytest.mark.parametrize(
    ("raw", "form", "text"),
    [
        (b"tea", "text", "tea"),
        (b'{"a":[1]}', "json", '{\n  "a": [\n    1\n  ]\n}'),
        (b"[not json", "text", "[not json"),
        (b"", "text", ""),
        (b"\xff\x00", "bytes", "ff 00"),
        (b"\x1b[31m<script>\n", "text", "\\x1b[31m<script>\n"),
        ('{"a":"\u202e"}'.encode(), "json", '{\n  "a": "\\u202e"\n}'),
        (b"[" * 100_000, "text", "[" * TEXT_MAX),
    ],
)
def test_content_without_a_decoder_is_shown_as_it_is_and_harmless(
    parts: DecodedParts, raw: bytes, form: str, text: str
) -> None:
    found = parts.content("payments", "value", raw, [])
    assert (found.form, found.text, found.size_bytes) == (form, text, len(raw))


def test_large_content_is_cut_and_not_decoded(parts: DecodedParts) -> None:
    found = parts.content("orders", "value", b"x" * (BYTES_MAX + 1), [])
    assert (found.is_cut, found.size_bytes, len(found.text or "")) == (True, BYTES_MAX + 1, TEXT_MAX)
    assert "a download has all" in (found.note or "")


def test_hidden_content_tells_its_size_alone() -> None:
    message: Any = stored_message(b"secret key", b'{"item":"secret"}', [("trace", b"secret")], "orders")
    with DecodedParts(SETTINGS) as parts:
        found = parts.message(message)
    assert b"secret" not in msgspec.json.encode(found).replace(b"trace", b"")
    assert (found.value.form, found.value.size_bytes, found.key_hash) == ("hidden", 17, found.key_hash)
    assert found.key_hash


def test_a_tombstone_and_a_missing_key_have_no_content(parts: DecodedParts) -> None:
    message: Any = stored_message(None, None, [("empty", None)], "orders")
    found = parts.message(message)
    assert (found.key.form, found.value.form, found.headers[0].value.form) == ("none", "none", "none")
    assert found.key_hash is None


def test_a_value_is_decoded_by_the_schema_that_it_names() -> None:
    with EmbeddedRegistry() as registry:
        settings = load({"registry_url": registry.url}).values
        with SchemaRegistry(registry.url) as client:
            text = json.dumps({"type": "object", "properties": {"item": {"type": "string"}}})
            registered = client.register("orders-value", Schema(text, "JSON"))
        raw = b"\0" + registered.id.to_bytes(4) + b'{"item":"tea"}'
        with DecodedParts(settings, reveals=True) as parts:
            found = parts.content("orders", "value", raw, [])
            unknown = parts.content("orders", "value", b"\0\0\0\0\x63{}", [])
    assert (found.form, found.decoder, found.schema) == ("json", "registry", registered.id)
    assert "it is not decoded" in (unknown.note or "")


@dataclass
class Place:
    street: str


class Odd:
    def __str__(self) -> str:
        return "odd"


@pytest.mark.parametrize(
    ("value", "document"),
    [({1: Place("a")}, '{"1":{"street":"a"}}'), (Order("tea", 2), '{"item":"tea","count":2}'), ([Odd()], '["odd"]')],
)
def test_any_decoded_value_becomes_json(value: object, document: str) -> None:
    assert json_of(value) == document


class Payment(msgspec.Struct):
    item: str
    card: Annotated[str, awoke.Secret]


@pytest.fixture
def masking() -> Iterator[DecodedParts]:
    routes = {"payments": RouteDecoders.of((Payment, None), BY_TYPE, "payments", NO_SCHEMAS)}
    secrets = SecretTopics(secrets_of("payments", Payment))
    with DecodedParts(SETTINGS, routes, secrets, reveals=True) as found:
        yield found


def test_secret_fields_are_masked(masking: DecodedParts) -> None:
    found = masking.content("payments", "value", b'{"item":"tea","card":"4711"}', [])
    assert json.loads(found.text or "") == {"item": "tea", "card": HIDDEN}


@pytest.mark.parametrize("raw", [b'{"item":1,"card":"4711"}', b"4711", b'{"card":"4711"}' + b" " * BYTES_MAX])
def test_content_with_secret_fields_that_does_not_decode_is_hidden(masking: DecodedParts, raw: bytes) -> None:
    found = masking.content("payments", "value", raw, [])
    assert (found.form, found.text, found.size_bytes) == ("hidden", None, len(raw))
    assert b"4711" not in msgspec.json.encode(found)


@pytest.fixture
def named() -> Iterator[DecodedParts]:
    """As a console that has no types, but their names of secrets."""
    secrets = SecretTopics(
        [
            *secrets_of("payments", Payment),
            SecretPart(r"pay\..*", "value", "json", SecretPaths(["/card"]), is_pattern=True),
            SecretPart("packed", "value", "other", SecretPaths(["/card"])),
            SecretPart("framed", "value", "registry", SecretPaths(["/card"])),
        ]
    )
    with EmbeddedRegistry() as registry:
        settings = load({"registry_url": registry.url}).values
        with DecodedParts(settings, {}, secrets, reveals=True) as found:
            yield found


@pytest.mark.parametrize(
    ("topic", "raw", "shown"),
    [
        ("payments", b'{"item":"tea","card":"4711"}', {"item": "tea", "card": HIDDEN}),
        ("payments", b'{"item":1,"card":null}', {"item": 1, "card": None}),
        ("payments", b'{"card":"4711","card":"4711"}', {"card": HIDDEN}),
        ("pay.eu", b'{"card":"4711"}', {"card": HIDDEN}),
        ("payments", b'{"payload":{"card":"4711"}}', None),
        ("payments", b"4711", None),
        ("payments", b'{"card":4711', None),
        ("payments", b"\xff4711", None),
        ("payments", b"[" * 100_000 + b"4711", None),
        ("payments", b'{"card":"4711"}' + b" " * BYTES_MAX, None),
        ("packed", b'{"card":"4711"}', None),
        ("framed", b'{"card":"4711"}', None),
        ("framed", b'\0\0\0\0\x63{"card":"4711"}', None),
        ("other", b'{"card":"4711"}', {"card": "4711"}),
    ],
)
def test_names_of_secrets_mask_as_their_types_do(named: DecodedParts, topic: str, raw: bytes, shown: Any) -> None:
    found = named.content(topic, "value", raw, [])
    assert (found.form, found.size_bytes) == ("hidden" if shown is None else "json", len(raw))
    assert shown is None or json.loads(found.text or "") == shown
    assert topic == "other" or b"4711" not in msgspec.json.encode(found)


def test_a_value_with_a_schema_is_masked_by_names() -> None:
    secrets = SecretTopics([SecretPart("orders", "value", "registry", SecretPaths(["/card"]))])
    with EmbeddedRegistry() as registry:
        settings = load({"registry_url": registry.url}).values
        with SchemaRegistry(registry.url) as client:
            text = json.dumps({"type": "object", "properties": {"card": {"type": "string"}}})
            raw = b"\0" + client.register("orders-value", Schema(text, "JSON")).id.to_bytes(4) + b'{"card":"4711"}'
        with DecodedParts(settings, {}, secrets, reveals=True) as parts:
            found = parts.content("orders", "value", raw, [])
    assert (json.loads(found.text or ""), found.decoder) == ({"card": HIDDEN}, "registry")


def test_all_content_is_hidden_while_the_secrets_are_not_known() -> None:
    secrets = SecretTopics(unknown_because="nobody has told")
    message: Any = stored_message(b"4711", b"4711", [("trace", b"x")], "orders")
    with DecodedParts(SETTINGS, {}, secrets, reveals=True) as parts:
        found = parts.message(message)
    assert [(each.form, each.text, each.note) for each in (found.key, found.value)] == [
        ("hidden", None, "nobody has told")
    ] * 2
    assert found.headers[0].value.text == "x"
