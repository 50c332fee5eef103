"""`awoke tail`: where it starts and stops, and how a message is printed, decoded or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.app import application
from awoke.cli import tail
from awoke.payloads.registry import RegistryUnavailable, Schema, SchemaRegistry
from awoke.testing.registry import EmbeddedRegistry
from tests.support.clusters import MockCluster, unique
from tests.support.messages import stored_message
from tests.unit.cli.fakes import run

MESSAGES: list[Any] = [
    stored_message(b"k\t1", b"one\n", [("trace", b"a"), ("trace", None)], topic="orders"),
    stored_message(None, None, [], topic="orders", offset=8, timestamp_ms=None),
    stored_message(b"", b"\xff\\", [("\u2028", b"\x9b")], topic="orders", offset=9),
]


class FakeReader:
    """A reader whose topic has the messages above; without an end, the operator interrupts it."""

    made: list[tuple[str, dict[str, Any]]] = []

    def __init__(self, topic: str, **options: Any) -> None:
        self.made.append((topic, options))

    def __enter__(self) -> FakeReader:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Any]:
        yield from MESSAGES
        raise KeyboardInterrupt

    def read_until_end(self) -> Iterator[Any]:
        return iter(MESSAGES)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The readers that a command makes, with their options."""
    monkeypatch.setattr(awoke, "Reader", FakeReader)
    monkeypatch.setattr(FakeReader, "made", [])
    return FakeReader.made


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ([], "latest"),
        (["--until-end"], "earliest"),
        (["--from", "earliest"], "earliest"),
        (["--from", "42", "--until-end"], 42),
        (["--last", "5", "--from", "42"], -5),
        (["--from", "2026-01-31T12:00Z"], datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (["--to", "9"], "earliest"),
    ],
)
def test_reading_begins_where_the_options_say(
    options: list[str], start: Any, made: list[tuple[str, dict[str, Any]]]
) -> None:
    run("tail", "orders", *options, "-b", "a:1", "--kafka", "acks=1")
    assert made == [("orders", {"bootstrap_servers": "a:1", "start": start, "kafka": {"acks": "1"}})]


def test_reading_ends_before_a_place(made: list[tuple[str, dict[str, Any]]]) -> None:
    assert len(run("tail", "orders", "--to", "9").output.splitlines()) == 2
    assert len(run("tail", "orders", "--to", "7").output.splitlines()) == 0


@pytest.mark.parametrize(
    ("options", "lines"), [(["--count", "0"], 0), (["--count", "2"], 2), (["--count", "9"], 3), ([], 3)]
)
@pytest.mark.parametrize("until_end", [[], ["--until-end"]], ids=["without end", "until the end"])
def test_reading_stops_after_the_count_at_the_end_or_by_an_interrupt(
    options: list[str], lines: int, until_end: list[str], made: list[tuple[str, dict[str, Any]]]
) -> None:
    done = run("tail", "orders", *options, *until_end)
    assert (done.exit_code, len(done.output.splitlines())) == (0, lines)


def test_a_value_is_one_line_with_its_key_before_it_if_that_is_wanted(made: list[Any]) -> None:
    assert run("tail", "orders", "--until-end").output == "one\\n\n\n\\xff\\\\\n"
    assert run("tail", "orders", "--until-end", "--keys").output == "k\\t1\tone\\n\n\t\n\t\\xff\\\\\n"


def test_bytes_are_printed_unchanged_for_other_programs() -> None:
    assert [tail.raw_of(each, False) for each in MESSAGES] == [b"one\n", b"", b"\xff\\"]
    assert [tail.raw_of(each, True) for each in MESSAGES] == [b"k\t1\tone\n", b"\t", b"\t\xff\\"]


def test_a_document_has_all_parts_of_a_message(made: list[Any]) -> None:
    lines = run("tail", "orders", "--until-end", "--json").output.splitlines()
    assert all(line.isprintable() for line in lines)
    first, second, third = map(json.loads, lines)
    assert first == {
        "topic": "orders",
        "partition": 0,
        "offset": 7,
        "timestamp_ms": 1_760_000_000_000,
        "key": "k\t1",
        "headers": [["trace", "a"], ["trace", None]],
        "value": "one\n",
    }
    assert (second["key"], second["value"], second["timestamp_ms"]) == (None, None, None)
    assert (third["key"], third["value"], third["headers"]) == (
        "",
        {"base64": "/1w="},
        [["\u2028", {"base64": "mw=="}]],
    )


def test_bytes_are_not_for_json(made: list[Any]) -> None:
    done = run("tail", "orders", "--raw", "--json")
    assert (done.exit_code, made) == (2, [])
    assert "--raw" in done.output


CANT = "the bytes begin with 7b 7d, not with 00 and the id of a schema, and there is no header '__value_schema_id'"


@pytest.fixture
def encoded(mock_cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A topic with a message of Avro, one whose key and value are JSON, one without a schema, and a tombstone."""
    topic = unique("encoded")
    mock_cluster.create_topic(topic)
    monkeypatch.setenv("AWOKE_BOOTSTRAP_SERVERS", mock_cluster.bootstrap_servers)
    with EmbeddedRegistry() as registry, SchemaRegistry(registry.url) as client, awoke.Producer() as producer:
        monkeypatch.setenv("AWOKE_REGISTRY_URL", registry.url)
        client.register("texts-value", Schema('"string"'))
        client.register("numbers-value", Schema('{"type": "number"}', "JSON"))
        for key, value in (
            ("k1", b"\0\0\0\0\1\6tea"),
            (b"\0\0\0\0\0021", b"\0\0\0\0\0022"),
            ("k3", b"{}"),
            ("k4", None),
        ):
            producer.produce(topic, value, key=key).wait(30)
        yield topic


def test_messages_are_decoded_by_the_schemas_that_they_name(encoded: str) -> None:
    note = f"note: {encoded}[0] offset 2: the value is not decoded: {CANT}"
    assert run("tail", encoded, "--until-end", "--decode").output.splitlines() == ['"tea"', "2", note, "{}", ""]
    lines = run("tail", encoded, "--until-end", "--decode", "--keys").output.splitlines()
    assert lines == ['k1\t"tea"', "1\t2", note, "k3\t{}", "k4\t"]


def test_a_document_has_decoded_parts_with_their_schemas(encoded: str) -> None:
    lines = run("tail", encoded, "--until-end", "--decode", "--json").output.splitlines()
    first, second, third, fourth = map(json.loads, lines)
    assert (first["key"], first["value"], first["value_schema"]) == ("k1", "tea", 1)
    assert (second["key"], second["key_schema"], second["value"], second["value_schema"]) == (1, 2, 2, 2)
    assert (third["value"], third["value_note"], fourth["value"]) == ("{}", CANT, None)
    assert not {"key_schema", "key_note", "value_note"} & first.keys()
    assert not {"value_schema", "value_note"} & fourth.keys()


def test_a_registry_that_is_away_ends_the_command(encoded: str) -> None:
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        run("tail", encoded, "--until-end", "--decode", "--registry-url", "http://127.0.0.1:1")


def test_decoding_needs_a_registry_and_is_not_for_raw_bytes(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWOKE_REGISTRY_URL", raising=False)
    with pytest.raises(awoke.ConfigError, match="no schema registry is set"):
        run("tail", "orders", "--decode")
    assert run("tail", "orders", "--decode", "--raw").exit_code == 2
    assert made == []


class Order(msgspec.Struct):
    id: int
    card: Annotated[str, awoke.Secret]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app `shop:app`: its orders have a secret field, and are MessagePack; its clicks have none, and are JSON."""

    def found(target: str) -> awoke.App:
        app = awoke.App("shop")

        @app.on(awoke.Topic("orders", value=awoke.msgpack(Order)))
        def charge(message: awoke.Message[Order]) -> None: ...

        @app.on("clicks")
        def click(message: awoke.Message[dict[str, int]]) -> None: ...

        return app

    monkeypatch.setattr(application, "find_app", found)


def encoded_order(number: int) -> Any:
    return stored_message(b"k", msgspec.msgpack.encode(Order(number, "4711")), [], topic="orders", offset=number)


def test_messages_are_decoded_by_the_types_of_an_app_and_their_secrets_are_masked(
    made: list[Any], shop: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [
        stored_message(None, b"4711", [], topic="orders", offset=2),
        stored_message(None, None, [], topic="orders", offset=3),
    ]
    monkeypatch.setattr(FakeReader, "read_until_end", lambda self: iter([encoded_order(1), *others]))
    done = run("tail", "orders", "--until-end", "--keys", "--app", "shop:app")
    note = "it has secret fields, and is hidden because it can't be decoded by the app's types"
    assert done.output.splitlines() == [
        'k\t{"id":1,"card":"[secret]"}',
        f"note: orders[0] offset 2: the value is not decoded: {note}",
        "\t[secret]",
        "\t",
    ]
    lines = run("tail", "orders", "--until-end", "--json", "--app", "shop:app").output.splitlines()
    first, second, third = map(json.loads, lines)
    assert (first["value"], "value_schema" in first) == ({"id": 1, "card": "[secret]"}, False)
    assert (second["value"], second["value_note"], third["value"]) == ("[secret]", note, None)


def test_secret_fields_are_printed_only_if_that_is_said(
    made: list[Any], shop: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeReader, "read_until_end", lambda self: iter([encoded_order(1)]))
    done = run("tail", "orders", "--until-end", "--app", "shop:app", "--keep-secrets")
    assert done.output == '{"id":1,"card":"4711"}\n'
    with pytest.raises(awoke.ConfigError, match="--keep-secrets is about the fields of an app: name it with --app"):
        run("tail", "orders", "--until-end", "--keep-secrets")


def test_a_message_without_secrets_that_does_not_decode_is_shown_with_the_reason(
    made: list[Any], shop: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [stored_message(None, value, [], topic="clicks", offset=1) for value in (b'{ "x": 1 }', b'{"x": "a"}')]
    monkeypatch.setattr(FakeReader, "read_until_end", lambda self: iter(messages))
    first, note, second = run("tail", "clicks", "--until-end", "--app", "shop:app").output.splitlines()
    assert (first, second) == ('{"x":1}', '{"x": "a"}')
    assert note.startswith("note: clicks[0] offset 1: the value is not decoded: Expected `int`, got `str`")


@pytest.mark.parametrize("options", [["--raw"], ["--decode"], ["--registry-url", "http://a:1"]])
def test_an_app_is_not_for_raw_bytes_and_names_its_own_registry(
    options: list[str], made: list[Any], shop: None
) -> None:
    assert run("tail", "orders", "--app", "shop:app", *options).exit_code == 2
    assert made == []
