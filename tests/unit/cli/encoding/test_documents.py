"""Documents of a command in the latest schemas of subjects."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from awoke.cli.encoding.documents import SubjectWriters, WrittenSubject, chosen
from awoke.errors import AwokeError, ConfigError
from awoke.payloads.formats.protobuf_schemas import Indexes
from awoke.payloads.registry import RegistryRefused, RegistryUnavailable, Schema, SchemaRegistry
from awoke.testing.registry import EmbeddedRegistry

ORDERS = WrittenSubject("value", "orders-value")
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEWER = {**ORDER, "fields": [*ORDER["fields"], {"name": "x", "type": ["null", "int"], "default": None}]}
MESSAGES: dict[Indexes, str] = {(0,): "shop.Line", (1,): "shop.Order", (1, 0): "shop.Order.Note"}


@pytest.fixture
def registry() -> Iterator[EmbeddedRegistry]:
    with EmbeddedRegistry() as registry:
        yield registry


@pytest.fixture
def encoding(registry: EmbeddedRegistry) -> Iterator[SubjectWriters]:
    """Encodes by a registry with two versions of a schema."""
    with SchemaRegistry(registry.url) as client:
        for each in (ORDER, NEWER):
            client.register(ORDERS.name, Schema(json.dumps(each)))
    with SubjectWriters(registry.url) as encoding:
        yield encoding


def test_documents_are_written_in_the_latest_version_which_is_asked_for_once(
    registry: EmbeddedRegistry, encoding: SubjectWriters
) -> None:
    encode = encoding.writer(ORDERS)
    registry.set_up(False)
    assert [encode(b'{"id": 7}'), encode(b'{"id": 7, "x": 1}')] == [b"\0\0\0\0\2\x0e\0", b"\0\0\0\0\2\x0e\2\2"]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "the value is no JSON: "),
        (b'{"id": "sec', "the value is no JSON: "),
        (b'"sec\xff"', "the value is no JSON: "),
        (b"[" * 100_000, "the value is no JSON: "),
        (b'{"id": "secret"}', "the value can't be written by schema 2 of 'orders-value': field 'id' takes long"),
        (b"null", "it takes the record Order, not null; see: awoke schema show orders-value$"),
    ],
)
def test_a_document_that_can_not_be_written_is_not_quoted(encoding: SubjectWriters, document: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        encoding.writer(ORDERS)(document)
    assert "sec" not in str(refused.value)


def test_a_registry_without_the_subject_or_without_an_answer_is_an_error(
    registry: EmbeddedRegistry, encoding: SubjectWriters
) -> None:
    with pytest.raises(RegistryRefused, match="no schema of 'orders-key': register one with awoke schema register"):
        encoding.writer(WrittenSubject("key", "orders-key"))
    registry.set_up(False)
    with pytest.raises(RegistryUnavailable):
        encoding.writer(ORDERS)


def test_a_schema_that_can_not_be_used_is_named(registry: EmbeddedRegistry, encoding: SubjectWriters) -> None:
    with SchemaRegistry(registry.url) as client:
        client.register("bad-value", Schema("message Bad { Nothing a = 1; }", "PROTOBUF"))
    with pytest.raises(AwokeError, match=r"schema 3 of 'bad-value' can't be used: it is registered as \.proto source"):
        encoding.writer(WrittenSubject("value", "bad-value"))


def test_a_registry_must_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWOKE_REGISTRY_URL", raising=False)
    with pytest.raises(ConfigError, match="no schema registry is set"):
        SubjectWriters(None)


def test_the_only_message_outside_of_others_needs_no_option() -> None:
    assert chosen({(0,): "Order", (0, 0): "Order.Note"}, ORDERS) == ((0,), "Order")
    assert chosen(MESSAGES, ORDERS._replace(message="shop.Order")) == ((1,), "shop.Order")
    assert chosen(MESSAGES, ORDERS._replace(message="shop.Order.Note")) == ((1, 0), "shop.Order.Note")


@pytest.mark.parametrize(
    ("message", "why"),
    [(None, "--value-message: it takes the name of one"), ("Order", "--value-message: 'Order' is none of them")],
)
def test_one_of_several_messages_is_chosen_by_the_option(message: str | None, why: str) -> None:
    names = "shop.Line, shop.Order, shop.Order.Note"
    with pytest.raises(ConfigError, match=f"the schema of 'orders-value' has the messages {names}: {why}"):
        chosen(MESSAGES, ORDERS._replace(message=message))
