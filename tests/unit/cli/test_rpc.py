"""`awoke rpc`: arguments, results, errors with advice, and the table of methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import awoke
from awoke.cli.rpc import cells, value_of
from tests.unit.cli.fakes import run

METHOD: dict[str, Any] = {
    "signature": "quote(sku: str) -> float",
    "result_type": "float",
    "doc": "The price.\nIn euros.",
    "is_idempotent": True,
    "is_stream": False,
}


class FakeCaller:
    """A service with one method; `error` is what its stream ends with."""

    made: list[FakeCaller] = []
    results: list[Any] = []
    error: BaseException | None = None

    def __init__(self, service: str, bootstrap_servers: str | None, **options: Any) -> None:
        self.service, self.options = service, {"bootstrap_servers": bootstrap_servers, **options}
        self.called: list[tuple[str, Any, dict[str, Any]]] = []
        self.made.append(self)

    def __enter__(self) -> FakeCaller:
        return self

    def __exit__(self, *_: object) -> None: ...

    def stream(self, method: str, *, key: str | None = None, **arguments: Any) -> Iterator[Any]:
        self.called.append((method, key, arguments))
        yield from self.results
        if self.error is not None:
            raise self.error

    def methods(self) -> list[dict[str, Any]]:
        return [METHOD, {**METHOD, "signature": "watch()", "is_stream": True, "is_idempotent": False}]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> type[FakeCaller]:
    monkeypatch.setattr("awoke.rpc.Caller", FakeCaller)
    for name, value in (("made", []), ("results", []), ("error", None)):
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
        (awoke.rpc.NotFound("no sku\x1b"), r"no sku\\x1b$"),
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
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]
    assert rows == [
        ["quote(sku: str) -> float", "yes", "float", "The price."],
        ["", "", "", "In euros."],
        ["watch()", "no", "stream of float", "The price."],
        ["", "", "", "In euros."],
    ]


def test_the_words_of_a_responder_are_harmless() -> None:
    hostile = {**METHOD, "signature": "a\n\x1b", "result_type": "\u202e", "doc": "one\ntwo\x1b"}
    assert cells(hostile) == (r"a\n\x1b", "yes", r"\u202e", "one\ntwo\\x1b")
