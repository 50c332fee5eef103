"""Results as JSON, whatever format they are in."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from awoke.cli.calling.results import RawFormat, Results
from awoke.errors import ConfigError, DecodeError
from awoke.payloads.registry import Schema, SchemaRegistry
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.registry.wire_format import header_value
from awoke.rpc import forms
from awoke.rpc.envelope import closed
from awoke.testing.registry import EmbeddedRegistry

PRICE = {
    "type": "record",
    "name": "Price",
    "fields": [{"name": "id", "type": "long"}, {"name": "seal", "type": "bytes"}],
}
GUID_HEADER = "__value_schema_id"


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    """The schemas of a registry in which `PRICE` has the id 1."""
    with EmbeddedRegistry() as registry, SchemaRegistry(registry.url) as client:
        client.register("prices-value", Schema(json.dumps(PRICE)))
        yield Schemas(lambda: client)


def test_bytes_and_headers_stay_together() -> None:
    topic = forms.result_topic("shop", "price")
    read = forms.reader(RawFormat(), topic, Schemas.none())
    assert read(b"{}") == (b"{}", ())
    encoded = (b"x", (("name", b"value"),))
    assert read(closed(encoded)) == encoded
    assert read(closed(None)) is None


def test_json_needs_no_registry() -> None:
    results = Results("shop", "price", Schemas.none())
    assert results.json((b'{"a": "caf\xc3\xa9"}', ())) == '{"a": "caf\u00e9"}'
    assert results.json(None) == "null"


def test_what_names_a_schema_is_read_by_it(schemas: Schemas) -> None:
    results, text = Results("shop", "price", schemas), '{"id":7,"seal":"/w=="}'
    assert results.json((b"\0\0\0\0\1\x0e\2\xff", ())) == text
    guid = schemas.registry.schema(1).guid or schemas.registry.latest("prices-value").guid
    assert guid is not None
    assert results.json((b"\x0e\2\xff", ((GUID_HEADER, header_value(guid)),))) == text


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\0\0\0\1\x0e", "the result of shop.price is not decoded: the bytes end within the record"),
        (b"\0\0\0\0\7\x0e", "the result of shop.price is not decoded: .*Schema 7 not found"),
        (b"\0", "the result of shop.price is not decoded: the bytes begin with 00"),
        (b"\x81\xa2id\7", "the result of shop.price can't be read as JSON: .*MessagePack, is read in Python"),
        (b"", "the result of shop.price can't be read as JSON"),
    ],
)
def test_a_result_that_can_not_be_read_is_one_line(schemas: Schemas, data: bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        Results("shop", "price", schemas).json((data, ()))


def test_a_result_without_a_registry_says_that_the_call_was_executed() -> None:
    with pytest.raises(ConfigError, match=r"shop\.price was executed, and its result names a schema") as refused:
        Results("shop", "price", Schemas.none()).json((b"\0\0\0\0\1\x0e", ()))
    assert refused.value.property == "registry_url"
