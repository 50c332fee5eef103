"""The threads of a responder over Kafka: cancellation, the queue, counters, and the end of the app."""

from __future__ import annotations

import asyncio
import threading

import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import Cluster
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected, ahang, wait_until


@pytest.mark.parametrize("method", ["hold", "ahold"])
def test_a_cancelled_call_reaches_its_method(cluster: Cluster, method: str) -> None:
    app, told, began = new_app(cluster, threads=1), Collected[str](), threading.Event()

    @app.rpc.method
    def hold() -> None:
        began.set()
        if rpc.current_call().wait_cancelled():
            told.add("cancelled")

    @app.rpc.method
    async def ahold() -> None:
        began.set()
        try:
            await ahang()
        except asyncio.CancelledError:
            told.add("cancelled")
            raise

    with calling(app) as caller:
        pending = caller.submit(method)
        assert began.wait(WITHIN_S)
        assert pending.cancel()
        assert told.wait_for(1) == ["cancelled"]
        assert not pending.cancel()
        with pytest.raises(rpc.Cancelled):
            pending.wait()


def test_a_method_that_ends_the_process_ends_the_app(cluster: Cluster) -> None:
    app, errors = new_app(cluster, threads=1), Collected[BaseException]()

    @app.rpc.method
    def leave() -> None:
        raise SystemExit(3)

    @app.rpc.method
    async def aleave() -> None:
        raise SystemExit(4)

    server = awoke.AppRunner(app, errors.add)
    server.start()
    with rpc.Caller(app.name, cluster.bootstrap_servers, timeout_s=WITHIN_S) as caller:
        with pytest.raises(rpc.Internal):
            caller.call("leave")
        (error,) = errors.wait_for(1)
        assert isinstance(error, SystemExit)
        with pytest.raises(rpc.Internal):
            caller.call("aleave")
    assert server.stop()


def test_queued_calls_are_executed_by_free_threads(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    # One thread may still be queuing a call while another one takes it out again.
    app = new_app(cluster, threads=3, waiting_max=10_000)

    @app.rpc.method
    def double(number: int) -> int:
        return 2 * number

    with calling(app, retries=rpc.Retries(attempts=1)) as caller:
        for _ in range(5):
            pending = [caller.submit("double", number=number) for number in range(1_000)]
            assert [each.wait() for each in pending] == [2 * number for number in range(1_000)]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_calls_are_counted(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def fail(how: bool) -> None:
        if how:
            raise rpc.NotFound

    app.use(metrics_port=0)
    with running(app) as server, rpc.Caller(app.name, cluster.bootstrap_servers, timeout_s=WITHIN_S) as caller:
        caller.call("fail", how=False)
        for method in ("fail", "nothing"):
            with pytest.raises(rpc.RpcError):
                caller.call(method, how=True)
        text = server.metrics_text().decode()
        assert 'awoke_rpc_calls_total{method="fail",outcome="ok"} 1.0' in text
        assert 'awoke_rpc_calls_total{method="fail",outcome="not_found"} 1.0' in text
        assert 'awoke_rpc_calls_total{method="",outcome="unimplemented"} 1.0' in text
        assert 'awoke_rpc_run_seconds_count{method="fail"} 2.0' in text
        # The place of a call is free a moment after its reply was sent.
        wait_until(lambda: b"awoke_rpc_running_calls 0.0" in server.metrics_text(), "no call runs", every_s=0.01)


def test_a_service_that_calls_another_counts_its_calls(cluster: Cluster) -> None:
    stock, shop = new_app(cluster), new_app(cluster)

    @stock.rpc.method(callers=[shop.name])
    def left(sku: str) -> int:
        return len(sku)

    @shop.rpc.method
    def offer(sku: str) -> bool:
        return bool(shop.caller(stock.name).call("left", sku=sku) > 0)

    shop.use(metrics_port=0)
    with running(stock), running(shop) as server, rpc.Caller(shop.name, cluster.bootstrap_servers) as caller:
        assert caller.call("offer", sku="A1", timeout_s=WITHIN_S)
        assert shop.caller(stock.name) is shop.caller(stock.name)
        text = server.metrics_text().decode()
        assert f'awoke_rpc_caller_total{{service="{stock.name}",what="replies"}} 1.0' in text
        assert f'awoke_rpc_open_calls{{service="{stock.name}"}} 0.0' in text
    assert shop.callers() == {}
