"""A signature is worth nothing elsewhere: in another service, under another key, with other headers, or in a copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import MockCluster
from tests.support.rpc_wire import Headers, Wire, sign_reply, sign_request
from tests.support.services import calling, new_app
from tests.support.waiting import Collected

SECRET = b"0123456789abcdef0123456789abcdef"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "rpc_protocol.md"


def test_the_documentation_has_the_test_vector() -> None:
    page = PAGE.read_text()
    listed = re.search(r"^```text\n(.*?)^```", page[page.index("**Test vector.**") :], re.MULTILINE | re.DOTALL)
    assert listed is not None
    headers = dict(line.split(": ", 1) for line in listed[1].splitlines())
    topic, body = "shop.rpc.calls", b'{"sku":"A1"}'
    assert sign_request(SECRET, topic, b"A1", headers, body).hex() in page
    assert sign_reply(SECRET, topic, headers["rpc-id"].encode(), "reply", b"28.5").hex() in page
    more = {"rpc-kind": "more", "rpc-id": headers["rpc-id"], "rpc-caller": "web", "rpc-deadline-ms": "1700000005000"}
    assert sign_request(SECRET, topic, None, {**more, "rpc-credit": "384"}, b"").hex() in page


def signed(wire: Wire, headers: Headers, key: bytes | None = b"key", body: bytes = b'["x"]') -> Headers:
    """With the signature of a caller that knows the secret."""
    return {**headers, "rpc-signature": sign_request(SECRET, wire.topic, key, headers, body)}


def with_echo(app: awoke.App) -> Collected[dict[str, bytes | None]]:
    """Serves `echo`, and collects the headers that it sees."""
    seen = Collected[dict[str, bytes | None]]()

    @app.rpc.method
    def echo(text: str) -> str:
        seen.add(dict(rpc.current_call().headers))
        return text

    return seen


def test_a_copy_to_another_service_or_key_or_with_other_headers_is_refused(mock_cluster: MockCluster) -> None:
    app, other = new_app(mock_cluster, secret=SECRET), new_app(mock_cluster, secret=SECRET)
    seen, seen_by_other = with_echo(app), with_echo(other)
    with running(app), running(other), awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire, elsewhere = Wire(app, producer), Wire(other, producer)
        headers = signed(wire, wire.headers(rpc_signed="tenant", tenant="7"))
        elsewhere.call(b'["x"]', headers, key=b"key")
        assert elsewhere.refused.wait_for(1) == ["forged"]
        for key, changed in ((b"other", headers), (None, headers), (b"key", {**headers, "tenant": "8"})):
            wire.call(b'["x"]', changed, key=key)
        assert wire.refused.wait_for(3) == ["forged"] * 3
        wire.call(b'["x"]', {**headers, "role": "admin"}, key=b"key")
        assert wire.replies(1) == [("reply", "x")]
        wire.call(b'["x"]', headers, key=b"key")
        assert wire.refused.wait_for(4)[3:] == ["replayed"]
    assert seen.items == [{"tenant": b"7"}], "a header that its caller has not signed is not seen"
    assert seen_by_other.items == []


def test_a_copied_grant_of_credit_has_no_effect(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster, secret=SECRET)

    @app.rpc.method
    def count() -> Iterator[int]:
        yield from range(100)

    with running(app), awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)

        def write(kind: str, **changes: str | None) -> None:
            headers = wire.headers(rpc_kind=kind, rpc_method="count", **changes)
            wire.call(b"{}", signed(wire, headers, None, b"{}"))

        write("call", rpc_credit="2")
        wire.replies(2)
        for _ in range(5):
            write("more", rpc_credit="3")
        write("more", rpc_credit="1")
        wire.replies(3)
        write("more", rpc_credit="4")
        wire.replies(4)
        write("cancel")
        *items, (kind, error) = wire.replies(5)
    assert items == [("item", number) for number in range(4)], "the responder sent as many as were granted in total"
    assert (kind, error["code"]) == ("error", "cancelled")  # type: ignore[index]


@pytest.mark.parametrize(
    ("changes", "version", "reason"),
    [
        ({"rpc_deadline_ms": None}, b"\x01", "undecodable"),
        ({"rpc_kind": "cancel", "rpc_deadline_ms": None}, b"\x01", "undecodable"),
        ({}, b"\x02", "forged"),
        ({}, b"", "forged"),
    ],
    ids=["no deadline", "cancel without a deadline", "another version", "no version"],
)
def test_a_signature_that_says_too_little_is_refused(
    mock_cluster: MockCluster, changes: dict[str, str | None], version: bytes, reason: str
) -> None:
    app = new_app(mock_cluster, secret=SECRET)
    seen = with_echo(app)
    with running(app), awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        headers = wire.headers(**changes)
        right = sign_request(SECRET, wire.topic, None, headers, b'["x"]')
        wire.call(b'["x"]', {**headers, "rpc-signature": version + right[1:]})
        assert wire.refused.wait_for(1) == [reason]
    assert seen.items == []


def test_a_caller_signs_its_own_headers(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster, secret=SECRET)
    seen = with_echo(app)
    with calling(app, secret=SECRET) as caller:
        assert caller.call("echo", text="x", headers={"tenant": "7", "none": None}, key="A1") == "x"
        with pytest.raises(ValueError, match="can't be signed"):
            caller.call("echo", text="x", headers={"a,b": "7"})
    assert seen.items == [{"tenant": b"7", "none": None}]


def test_a_caller_refuses_what_no_responder_reads(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    with_echo(app)
    with calling(app) as caller:
        bad: dict[str, Any]
        for words, bad in (
            ("idempotency key", {"idempotency_key": "x" * 257}),
            ("headers", {"headers": {f"more-{number}": "x" for number in range(60)}}),
        ):
            with pytest.raises(ValueError, match=words):
                caller.call("echo", text="x", **bad)
        with pytest.raises(ValueError, match="method"):
            caller.call("x" * 129)
    option: dict[str, Any]
    for option in ({"name": "x" * 129}, {"window": 70_000}):
        with pytest.raises(awoke.ConfigError):
            rpc.Caller(app.name, mock_cluster.bootstrap_servers, **option)
