"""The argument of a method, written by the schema that the registry has for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from awoke.cli.calling.arguments import ArgumentFormat
from awoke.errors import AwokeError, ConfigError, EncodeError
from awoke.payloads.registry import RegistryRefused, Schema, SchemaRegistry
from awoke.payloads.registry.schemas import Schemas, loading
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
