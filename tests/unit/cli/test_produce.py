"""Lines of `awoke produce` become messages, or say what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke.cli import produce as module
from awoke.cli.produce import SentLines, Shape, key_of, opened, size_of
from awoke.cli.tail import document
from awoke.payloads.message import header_pairs
from awoke.payloads.registry import Schema, SchemaRegistry
from awoke.testing.registry import EmbeddedRegistry
from tests.support.messages import stored_message
from tests.unit.cli.fakes import FakeAdmin, run

ENVELOPE = Shape(format="envelope")
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


def test_an_envelope_says_everything_about_its_message() -> None:
    line = b'{"value": {"a": 1}, "key": "k", "headers": {"h": "v"}, "partition": 0, "timestamp_ms": 1}'
    assert ENVELOPE.record(line) == awoke.Record(b'{"a": 1}', "k", [("h", "v")], 0, 1)


def test_an_envelope_without_a_timestamp_is_sent_with_the_present_time() -> None:
    assert ENVELOPE.record(b'{"value": "a", "timestamp_ms": null}').timestamp_ms is None
    assert ENVELOPE.record(b'{"value": "a"}').timestamp_ms is None


@pytest.mark.parametrize("timestamp_ms", [0, -1])
def test_a_timestamp_that_kafka_does_not_have_is_refused(timestamp_ms: int) -> None:
    with pytest.raises(ValueError, match="timestamp_ms"):
        ENVELOPE.record(b'{"value": "a", "timestamp_ms": %d}' % timestamp_ms)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (b'"text"', "text"),
        (b'""', ""),
        (b"null", None),
        (b"3", b"3"),
        (b'{"a":  1}', b'{"a":  1}'),
        (b'"caf\\u00e9"', "caf\u00e9"),
    ],
)
def test_the_value_of_an_envelope_is_text_without_quotes_a_tombstone_or_json_as_it_is(
    written: bytes, value: str | bytes | None
) -> None:
    assert ENVELOPE.record(b'{"value": ' + written + b"}").value == value


@pytest.mark.parametrize(
    "line", [b"", b"3", b"{}", b'{"value": 1, "more": 2}', b'{"value": 1, "partition": -1}', b'{"value": "a}', b"\xff"]
)
def test_a_line_that_is_no_envelope_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="is no envelope: "):
        ENVELOPE.record(line)


@pytest.mark.parametrize(
    "message",
    [
        stored_message(b"k", b"plain", []),
        stored_message(b"\x80", b"\xff\x00 no text", [("id", b"\xfe"), ("id", None), ("\u00fc", b"v")]),
        stored_message(None, None, []),
        stored_message(b'{"base64": "/w=="}', b'{"base64": "/wA="}', [("a", b'{"base64": "!"}')]),
        stored_message(b"", b'"in quotes"', []),
        stored_message(b"null", b"null", []),
        stored_message(b"7", b"back\\xff\\slash\n", []),
    ],
    ids=lambda message: repr(message.value),
)
def test_what_tail_prints_is_sent_as_it_was(message: awoke.Message[Any]) -> None:
    record = ENVELOPE.record(document(message).encode())
    sent = [None if each is None else each.encode() if isinstance(each, str) else each for each in record[:2]]
    headers = [(name, each.encode() if isinstance(each, str) else each) for name, each in header_pairs(record.headers)]
    assert (*sent, headers) == (message.value, message.key, list(message.headers))
    assert (record.partition, record.timestamp_ms) == (message.partition, message.timestamp_ms)


def test_a_json_document_with_other_fields_than_base64_is_the_message_itself() -> None:
    assert ENVELOPE.record(b'{"value": {"base64": "/wA=", "a": 1}}').value == b'{"base64": "/wA=", "a": 1}'
    assert ENVELOPE.record(b'{"value": {"base64": "/wA="}}').value == b"\xff\x00"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"value": {"base64": "!"}}', "is no envelope"),
        (b'{"value": 1, "key": {"base64": "!"}}', "padding|base64|Only"),
        (b'{"value": 1, "headers": {"h": 3}}', "header 'h': expected text"),
        (b'{"value": 1, "headers": [["a\\u0000b", "v"]]}', "zero byte"),
    ],
)
def test_what_is_no_bytes_is_refused(line: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ENVELOPE.record(line)


def test_a_line_is_its_message_with_the_headers_of_all() -> None:
    shape = Shape(headers={"h": "v"})
    assert shape.record(b"\xff a:b") == awoke.Record(b"\xff a:b", headers={"h": "v"})
    assert Shape().record(b"") == awoke.Record(b"")
    more = Shape(format="envelope", headers={"h": "v", "i": "w"})
    assert more.record(b'{"value": 1, "headers": {"h": null}}').headers == [("i", "w"), ("h", None)]


def test_a_key_stands_before_the_first_separator() -> None:
    shape = Shape(key_separator="::")
    assert shape.record(b"k::a::b") == awoke.Record(b"a::b", b"k")
    assert shape.record(b"::") == awoke.Record(b"", b"")
    with pytest.raises(ValueError, match="has no key separator '::'"):
        shape.record(b"k:a")


def test_a_line_of_json_is_sent_as_it_is_under_the_key_of_a_field() -> None:
    shape = Shape(format="json", key_field="id")
    assert shape.record(b'{"id": 7,  "a": 1}') == awoke.Record(b'{"id": 7,  "a": 1}', "7")
    assert Shape(format="json").record(b"[1]") == awoke.Record(b"[1]")
    for line in (b"[7]", b'{"a": 1}'):
        with pytest.raises(ValueError, match="has no field 'id'"):
            shape.record(line)
    with pytest.raises(ValueError, match="is no JSON: "):
        shape.record(b"{")


ENCODERS = {"key": lambda text: b"K" + text, "value": lambda text: b"V" + text}
BOTH: dict[str, Any] = {"encoders": ENCODERS}
SEPARATED: dict[str, Any] = {"key_separator": ":", **BOTH}
BY_FIELD: dict[str, Any] = {"format": "json", "key_field": "a", **BOTH}
IN_ENVELOPE: dict[str, Any] = {"format": "envelope", **BOTH}


@pytest.mark.parametrize(
    ("options", "line", "value", "key"),
    [
        (BOTH, b'{"a": 1}', b'V{"a": 1}', None),
        (SEPARATED, b'"k":{"a": 1}', b'V{"a": 1}', b'K"k"'),
        (BY_FIELD, b'{"a": "k"}', b'V{"a": "k"}', b'K"k"'),
        (BY_FIELD, b'{"a": null}', b'V{"a": null}', None),
        (IN_ENVELOPE, b'{"value": {"a":  1}, "key": [7]}', b'V{"a":  1}', b"K[7]"),
        (IN_ENVELOPE, b'{"value": "text"}', b'V"text"', None),
        (IN_ENVELOPE, b'{"value": null, "key": "k"}', None, b'K"k"'),
        ({**IN_ENVELOPE, "encoders": {"value": ENCODERS["value"]}}, b'{"value": 1, "key": "k"}', b"V1", "k"),
        ({**IN_ENVELOPE, "encoders": {"key": ENCODERS["key"]}}, b'{"value": "a", "key": "k"}', "a", b'K"k"'),
    ],
)
def test_keys_and_values_are_encoded_as_json_and_a_tombstone_stays_one(
    options: dict[str, Any], line: bytes, value: Any, key: Any
) -> None:
    assert Shape(**options).record(line) == awoke.Record(value, key)


@pytest.mark.parametrize(("value", "key"), [(None, None), ("k", "k"), (7, "7"), ([1, "a"], '[1,"a"]'), (True, "true")])
def test_a_key_is_text_or_json(value: Any, key: str | None) -> None:
    assert key_of(value) == key


class FakeHandle:
    """The brokers' answer to a message."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error

    def exception(self) -> BaseException | None:
        return self._error


REFUSED = awoke.DeliveryFailed("refused", 29, "TOPIC_AUTHORIZATION_FAILED")


def wait_all(handles: list[FakeHandle]) -> list[FakeHandle]:
    """Waits for none: the answers are there."""
    waited.append(len(handles))
    if any(each.exception() for each in handles):
        raise REFUSED
    return handles


waited: list[int] = []


class FakeProducer:
    """Refuses the value `bad` at once, and the value `late` by its answer."""

    made: list[FakeProducer] = []

    def __init__(self, bootstrap_servers: str | None, **options: Any) -> None:
        self.options = {"bootstrap_servers": bootstrap_servers, **options}
        self.sent: list[tuple[str, Any]] = []
        self.made.append(self)

    def __enter__(self) -> FakeProducer:
        return self

    def __exit__(self, *_: object) -> None: ...

    def produce(self, topic: str, value: Any, **options: Any) -> FakeHandle:
        if value == b"bad":
            raise awoke.MessageTooLarge("too large", "orders", 5_000)
        self.sent.append((topic, value))
        return FakeHandle(REFUSED if value == b"late" else None)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeProducer]:
    """The producers that a command makes, at brokers with the topic `orders`."""
    monkeypatch.setattr(awoke, "Admin", FakeAdmin(orders={0: (0, 0)}))
    monkeypatch.setattr(awoke, "Producer", FakeProducer)
    monkeypatch.setattr(awoke, "wait_all", wait_all)
    monkeypatch.setattr(FakeProducer, "made", [])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(fileno=lambda: 0, isatty=lambda: False))
    waited.clear()
    return FakeProducer.made


def test_each_line_of_a_file_is_sent_without_its_line_end(
    made: list[FakeProducer], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\r\n\ntwo\rthree\nfour")
    module.produce("orders", file=file, bootstrap_servers="a:1", kafka=["acks=1"])
    assert capsys.readouterr().err == "delivered 4 messages to orders\n"
    assert made[0].sent == [("orders", value) for value in (b"one", b"", b"two\rthree", b"four")]
    assert made[0].options == {"bootstrap_servers": "a:1", "kafka": {"acks": "1"}}


def test_a_line_that_can_not_be_sent_ends_the_command_with_its_number(made: list[FakeProducer], tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\nbad\nthree\n")
    with pytest.raises(awoke.AwokeError, match=r"lines, line 2: too large; nothing from there on was sent"):
        module.produce("orders", file=file)
    assert made[0].sent == [("orders", b"one")]


def test_messages_that_were_not_delivered_are_counted_with_the_first_error(
    made: list[FakeProducer], tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\nlate\nlate\n")
    with pytest.raises(awoke.AwokeError, match="not delivered: 2; the first: refused") as failed:
        module.produce("orders", file=file)
    assert failed.value.__cause__ is REFUSED


def test_values_are_encoded_until_one_does_not_fit(
    made: list[FakeProducer], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b'{"id": 7}\n{"id": "secret"}\n{"id": 8}\n')
    with EmbeddedRegistry() as registry, SchemaRegistry(registry.url) as client:
        client.register("shop.Order", Schema(ORDER))
        options: dict[str, Any] = {"encode": True, "value_subject": "shop.Order", "registry_url": registry.url}
        with pytest.raises(awoke.AwokeError) as refused:
            module.produce("orders", file=file, **options)
        with pytest.raises(awoke.registry.RegistryRefused, match="no schema of 'orders-value'"):
            module.produce("orders", file=file, encode=True, registry_url=registry.url)
    why = "the value can't be written by schema 1 of 'shop.Order': field 'id' takes long, not text"
    end = "see: awoke schema show shop.Order; nothing from there on was sent"
    assert str(refused.value) == f"{file}, line 2: {why}; {end}"
    assert capsys.readouterr().err == "delivered 1 message to orders\n"
    assert [each.sent for each in made] == [[("orders", b"\0\0\0\0\1\x0e")]]


def test_encoding_needs_a_registry(made: list[FakeProducer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWOKE_REGISTRY_URL", raising=False)
    with pytest.raises(awoke.ConfigError, match="no schema registry is set"):
        run("produce", "orders", "-f", "/dev/null", "--encode")
    assert made == []


def test_a_topic_that_does_not_exist_is_named_before_anything_is_sent(made: list[FakeProducer], tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\n")
    with pytest.raises(awoke.UnknownTopic, match="'ordres' does not exist"):
        run("produce", "ordres", "--file", str(file))
    assert made == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--key-field", "id"], "--key-field"),
        (["--key-field", "id", "--format", "envelope"], "--key-field"),
        (["--key-separator", ":", "--format", "json"], "--key-separator"),
        (["--key-separator", ":", "--format", "envelope"], "--key-separator"),
        (["--key-separator", ""], "--key-separator"),
        (["--encode-key"], "--encode-key"),
        (["--key", "k", "--key-separator", ":"], "--key"),
        (["--key", "k", "--key-field", "id", "--format", "json"], "--key"),
        (["--key", "k", "--format", "envelope"], "--key"),
        (["--value-subject", "a"], "--value-subject"),
        (["--encode", "--key-subject", "a"], "--key-subject"),
    ],
)
def test_options_that_contradict_one_another_are_refused(
    options: list[str], named: str, made: list[FakeProducer]
) -> None:
    done = run("produce", "orders", "--file", "/dev/null", *options)
    assert (done.exit_code, made) == (2, [])
    assert named in done.output


def test_a_file_that_can_not_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(awoke.AwokeError, match="nowhere: No such file or directory"):
        run("produce", "orders", "--file", str(tmp_path / "nowhere"))


def test_messages_of_the_command_are_sent_under_one_key(
    made: list[FakeProducer], capsys: pytest.CaptureFixture[str]
) -> None:
    assert Shape(key="k").record(b"a:b") == awoke.Record(b"a:b", b"k")
    assert Shape(format="json", key="k").record(b"{}") == awoke.Record(b"{}", b"k")
    module.produce("orders", ["one", "two"], key="k")
    assert made[0].sent == [("orders", b"one"), ("orders", b"two")]
    assert capsys.readouterr().err == "delivered 2 messages to orders\n"


def test_a_message_that_can_not_be_sent_is_named_by_its_place(made: list[FakeProducer]) -> None:
    with pytest.raises(awoke.AwokeError, match="the command, message 2: is no JSON"):
        module.produce("orders", ["{}", "{"], format="json")


def test_the_name_of_a_file_is_not_taken_for_a_message(made: list[FakeProducer], tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    file.write_bytes(b"{}\n")
    with pytest.raises(awoke.ConfigError, match=f"{file} is a file; pass --file {file} to send its lines"):
        run("produce", "orders", str(file))
    with pytest.raises(awoke.ConfigError, match="from the command or from --file, not from both"):
        run("produce", "orders", "{}", "--file", str(file))
    assert made == []


def test_the_older_half_of_many_messages_is_awaited(made: list[FakeProducer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", 4)
    sent = SentLines()
    handles: list[Any] = [FakeHandle() for _ in range(5)]
    for handle in handles:
        sent.add(handle)
    assert (waited, sent.delivered) == ([2], 2)
    sent.wait(0)
    assert (waited, sent.delivered, sent.failure()) == ([2, 3], 5, None)


def test_a_file_has_a_size_and_a_pipe_has_none(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"12345")
    with opened((), file) as source:
        assert source.total_bytes == 5
    with open("/dev/null", "rb") as device:
        assert size_of(device) is None
