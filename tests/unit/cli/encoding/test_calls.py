"""Arguments and results of calls: written by the schema that the registry has, and shown as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from awoke.cli.encoding.calls import ArgumentFormat, RawFormat, ResultTexts, chosen
from awoke.errors import AwokeError, ConfigError, DecodeError, EncodeError
from awoke.payloads.formats.protobuf_schemas import Indexes
from awoke.payloads.registry import RegistryRefused, Schema, SchemaRegistry
from awoke.payloads.registry.schemas import Schemas, loading
from awoke.payloads.registry.wire_format import header_value
from awoke.rpc import forms
from awoke.rpc.forms import closed
from awoke.testing.registry import EmbeddedRegistry
from tests.support.protobuf_classes import SHOP_TEXT

TOPIC = "shop.rpc.calls.price"
SUBJECT = "shop.rpc.calls.price-value"
AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
JSON = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})

Write = Callable[..., bytes]


def form(kind: str = "Avro") -> ArgumentFormat:
    return ArgumentFormat({"name": "price", "signature": "price(order: Order)", "argument_format": kind})


@pytest.fixture
def write() -> Iterator[Write]:
    """Registers a schema, and writes fields by it."""
    with EmbeddedRegistry() as registry, SchemaRegistry(registry.url) as client:
        schemas = Schemas(lambda: client)

        def write(schema: Schema | None, **fields: Any) -> bytes:
            if schema is not None:
                client.register(SUBJECT, schema)
            return loading(form().encoder(TOPIC, "value", schemas))(fields)[0]  # type: ignore[no-any-return]

        yield write


def test_fields_are_written_by_the_latest_schema_of_the_subject(write: Write) -> None:
    assert write(Schema(AVRO), id=7) == b"\0\0\0\0\1\x0e"


def test_json_is_checked_by_its_schema(write: Write) -> None:
    assert write(Schema(JSON, "JSON"), id=7) == b'\0\0\0\0\1{"id":7}'
    with pytest.raises(EncodeError, match=f"by schema 1 of '{SUBJECT}': it breaks the rule 'type' .* at `\\$.id`; see"):
        write(None, id="seven")


def test_what_does_not_fit_says_where_the_schema_is_shown(write: Write) -> None:
    with pytest.raises(EncodeError) as refused:
        write(Schema(AVRO), idd=7)
    said = f"the argument of price can't be written by schema 1 of '{SUBJECT}': there is no field 'idd'"
    assert str(refused.value) == f"{said}; the fields are id; see: awoke schema show {SUBJECT}"


def test_the_message_of_protobuf_is_the_one_that_the_signature_names(write: Write) -> None:
    text = SHOP_TEXT.replace('import "money.proto";', "").replace("money.Amount price = 4;", "")
    assert write(Schema(text, "PROTOBUF"), id=7) == b"\0\0\0\0\1\2\2\x08\7"


def test_source_of_protobuf_that_does_not_compile_is_an_error(write: Write) -> None:
    with pytest.raises(EncodeError, match=r"it is registered as \.proto source and does not compile"):
        write(Schema("message Order { Nothing a = 1; }", "PROTOBUF"), id=7)


def test_a_format_without_schemas_is_refused() -> None:
    with pytest.raises(AwokeError, match=r"price takes its argument as Msg\\x1bpack, which can't be written"):
        form("Msg\x1bpack")


def test_nothing_is_read() -> None:
    with pytest.raises(TypeError):
        form().decoder(TOPIC, "value", Schemas.none())


def test_errors_of_the_registry_say_what_needs_it() -> None:
    before = "price takes its argument as Avro, by a schema of a registry: "
    error = form().explained(ConfigError("none is set", "registry_url"))
    assert isinstance(error, ConfigError)
    assert (str(error), error.property) == (f"{before}none is set", "registry_url")
    assert str(form().explained(RegistryRefused("it is not there"))) == f"{before}it is not there"
    assert str(form("Protobuf").explained(RegistryRefused("no"))).endswith("has none: call it in Python")


@pytest.mark.parametrize(
    "signature", ["f(order: Order)", "f(order: a.b.Order | None)", "f( order: Order = ...) -> Line"]
)
def test_the_message_is_the_one_that_the_signature_names(signature: str) -> None:
    places: dict[Indexes, str] = {(0,): "shop.Line", (1,): "shop.Order"}
    assert chosen(places, signature) == ((1,), "shop.Order")


def test_the_only_message_needs_no_name() -> None:
    assert chosen({(0,): "Line"}, "f(line)") == ((0,), "Line")


@pytest.mark.parametrize("signature", ["", "f(order)", "f(order: Any) -> Line"])
def test_one_of_several_messages_must_be_named(signature: str) -> None:
    with pytest.raises(ValueError, match=r"has the messages shop\.Line, Order, and .* call the method in Python"):
        chosen({(0,): "shop.Line", (1,): "Order"}, signature)


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
    results = ResultTexts("shop", "price", Schemas.none())
    assert results.json((b'{"a": "caf\xc3\xa9"}', ())) == '{"a": "caf\u00e9"}'
    assert results.json(None) == "null"


def test_what_names_a_schema_is_read_by_it(schemas: Schemas) -> None:
    results, text = ResultTexts("shop", "price", schemas), '{"id":7,"seal":"/w=="}'
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
        ResultTexts("shop", "price", schemas).json((data, ()))


def test_a_result_without_a_registry_says_that_the_call_was_executed() -> None:
    with pytest.raises(ConfigError, match=r"shop\.price was executed, and its result names a schema") as refused:
        ResultTexts("shop", "price", Schemas.none()).json((b"\0\0\0\0\1\x0e", ()))
    assert refused.value.property == "registry_url"
