"""Input that is meant to hurt: nested too deeply, streams that no caller reads, and questions about hidden methods."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import awoke
from awoke import rpc
from tests.support.clusters import MockCluster
from tests.support.rpc_wire import Wire
from tests.support.services import WITHIN_S, calling, new_app

NESTED = b"[" * 200_000


def test_a_reply_that_is_nested_too_deeply_is_a_typed_error(mock_cluster: MockCluster) -> None:
    app, go = new_app(mock_cluster), threading.Event()

    @app.rpc.method
    def hold() -> None:
        go.wait(WITHIN_S)

    with calling(app) as caller, awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        in_details = b'{"code": "internal", "message": "", "details": ' + NESTED
        for kind, body, error in (
            ("reply", NESTED, awoke.DecodeError),
            ("error", NESTED, rpc.Internal),
            ("error", in_details, rpc.Internal),
        ):
            pending = caller.submit("hold")
            wire.reply(caller, body, {"rpc-id": pending.id, "rpc-kind": kind})
            with pytest.raises(error):
                pending.wait()
        go.set()


@pytest.mark.parametrize("body", [NESTED, b'{"value": ' + NESTED, b'{"value": ' + b'{"a":' * 100_000, b"[" + NESTED])
def test_a_request_that_is_nested_too_deeply_is_an_invalid_argument(mock_cluster: MockCluster, body: bytes) -> None:
    app = new_app(mock_cluster)

    @app.rpc.method
    def echo(value: object = None) -> object:
        return value

    with calling(app) as caller, awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        wire.call(body, wire.headers())
        ((kind, error),) = wire.replies(1)
        assert (kind, error["code"]) == ("error", "invalid_argument")  # type: ignore[index]
        assert caller.call("echo", value=1) == 1


def test_a_stream_without_a_reply_ends_at_its_deadline(mock_cluster: MockCluster) -> None:
    app, ended = new_app(mock_cluster), threading.Event()

    @app.rpc.method
    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.set()

    with calling(app) as caller:
        caller.cast("endless", timeout_s=0.5).wait(WITHIN_S)
        assert ended.wait(WITHIN_S)


def test_methods_and_defaults_that_are_not_the_callers_concern_are_hidden(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)

    @app.rpc.method(callers=["billing"])
    def charge(password: str = "hunter2") -> None: ...

    @app.rpc.method
    def quote(sku: str, quantity: int = 4711) -> None: ...

    with calling(app, name="billing") as caller:
        signatures = {each["name"]: each["signature"] for each in caller.methods()}
        assert signatures == {
            "charge": "charge(password: str = ...) -> None",
            "quote": "quote(sku: str, quantity: int = ...) -> None",
        }
        with rpc.Caller(app.name, mock_cluster.bootstrap_servers, name="web", timeout_s=WITHIN_S) as other:
            assert [each["name"] for each in other.methods()] == ["quote"]
