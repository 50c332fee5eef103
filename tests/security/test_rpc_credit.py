"""Streams whose callers take nothing hold some threads for some time: other calls are executed meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

import awoke
from awoke import rpc
from tests.support.clusters import MockCluster
from tests.support.rpc_wire import Wire
from tests.support.services import calling, new_app
from tests.support.waiting import Collected

STREAMS = 10


def streaming_app(cluster: MockCluster, ended: Collected[str], **options: object) -> awoke.App:
    app = new_app(cluster, **options)

    @app.rpc.method
    def numbers() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            ended.add("def")

    @app.rpc.method
    async def anumbers() -> AsyncIterator[int]:
        try:
            for number in range(100):
                yield number
        finally:
            ended.add("async def")

    @app.rpc.method
    def echo(text: str) -> str:
        return text

    @app.rpc.method
    async def aecho(text: str) -> str:
        return text

    return app


def begin_streams(wire: Wire, method: str) -> None:
    """Begins streams that get no credit: each waits before its first result."""
    for number in range(STREAMS):
        wire.call(b"{}", wire.headers(rpc_id=b"%016d" % number, rpc_method=method, rpc_credit="0"))


@pytest.mark.parametrize("kind", ["", "a"])
def test_streams_without_credit_leave_half_of_the_threads(mock_cluster: MockCluster, kind: str) -> None:
    ended = Collected[str]()
    app = streaming_app(mock_cluster, ended, threads=4, tasks=4)
    with calling(app) as caller, awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        begin_streams(Wire(app, producer), f"{kind}numbers")
        ended.wait_for(STREAMS - 2)
        for _ in range(5):
            assert caller.call(f"{kind}echo", "x") == "x"
        assert len(ended.items) == STREAMS - 2, "half of the threads wait"


@pytest.mark.parametrize("kind", ["", "a"])
def test_a_stream_waits_for_its_caller_for_some_time_only(mock_cluster: MockCluster, kind: str) -> None:
    ended = Collected[str]()
    app = streaming_app(mock_cluster, ended, credit_wait_s=0.2)
    with calling(app, window=2) as caller:
        stream = iter(caller.stream(f"{kind}numbers"))
        assert next(stream) == 0
        ended.wait_for(1)
        with pytest.raises(rpc.FailedPrecondition, match="has granted no further result within"):
            list(stream)
