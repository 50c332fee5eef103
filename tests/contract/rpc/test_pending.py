"""Calls over Kafka that have their results later: a pending result, streams, and replies of several groups."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import awoke
from awoke import rpc
from awoke.testing import VirtualClock, running
from tests.support.clusters import Cluster, unique
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected


def test_streams_come_in_order_as_fast_as_they_are_read(cluster: Cluster) -> None:
    app, sent = new_app(cluster), Collected[int]()

    @app.rpc.method
    def count(to: int) -> Iterator[int]:
        for number in range(to):
            sent.add(number)
            yield number

    @app.rpc.method
    async def acount(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number
        if to == 3:
            raise rpc.Aborted("after three")

    async def read_async(caller: rpc.Caller) -> list[int]:
        return [number async for number in caller.stream("acount", to=100, returns=int)]

    with calling(app, window=8) as caller:
        slow = iter(caller.stream("count", to=100))
        assert next(slow) == 0
        sent.wait_for(9)
        assert len(sent.items) <= 10, "more is under way than the window allows"
        assert list(slow) == list(range(1, 100))
        assert asyncio.run(read_async(caller)) == list(range(100))
        got = []
        with pytest.raises(rpc.Aborted, match="after three"):
            for number in caller.stream("acount", to=3):
                got.append(number)
        assert got == [0, 1, 2]
        assert list(caller.stream("count", to=0)) == []


def test_a_stream_ends_with_a_result_that_is_too_large(cluster: Cluster) -> None:
    app, ended = new_app(cluster), Collected[str]()

    @app.rpc.method
    def sizes() -> Iterator[str]:
        try:
            yield from ("x", "x" * 2_000_000, "x")
        finally:
            ended.add("sizes")

    with calling(app) as caller:
        found = []
        with pytest.raises(rpc.ResourceExhausted, match="too large"):
            for each in caller.stream("sizes"):
                found.append(each)
        assert found == ["x"]
        assert ended.wait_for(1) == ["sizes"]


def test_leaving_a_stream_ends_it(cluster: Cluster) -> None:
    app, ended = new_app(cluster), threading.Event()

    @app.rpc.method
    def forever() -> Iterator[int]:
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            ended.set()

    with calling(app, window=4) as caller:
        for number in caller.stream("forever"):
            if number == 10:
                break
        assert ended.wait(WITHIN_S)


@pytest.mark.parametrize("mode", ["at_least_once", "at_most_once"])
def test_a_stream_that_waits_for_its_caller_is_given_back_with_its_partition(cluster: Cluster, mode: str) -> None:
    name, sent, overdue = unique("shop"), Collected[int](), Collected[awoke.Event]()
    servers, kafka = cluster.bootstrap_servers, cluster.properties

    def new_owner() -> awoke.App:
        app = awoke.App(name, bootstrap_servers=servers, kafka=kafka)
        app.rpc.options(mode=mode)
        app.events.subscribe("job.overdue", overdue.add)

        @app.rpc.method
        def count(to: int) -> Iterator[int]:
            for number in range(to):
                sent.add(number)
                yield number

        return app

    options: dict[str, Any] = {"window": 4, "timeout_s": 2 * WITHIN_S, "kafka": kafka, "create_topics": True}
    with rpc.Caller(name, servers, **options) as caller:
        with running(new_owner()):
            caller.wait_until_served()
            stream = iter(caller.stream("count", to=50))
            assert next(stream) == 0
            sent.wait_for(5)  # It has sent what the window allows. What grants more comes to the next owner.
        assert overdue.items == []
        if mode == "at_most_once":
            with pytest.raises(rpc.Unavailable, match="cut off"):
                list(stream)
            return
        with running(new_owner()):
            assert list(stream) == list(range(1, 50))


def scatter_until_the_deadline(caller: rpc.Caller, clock: VirtualClock | None) -> rpc.Gathered:
    """Asks for a fourth reply, which does not come. Blocks until the deadline."""
    results = Collected[int]()

    def note(found: Sequence[Any]) -> bool:
        results.add(len(found))
        return False

    with ThreadPoolExecutor() as pool:
        part = pool.submit(caller.scatter, "price", replies=4, timeout_s=10.0, until=note)
        results.wait_until(lambda counts: 2 in counts)
        if clock is not None:
            clock.advance(10.0)
        return part.result(WITHIN_S)


def test_scatter_asks_several_groups(cluster: Cluster, clock: VirtualClock | None) -> None:
    service = unique("shop")
    apps = [awoke.App(service, bootstrap_servers=cluster.bootstrap_servers, group=f"{service}-{n}") for n in range(3)]

    def serve(app: awoke.App, number: int) -> None:
        @app.rpc.method
        def price() -> int:
            if number == 2:
                raise rpc.NotFound("not here")
            return number

    for number, app in enumerate(apps):
        serve(app, number)
    with contextlib.ExitStack() as stack:
        for app in apps:
            stack.enter_context(running(app))
        caller = stack.enter_context(rpc.Caller(service, cluster.bootstrap_servers, timeout_s=WITHIN_S))
        whole = caller.scatter("price", replies=3)
        assert (sorted(whole.results), len(whole.errors), whole.is_partial) == ([0, 1], 1, False)
        part = scatter_until_the_deadline(caller, clock)
        assert (sorted(part.results), part.is_partial) == ([0, 1], True)
        enough = asyncio.run(caller.ascatter("price", replies=4, until=lambda results: len(results) == 1))
        assert (len(enough.results), enough.is_partial) == (1, True)
        assert caller.open_calls() == 0


def test_a_result_that_is_asked_for_later(cluster: Cluster) -> None:
    app, go, called_back = new_app(cluster), threading.Event(), Collected[int]()

    @app.rpc.method
    def hold() -> int:
        go.wait(WITHIN_S)
        return 7

    with calling(app) as caller:
        pending = caller.submit("hold")
        pending.add_done_callback(lambda each: called_back.add(each.result()))
        assert not pending.done()
        with pytest.raises(TimeoutError):
            pending.result()
        with pytest.raises(TimeoutError):
            pending.wait(timeout_s=0.01)
        go.set()
        assert pending.wait() == pending.result() == 7
        assert called_back.wait_for(1) == [7]
