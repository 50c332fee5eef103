"""Ways to call: typed clients, callers opened on an event loop, warnings of calls that block one, and the shell."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import Cluster
from tests.support.command_line import awoke_says
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected


class Line(msgspec.Struct):
    sku: str
    amount: float


class Shop(Protocol):
    """As a service and its callers share it."""

    def quote(self, sku: str, quantity: int = 1) -> Line: ...
    def note(self, text: str) -> None: ...
    def report(self, lines: int) -> Iterator[Line]: ...


class AsyncShop(Protocol):
    async def quote(self, sku: str, quantity: int = 1) -> Line: ...
    async def note(self, text: str) -> None: ...
    def report(self, lines: int) -> AsyncIterator[Line]: ...


def new_shop(cluster: Cluster, **options: Any) -> awoke.App:
    """A service with the methods of `Shop`."""
    app = new_app(cluster, **options)

    @app.rpc.method
    def quote(sku: str, quantity: int = 1) -> Line:
        return Line(sku, 9.5 * quantity)

    @app.rpc.method
    async def note(text: str) -> None:
        if not text:
            raise rpc.FailedPrecondition("an empty note")

    @app.rpc.method
    async def report(lines: int) -> AsyncIterator[Line]:
        for number in range(lines):
            yield Line(str(number), number)

    return app


def test_a_typed_client_calls_by_name(cluster: Cluster) -> None:
    with calling(new_shop(cluster)) as caller:
        shop = caller.client(Shop)
        assert shop.quote("A1", quantity=2) == shop.quote("A1", 2) == shop.quote(sku="A1", quantity=2) == Line("A1", 19)
        assert list(shop.report(2)) == [Line("0", 0), Line("1", 1)]
        shop.note("fine")
        with pytest.raises(rpc.FailedPrecondition, match="an empty note"):
            shop.note("")
        with pytest.raises(TypeError, match="takes 2 arguments"):
            shop.quote("A1", 2, 3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="several values"):
            shop.quote("A1", sku="A1")  # type: ignore[misc]
        with pytest.raises(AttributeError, match="Shop has no method 'buy'"):
            shop.buy()  # type: ignore[attr-defined]


async def test_a_typed_client_awaits_what_the_class_declares_so(cluster: Cluster) -> None:
    app = new_shop(cluster)
    with await asyncio.to_thread(lambda: running(app)):
        async with rpc.Caller(app.name, cluster.bootstrap_servers, timeout_s=WITHIN_S) as caller:
            for shop in (caller.aclient(AsyncShop), caller.client(AsyncShop)):
                assert await shop.quote("A1", quantity=2) == Line("A1", 19)
                assert [line.sku async for line in shop.report(3)] == ["0", "1", "2"]
                with pytest.raises(rpc.FailedPrecondition):
                    await shop.note("")


class Never(msgspec.Struct):
    """A type that no reply can be read as."""

    nothing: int


class WrongShop(Protocol):
    def quote(self, sku: str) -> Never: ...


def test_a_typed_client_reads_results_as_the_annotations_say(cluster: Cluster) -> None:
    with calling(new_shop(cluster)) as caller, pytest.raises(awoke.DecodeError, match="Never"):
        caller.client(WrongShop).quote("A1")


def endless(executed: Collected[str]) -> Callable[[], Iterator[int]]:
    def numbers() -> Iterator[int]:
        executed.add("numbers")
        number = 0
        while True:
            yield (number := number + 1)

    return numbers


def test_a_call_of_a_streaming_method_names_stream_and_executes_nothing(cluster: Cluster) -> None:
    app, executed = new_shop(cluster), Collected[str]()
    app.rpc.method(endless(executed))
    with calling(app) as caller:
        asks: list[Callable[[], Any]] = [
            lambda: caller.call("numbers"),
            lambda: asyncio.run(caller.acall("numbers")),
            lambda: caller.submit("numbers").wait(),
            lambda: caller.call("report", lines=0),
        ]
        for ask in asks:
            with pytest.raises(rpc.InvalidArgument, match=r"use stream\("):
                ask()
        assert executed.items == []
        assert next(iter(caller.stream("numbers"))) == 1
        assert list(caller.stream("quote", sku="A1")) == [{"sku": "A1", "amount": 9.5}]


@pytest.mark.parametrize("kind", ["item", "end"])
def test_a_responder_that_streams_to_a_plain_call_is_an_error(cluster: Cluster, kind: str) -> None:
    app, go = new_app(cluster), threading.Event()

    @app.rpc.method
    def hold() -> None:
        go.wait(WITHIN_S)

    with calling(app) as caller, awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        pending, (topic, partition) = caller.submit("hold"), caller.replies_at
        headers: dict[str, bytes | str | None] = {"rpc-id": pending.id, "rpc-kind": kind, "rpc-sequence": "0"}
        producer.produce(topic, b"1", headers=headers, partition=partition).wait(WITHIN_S)
        with pytest.raises(rpc.InvalidArgument, match=r"use stream\("):
            pending.wait()
        go.set()


@pytest.mark.parametrize("how", ["async with", "open", "first call"])
def test_opening_does_not_block_the_loop(mock_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    app, opening = new_shop(mock_cluster), Collected[str]()
    loops, turned = list[asyncio.AbstractEventLoop](), list[bool]()

    def wait_for_the_loop(*_: object) -> None:
        opening.add(threading.current_thread().name)
        reached = threading.Event()
        loops[0].call_soon_threadsafe(reached.set)
        turned.append(reached.wait(WITHIN_S))

    async def work() -> None:
        loops.append(asyncio.get_running_loop())
        options: rpc.CallerOptions = {"timeout_s": WITHIN_S}
        if how == "async with":
            async with rpc.Caller(app.name, mock_cluster.bootstrap_servers, **options) as caller:
                await caller.acall("quote", sku="A1")
            return
        if how == "open":
            caller = await rpc.Caller.open(app.name, mock_cluster.bootstrap_servers, **options)
        else:
            caller = rpc.Caller(app.name, mock_cluster.bootstrap_servers, **options)
            assert (caller.open_calls(), caller.counters()) == (0, {})
        await asyncio.gather(*(caller.acall("quote", sku="A1") for _ in range(3)))
        await caller.aclose()

    with running(app):
        monkeypatch.setattr("awoke.rpc.topics.check", wait_for_the_loop)
        asyncio.run(work())
    assert turned == [True]
    assert len(opening.items) == 1
    assert threading.current_thread().name not in opening.items


async def test_what_is_wrong_is_said_by_what_opens() -> None:
    settings = awoke.App("nowhere", bootstrap_servers="127.0.0.1:1", startup_timeout_s=0.2).settings
    with pytest.raises(awoke.BrokerUnreachable):
        await rpc.Caller.open("nowhere", settings=settings)
    caller = rpc.Caller("nowhere", settings=settings)
    with pytest.raises(awoke.BrokerUnreachable):
        await caller.acall("anything")
    await caller.aclose()
    with pytest.raises(awoke.ClosedError):
        await caller.acall("anything")
    with pytest.raises(awoke.ConfigError):
        rpc.Caller("")


async def test_a_cancelled_opening_leaves_nothing_open(mock_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    app, go, began = new_shop(mock_cluster), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(*_: object) -> None:
        loop.call_soon_threadsafe(began.set)
        go.wait(WITHIN_S)

    with await asyncio.to_thread(lambda: running(app)):
        monkeypatch.setattr("awoke.rpc.topics.check", slow)
        opening = asyncio.create_task(rpc.Caller.open(app.name, mock_cluster.bootstrap_servers))
        await asyncio.wait_for(began.wait(), WITHIN_S)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        go.set()
        await loop.shutdown_default_executor()  # What was opened is closed by then; the fixture counts threads.


def test_a_call_on_a_loops_thread_warns_once_for_each_place(cluster: Cluster) -> None:
    with calling(new_shop(cluster)) as caller:
        shop = caller.client(Shop)

        async def blocks() -> None:
            for _ in range(2):
                caller.call("quote", sku="A1")
                caller.proxy().quote(sku="A1")
                shop.quote("A1")

        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("default")
            asyncio.run(blocks())
            caller.call("quote", sku="A1")
        assert [each.category for each in found] == [rpc.BlockingCallWarning] * 3
        assert {each.filename for each in found} == {__file__}
        assert all("acall" in str(each.message) for each in found)


def test_a_method_that_calls_another_service_on_the_loop_does_not_block_it(cluster: Cluster) -> None:
    stock, shop = new_app(cluster), new_app(cluster)

    @stock.rpc.method
    def left(sku: str) -> int:
        return len(sku)

    @shop.rpc.method
    async def offer(sku: str) -> bool:
        return bool(await shop.caller(stock.name).acall("left", sku=sku) > 0)

    shop.use(metrics_port=0)
    with running(stock), calling(shop) as caller:
        assert caller.call("offer", sku="A1")


def test_the_shell_prints_all_results_of_a_stream(mock_cluster: Cluster) -> None:
    app = new_shop(mock_cluster)
    at = ("--bootstrap-servers", mock_cluster.bootstrap_servers)
    with running(app):
        said = awoke_says("rpc", "call", app.name, "report", "lines=3", *at)
        assert [line for line in said.splitlines() if line.startswith("{")] == [
            '{"sku": "0", "amount": 0}',
            '{"sku": "1", "amount": 1}',
            '{"sku": "2", "amount": 2}',
        ]
        assert '{"sku": "A1", "amount": 9.5}' in awoke_says("rpc", "call", app.name, "quote", "sku=A1", *at)
        table = awoke_says("rpc", "methods", app.name, *at, env={"COLUMNS": "300"})
        assert f"stream of {__name__}.Line" in table
        assert f"AsyncIterator[{__name__}.Line]" in table
