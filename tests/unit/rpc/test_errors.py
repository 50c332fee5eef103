"""The codes of remote calls: each has its class, its HTTP status and its place in the protocol."""

from __future__ import annotations

import asyncio
import re

import pytest

import awoke
from awoke import rpc
from awoke.rpc.errors import KINDS, error_of
from tests.support.python_syntax import REPOSITORY


def test_every_code_has_its_class() -> None:
    for code, kind in KINDS.items():
        assert kind.code == code
        assert issubclass(kind, rpc.RpcError)
        assert getattr(rpc, kind.__name__) is kind


def test_every_code_has_an_http_status_and_stands_in_the_protocol() -> None:
    page = (REPOSITORY / "docs" / "rpc_protocol.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| [^|]+ \| (\d{3}) \|$", page, re.MULTILINE)
    documented = {code: int(status) for code, status in rows}
    assert documented == {code: rpc.http_status(kind("")) for code, kind in KINDS.items()}


def test_every_code_of_the_engine_has_its_class() -> None:
    source = (REPOSITORY / "crates" / "engine" / "src" / "rpc" / "caller" / "call.rs").read_text()
    codes = set(re.findall(r'\(\s*"([a-z_]+)",', source[source.index("fn explain(") :]))
    assert codes >= {"deadline_exceeded", "nobody_there"}
    assert codes - {"closed"} <= set(KINDS)


class OutOfStock(rpc.FailedPrecondition):
    code = "out_of_stock"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (rpc.NotFound("gone"), 404),
        (rpc.NobodyThere("no one"), 503),
        (OutOfStock("none left"), 400),
        (error_of("not_found", "of a code"), 404),
        (error_of("out_of_stock", "of an unknown code"), 500),
        (awoke.ClosedError("closed"), 503),
        (TimeoutError(), 504),
        (asyncio.CancelledError(), 499),
        (ValueError("else"), 500),
    ],
)
def test_an_error_has_an_http_status(error: BaseException, status: int) -> None:
    assert rpc.http_status(error) == status
