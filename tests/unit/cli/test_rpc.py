"""`awoke rpc`: arguments, results, errors with advice, and the table of methods."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import awoke
from awoke.cli.rpc import cells, value_of
from awoke.payloads.registry import Schema, SchemaRegistry
from awoke.payloads.registry.schemas import loading
from awoke.rpc import forms
from awoke.testing.registry import EmbeddedRegistry
from tests.unit.cli.fakes import run

METHOD: dict[str, Any] = {
    "name": "quote",
    "signature": "quote(sku: str) -> float",
    "result_type": "float",
    "doc": "The price.\nIn euros.",
    "is_idempotent": True,
    "is_stream": False,
}


class FakeCaller:
    """A service with two methods; `error` is what a stream of JSON ends with. `asked` counts its descriptions."""

    made: list[FakeCaller] = []
    results: list[Any] = []
    error: BaseException | None = None
    argument_format: str | None = None
    asked = 0

    def __init__(self, service: str, bootstrap_servers: str | None, **options: Any) -> None:
        self.service, self.options = service, {"bootstrap_servers": bootstrap_servers, **options}
        self.called: list[tuple[str, Any, dict[str, Any]]] = []
        self.schemas = options.pop("schemas", None)
        self.options.pop("schemas", None)
        self.made.append(self)

    def __enter__(self) -> FakeCaller:
        return self

    def __exit__(self, *_: object) -> None: ...

    def stream(
        self, method: str, *fields: Any, key: str | None = None, returns: Any, argument: Any = None, **arguments: Any
    ) -> Iterator[Any]:
        if argument is not None:
            encode = argument.encoder(forms.argument_topic(self.service, method), "value", self.schemas)
            arguments = {"written": loading(encode)(*fields)[0]}
        self.called.append((method, key, arguments))
        return self._results(argument is None)

    def _results(self, is_json: bool) -> Iterator[Any]:
        for each in self.results:
            yield each if isinstance(each, tuple) else (json.dumps(each).encode(), ())
        if self.error is not None and is_json:
            raise self.error

    def methods(self) -> list[dict[str, Any]]:
        type(self).asked += 1
        found = {**METHOD, "argument_format": self.argument_format}
        return [found, {**METHOD, "name": "watch", "signature": "watch()", "is_stream": True, "is_idempotent": False}]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> type[FakeCaller]:
    monkeypatch.setattr("awoke.rpc.Caller", FakeCaller)
    for name, value in (("made", []), ("results", []), ("error", None), ("argument_format", None), ("asked", 0)):
        monkeypatch.setattr(FakeCaller, name, value)
    return FakeCaller


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ('"3"', "3"),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', {"a": 1}),
        ("A1", "A1"),
        ("", ""),
        ("{", "{"),
    ],
)
def test_an_argument_is_json_or_else_text(text: str, value: object) -> None:
    assert value_of(text) == value


def test_each_result_is_one_line_of_json(service: type[FakeCaller]) -> None:
    service.results = [{"price": 1.5}, "caf\u00e9\u2028", None]
    done = run("rpc", "call", "shop", "quote", "sku=A1", "quantity=3", "--key", "k")
    assert done.output == '{"price": 1.5}\n"caf\u00e9\\u2028"\nnull\n'
    assert service.made[0].called == [("quote", "k", {"sku": "A1", "quantity": 3})]
    assert service.asked == 0, "a method that takes JSON costs no other request"


def test_a_caller_has_the_options_of_the_command(service: type[FakeCaller], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWOKE_RPC_SECRET", "s\u00fc\u00df")
    run("rpc", "call", "shop", "quote", "-b", "a:1", "--timeout-s", "2", "--group", "g", "--kafka", "acks=1")
    run("rpc", "methods", "shop", "--secret", "other")
    first, second = service.made
    assert first.service == "shop"
    assert first.options == {
        "bootstrap_servers": "a:1",
        "name": "awoke rpc",
        "group": "g",
        "timeout_s": 2.0,
        "secret": "s\u00fc\u00df".encode(),
        "kafka": {"acks": "1"},
    }
    assert (second.options["secret"], second.options["timeout_s"]) == (b"other", 5.0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (awoke.rpc.Unimplemented("no method 'qoute'"), "; see: awoke rpc methods shop"),
        (awoke.rpc.DeadlineExceeded("too late"), "; wait longer with --timeout-s"),
        (awoke.rpc.NotFound("no sku\x1b"), r"no sku\\x1b"),
    ],
)
def test_an_error_of_a_method_says_its_code_and_what_to_do(
    error: awoke.rpc.RpcError, said: str, service: type[FakeCaller]
) -> None:
    service.error = error
    with pytest.raises(awoke.RpcError, match=said) as raised:
        run("rpc", "call", "shop", "quote")
    assert str(raised.value).startswith(f"{error.code}: ")


def test_the_traceback_of_a_method_is_shown_below_its_error(service: type[FakeCaller]) -> None:
    error = awoke.rpc.Internal("no good")
    error.remote_traceback = "Traceback\n  line\x1b"
    service.error = error
    with pytest.raises(awoke.RpcError) as raised:
        run("rpc", "call", "shop", "quote")
    assert str(raised.value).endswith("no good\nTraceback\n  line\\x1b")


def test_arguments_that_can_not_be_sent_are_an_error_of_the_command_line(service: type[FakeCaller]) -> None:
    service.error = TypeError("timeout_s is no argument")
    with pytest.raises(awoke.ConfigError, match="quote: timeout_s is no argument") as refused:
        run("rpc", "call", "shop", "quote")
    assert refused.value.property == "arguments"


def test_methods_are_a_table(service: type[FakeCaller]) -> None:
    output = run("rpc", "methods", "shop").output
    rows = [re.split(r" {2,}", line.strip()) for line in output.splitlines()]
    assert rows == [
        ["method", "idempotent", "returns", "what it does"],
        ["quote(sku: str) -> float", "yes", "float", "The price."],
        ["In euros."],
        ["watch()", "no", "stream of float", "The price."],
        ["In euros."],
    ]
    first, _ = map(json.loads, run("rpc", "methods", "shop", "--json").output.splitlines())
    assert (first["name"], first["is_idempotent"], first["doc"]) == ("quote", True, "The price.\nIn euros.")


def test_a_method_in_a_format_is_shown_with_it() -> None:
    of_avro = {**METHOD, "argument_format": "Avro", "result_format": "Protobuf"}
    assert cells(of_avro)[0] == f"{METHOD['signature']} as Avro"
    assert cells(of_avro)[2] == f"{METHOD['result_type']} as Protobuf"


def test_the_words_of_a_responder_are_harmless() -> None:
    hostile = {**METHOD, "signature": "a\n\x1b", "result_type": "\u202e", "doc": "one\ntwo\x1b"}
    assert cells(hostile) == (r"a\n\x1b", "yes", r"\u202e", "one\ntwo\\x1b")


ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "key", "type": "int"}]}
REFUSED = awoke.rpc.InvalidArgument("quote: it can't be read as Avro")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedRegistry]:
    """A registry with the schema of the argument of `shop.quote`, which has the id 1."""
    with EmbeddedRegistry() as registry, SchemaRegistry(registry.url) as client:
        client.register("shop.rpc.calls.quote-value", Schema(json.dumps(ORDER)))
        monkeypatch.delenv("AWOKE_REGISTRY_URL", raising=False)
        yield registry


def test_a_method_that_does_not_read_json_is_called_in_its_format(
    service: type[FakeCaller], registry: EmbeddedRegistry
) -> None:
    service.error, service.argument_format = REFUSED, "Avro"
    written = {"written": b"\0\0\0\0\1\6\2"}
    with pytest.raises(awoke.EncodeError, match=r"field 'key' \(int\) is missing; see: awoke schema show shop"):
        run("rpc", "call", "shop", "quote", "id=3", "--registry-url", registry.url)
    run("rpc", "call", "shop", "quote", "id=3", "key=1", "--registry-url", registry.url)
    assert service.made[-1].called == [("quote", None, written)], "JSON has no parameter with the name of an option"


def test_an_argument_in_a_format_needs_a_registry_that_answers_and_has_its_schema(
    service: type[FakeCaller], registry: EmbeddedRegistry
) -> None:
    service.error, service.argument_format = REFUSED, "Protobuf"
    with pytest.raises(awoke.ConfigError, match=r"quote takes its argument as Protobuf, .*: no schema registry is set"):
        run("rpc", "call", "shop", "quote", "id=3")
    with pytest.raises(
        awoke.AwokeError, match=r"quote takes its argument as Protobuf, .*: the schema registry does not answer"
    ):
        run("rpc", "call", "shop", "quote", "id=3", "--registry-url", "http://127.0.0.1:1")
    with pytest.raises(awoke.AwokeError, match=r"no schema of 'other.rpc.calls.quote-value': .*call it in Python"):
        run("rpc", "call", "other", "quote", "id=3", "--registry-url", registry.url)


def test_a_format_without_schemas_is_refused(service: type[FakeCaller]) -> None:
    service.error, service.argument_format = REFUSED, "MessagePack"
    with pytest.raises(awoke.AwokeError, match=r"quote takes its argument as MessagePack.*: call it in Python"):
        run("rpc", "call", "shop", "quote", "id=3")


def test_an_error_of_a_method_is_its_own_if_it_takes_json_or_has_begun(service: type[FakeCaller]) -> None:
    service.error = REFUSED
    with pytest.raises(awoke.RpcError, match="it can't be read as Avro"):
        run("rpc", "call", "shop", "quote")
    service.argument_format, service.results = "Avro", [1]
    with pytest.raises(awoke.RpcError, match="it can't be read as Avro"):
        run("rpc", "call", "shop", "quote")
    assert service.asked == 1, "a stream that has begun was executed"
    service.results = []
    with pytest.MonkeyPatch.context() as patch, pytest.raises(awoke.RpcError, match="it can't be read as Avro"):
        patch.setattr(service, "methods", lambda self: (_ for _ in ()).throw(awoke.rpc.NobodyThere("gone")))
        run("rpc", "call", "shop", "quote")


def test_a_result_that_names_a_schema_needs_a_registry_that_answers(
    service: type[FakeCaller], registry: EmbeddedRegistry
) -> None:
    service.results = [(b"\0\0\0\0\1\6\2", ())]
    assert run("rpc", "call", "shop", "quote", "--registry-url", registry.url).output == '{"id":3,"key":1}\n'
    with pytest.raises(awoke.ConfigError, match=r"quote was executed, .*: no schema registry is set"):
        run("rpc", "call", "shop", "quote")
    with pytest.raises(awoke.AwokeError, match=r"quote was executed, .*: the schema registry does not answer"):
        run("rpc", "call", "shop", "quote", "--registry-url", "http://127.0.0.1:1")
