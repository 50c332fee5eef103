"""`awoke produce --encode`: lines of JSON in the formats of a registry, read again at the shell and by routes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads.formats.protobuf import own_schema
from awoke.payloads.registry import Reference, Schema
from awoke.testing import EmbeddedRegistry, Runs
from tests.contract.test_consume import new_app
from tests.support.clusters import Cluster, MockCluster
from tests.support.command_line import awoke_says
from tests.support.protobuf_classes import SHOP_TEXT, Amount
from tests.support.protobuf_classes import Order as OrderPb
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]


class Order(msgspec.Struct):
    id: int
    at: datetime.datetime
    seal: bytes
    note: str | None = None


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "seal", "type": "bytes"},
    {"name": "price", "type": DECIMAL},
    {"name": "note", "type": ["null", "string"], "default": None},
]
AVRO = Schema(msgspec.json.encode({"type": "record", "name": "Order", "fields": FIELDS}).decode())
IDS = Schema(msgspec.json.encode({"type": "object", "properties": {"id": {"type": "integer"}}}).decode(), "JSON")
AVRO_LINE = '{"id":7,"at":"2026-01-01T00:00:00Z","seal":"/w==","price":"1.50","note":null}'
JSON_LINE = '{"id":7,"more":[1.5,"\u00e9"]}'
PROTOBUF_LINE = '{"id":"7","lines":[{"sku":"A1"}],"price":{"cents":"150"}}'


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedRegistry]:
    """A registry that the settings of apps and commands name."""
    with EmbeddedRegistry() as registry:
        monkeypatch.setenv("AWOKE_REGISTRY_URL", registry.url)
        yield registry


def register(registry: EmbeddedRegistry, subject: str, schema: Schema) -> int:
    with awoke.SchemaRegistry(registry.url) as client:
        return client.register(subject, schema).id


class Shell:
    """Runs commands about one topic."""

    def __init__(self, cluster: Cluster, topic: str, folder: Path) -> None:
        self.topic, self._at, self._file = topic, ("-b", cluster.bootstrap_servers), folder / "lines"

    def produce(self, lines: str, *options: str, code: int = 0) -> str:
        self._file.write_text(f"{lines}\n")
        return awoke_says("produce", self.topic, "--file", str(self._file), *options, *self._at, code=code)

    def tail(self, *options: str) -> str:
        return awoke_says("tail", self.topic, "--until-end", "--decode", *options, *self._at)


@pytest.fixture
def shell(cluster: Cluster, topic: CreateTopic, tmp_path: Path) -> Shell:
    return Shell(cluster, topic(), tmp_path)


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf", "source of protobuf"])
def test_what_is_produced_is_decoded_to_the_same_document(shell: Shell, registry: EmbeddedRegistry, kind: str) -> None:
    references = (Reference("money.proto", "money.proto", 1),)
    schema, line = {
        "avro": (AVRO, AVRO_LINE),
        "json": (IDS, JSON_LINE),
        "protobuf": (own_schema(OrderPb.DESCRIPTOR.file)._replace(references=references), PROTOBUF_LINE),
        "source of protobuf": (Schema(SHOP_TEXT, "PROTOBUF", references), PROTOBUF_LINE),
    }[kind]
    options = ["--encode"]
    if "protobuf" in kind:
        register(registry, "money.proto", own_schema(Amount.DESCRIPTOR.file))
        options += ["--value-message", "shop.Order"]
    register(registry, f"{shell.topic}-value", schema)
    assert shell.produce(line, *options) == f"delivered 1 message to {shell.topic}"
    assert shell.produce(f"{line}\n{line}", "--format", "json", *options) == f"delivered 2 messages to {shell.topic}"
    assert shell.tail() == "\n".join([line] * 3)


def test_keys_are_encoded_and_tombstones_stay(shell: Shell, registry: EmbeddedRegistry) -> None:
    key_id = register(registry, "keys", Schema('"string"'))
    value_id = register(registry, "shop.Ids", IDS)
    subjects = ("--value-subject", "shop.Ids", "--key-subject", "keys")
    lines = '{"value": {"id": 7}, "key": "a", "partition": 0}\n{"value": null, "key": "b", "partition": 0}'
    shell.produce(lines, "--format", "envelope", "--encode", "--encode-key", *subjects)
    full, tombstone = map(msgspec.json.decode, shell.tail("--json").splitlines())
    assert (full["key"], full["key_schema"]) == ("a", key_id)
    assert (full["value"], full["value_schema"]) == ({"id": 7}, value_id)
    assert (tombstone["key"], tombstone["value"]) == ("b", None)


def test_a_typed_route_reads_what_is_produced(
    shell: Shell, registry: EmbeddedRegistry, cluster: Cluster, awoke_run: Runs
) -> None:
    register(registry, f"{shell.topic}-value", AVRO)
    shell.produce(AVRO_LINE, "--encode")
    app, seen = new_app(cluster), Collected[Any]()
    app.on(shell.topic, value=awoke.avro(Order))(lambda message: seen.add(message.value))
    awoke_run(app).idle()
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert seen.items == [Order(7, at, b"\xff")]


def test_what_is_wrong_is_one_line_and_nothing_after_it_is_sent(
    shell: Shell, registry: EmbeddedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = f"error: the registry has no schema of '{shell.topic}-value': register one"
    assert shell.produce(AVRO_LINE, "--encode", code=1).startswith(before)
    register(registry, f"{shell.topic}-value", AVRO)
    cases = {
        AVRO_LINE.replace('"id"', '"idd"'): "there is no field 'idd'; the fields are id, at, seal, price, note",
        AVRO_LINE.replace("7", '"secret"'): "field 'id' takes long, not text",
        "secret": "the value is no JSON: ",
    }
    for bad, why in cases.items():
        delivered, error = shell.produce(f"{AVRO_LINE}\n{bad}\n{AVRO_LINE}", "--encode", code=1).splitlines()
        assert delivered == f"delivered 1 message to {shell.topic}"
        assert ", line 2: " in error
        assert why in error
        assert error.endswith("; nothing from there on was sent")
        assert "secret" not in error
    assert shell.tail() == "\n".join([AVRO_LINE] * len(cases))
    nowhere = ("--registry-url", "http://127.0.0.1:1")
    assert "the schema registry does not answer" in shell.produce(AVRO_LINE, "--encode", *nowhere, code=1)
    monkeypatch.delenv("AWOKE_REGISTRY_URL")
    assert shell.produce(AVRO_LINE, "--encode", code=2).startswith("error: no schema registry is set")
