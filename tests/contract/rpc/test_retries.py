"""Which calls a caller makes again, and which it does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from awoke import rpc
from tests.support.clusters import Cluster
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected, wait_until


@pytest.mark.parametrize("error", [rpc.Unavailable, rpc.ResourceExhausted])
def test_an_executed_call_is_made_again_only_if_it_is_idempotent(cluster: Cluster, error: type[rpc.RpcError]) -> None:
    app, tries = new_app(cluster), Collected[bytes | None]()

    @app.rpc.method
    def charge() -> None:
        tries.add(rpc.current_call().idempotency_key)
        raise error("may have happened", retry_after_s=0.01)

    with calling(app, retries=rpc.Retries(attempts=3, backoff_s=(0.01, 0.02))) as caller:
        with pytest.raises(error) as executed:
            caller.call("charge")
        with pytest.raises(error):
            asyncio.run(caller.acall("charge"))
        assert (len(tries.items), executed.value.is_rejected) == (2, False), "an executed call is not made again"
        with pytest.raises(error):
            caller.call("charge", idempotent=True)
        assert len(tries.items) == 5
        assert len(set(tries.items[2:])) == 1, "all attempts have one key"


def test_a_stream_that_has_begun_is_not_made_again(cluster: Cluster) -> None:
    app, tries = new_app(cluster), Collected[int]()

    @app.rpc.method(idempotent=True)
    def count(number: int) -> Iterator[int]:
        tries.add(1)
        yield number
        raise rpc.ResourceExhausted("in the middle", retry_after_s=0.01)

    with calling(app, idempotent=["count"]) as caller:
        with pytest.raises(rpc.ResourceExhausted, match="in the middle"):
            list(caller.stream("count", number=7))
        with pytest.raises(rpc.ResourceExhausted, match="in the middle"):
            astream(caller)
    assert len(tries.items) == 2


def test_a_rejection_of_a_nested_call_is_no_rejection_of_the_outer_one(cluster: Cluster) -> None:
    app, tries = new_app(cluster), Collected[int]()

    @app.rpc.method
    def relay() -> None:
        tries.add(1)
        inner = rpc.ResourceExhausted("of another service")
        inner.is_rejected = True
        raise inner

    with calling(app, retries=rpc.Retries(attempts=3, backoff_s=(0.01, 0.02))) as caller:
        with pytest.raises(rpc.ResourceExhausted) as outer:
            caller.call("relay")
        assert (len(tries.items), outer.value.is_rejected) == (1, False)


def call(caller: rpc.Caller) -> Any:
    return caller.call("echo", number=7)


def acall(caller: rpc.Caller) -> Any:
    return asyncio.run(caller.acall("echo", number=7))


def stream(caller: rpc.Caller) -> Any:
    (number,) = caller.stream("count", number=7)
    return number


def astream(caller: rpc.Caller) -> Any:
    async def ask() -> list[Any]:
        return [number async for number in caller.stream("count", number=7)]

    (number,) = asyncio.run(ask())
    return number


@pytest.mark.parametrize("ask", [call, acall, stream, astream])
def test_a_rejected_call_is_made_again(cluster: Cluster, ask: Callable[[rpc.Caller], Any]) -> None:
    app, go, began = (
        new_app(cluster, threads=1, waiting_max=1, retry_after_s=0.01),
        threading.Event(),
        threading.Event(),
    )

    @app.rpc.method
    def hold() -> None:
        began.set()
        go.wait(WITHIN_S)

    @app.rpc.method
    def echo(number: int) -> int:
        return number

    @app.rpc.method
    def count(number: int) -> Iterator[int]:
        yield number

    retries = rpc.Retries(attempts=1_000, backoff_s=(0.01, 0.01), budget=1_000)
    with calling(app, retries=retries) as caller, ThreadPoolExecutor(2) as pool:
        held = caller.submit("hold")
        assert began.wait(WITHIN_S)
        before = caller.counters()["replies"]
        asked = [pool.submit(ask, caller) for _ in range(2)]  # There is room for one of them.
        wait_until(lambda: caller.counters()["replies"] > before, "a call is rejected", every_s=0.01)
        go.set()
        assert [each.result(WITHIN_S) for each in asked] == [7, 7]
        held.wait()
