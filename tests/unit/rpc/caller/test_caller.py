"""The methods of a caller, with a fake of the engine's: arguments that are refused, and what each asks the engine."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.rpc.call_options import CALLER_WORDS, CallOptions
from awoke.rpc.caller.caller import PACKAGE, BlockingCallWarning, warn_blocking
from awoke.rpc.caller.connection import Opening
from awoke.rpc.caller.exchange import Part
from awoke.rpc.protocol import WINDOW_MAX
from tests.unit.rpc.caller.fakes import AT_ONCE, BUSY, END, RESULT, FakeCaller, FakeSource, item

WITHIN_S = 30.0


class Engine:
    """The engine's callers: each that is opened is this one."""

    def __init__(self) -> None:
        self.native, self.source = FakeCaller(), FakeSource()
        self.opened: list[Opening] = []
        self.is_opening, self.may_open = threading.Event(), threading.Event()
        self.may_open.set()

    def caller(self, *attempts: Part | list[Part], **options: Any) -> rpc.Caller:
        self.native = FakeCaller(*attempts)
        return rpc.Caller("shop", **{"retries": AT_ONCE, **options})

    def asked(self) -> tuple[str, bytes, dict[str, Any]]:
        """Returns what the engine was asked, which was one thing."""
        (asked,) = self.native.asked
        return asked


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()

    def open(opening: Opening) -> tuple[FakeCaller, FakeSource]:
        engine.opened.append(opening)
        engine.is_opening.set()
        assert engine.may_open.wait(WITHIN_S)
        return engine.native, engine.source

    monkeypatch.setattr(Opening, "open", open)
    return engine


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"calls_max": 0}, "calls_max"),
        ({"window": 0}, "window"),
        ({"window": WINDOW_MAX + 1}, "window"),
        ({"name": "ä" * 65}, "name"),
        ({"group": ""}, "group"),
        ({"group": "shop-eu", "checks_group": False}, "group"),
        ({"service": ""}, "service"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(engine: Engine, options: dict[str, Any], named: str) -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        rpc.Caller(**{"service": "shop", **options})
    assert refused.value.property == named
    assert engine.opened == []


@pytest.mark.parametrize(
    ("options", "group"), [({}, "shop"), ({"group": "shop-eu"}, "shop-eu"), ({"checks_group": False}, "")]
)
def test_the_group_that_is_looked_up_is_named_after_the_service(
    engine: Engine, options: dict[str, Any], group: str
) -> None:
    engine.caller(name="web", calls_max=1, bytes_max=2, reply_bytes_max=3, secret=b"s", **options)
    (opening,) = engine.opened
    assert opening.address == ("shop.rpc.calls", "shop.rpc.replies", group, "web", 1, 2, 3, b"s")


def test_a_caller_is_opened_when_it_is_made_except_on_an_event_loop(engine: Engine) -> None:
    engine.caller()
    assert len(engine.opened) == 1

    async def run() -> None:
        caller = engine.caller(RESULT)
        assert len(engine.opened) == 1
        assert (caller.open_calls(), caller.counters()) == (0, {})
        assert await caller.acall("quote") == 1
        assert len(engine.opened) == 2
        assert (caller.open_calls(), caller.counters()) == (2, {"begun": 1})
        await caller.aclose()

    asyncio.run(run())


def test_leaving_a_caller_closes_it(engine: Engine) -> None:
    with engine.caller() as caller:
        assert caller.replies_at == ("shop.rpc.replies", 3)
    assert engine.native.closed == [5.0]
    assert engine.source.is_closed


def test_a_closed_caller_makes_no_further_attempt(engine: Engine) -> None:
    caller = engine.caller(BUSY, RESULT)
    caller.close(1.0)
    with pytest.raises(rpc.ResourceExhausted):
        caller.call("quote")
    assert (engine.native.closed, engine.native.left()) == ([1.0], 1)


def test_on_a_loop_leaving_a_caller_closes_it(engine: Engine) -> None:
    async def run() -> None:
        async with await rpc.Caller.open("shop") as caller:
            assert isinstance(caller, rpc.Caller)
            assert len(engine.opened) == 1, "entering it again opens nothing"
        assert engine.native.closed == [5.0]

    asyncio.run(run())


def test_an_opening_that_is_cancelled_leaves_nothing_open(engine: Engine) -> None:
    engine.may_open.clear()

    async def run() -> None:
        task = asyncio.create_task(rpc.Caller.open("shop"))
        assert await asyncio.to_thread(engine.is_opening.wait, WITHIN_S)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        engine.may_open.set()

    asyncio.run(run())  # Its end waits for the thread that closes.
    assert engine.native.closed == [5.0]


def blocking(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that is awaited as one that blocks."""
    return lambda *arguments, **options: asyncio.run(method(*arguments, **options))


OPTIONS: dict[str, Any] = {"timeout_s": 60.0, "key": "k", "headers": {"tenant": "a"}}


def is_as_said(options: dict[str, Any]) -> bool:
    return (options["key"], options["headers"]) == (b"k", [("tenant", "a")]) and 59 < options["left_s"] <= 60


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_is_made_as_it_is_said_and_its_result_read_as_asked_for(engine: Engine, is_async: bool) -> None:
    caller = engine.caller(("reply", b'"1.5"', None))
    options = {**OPTIONS, "idempotency_key": "order 1", "returns": str}
    make = blocking(caller.acall) if is_async else caller.call
    found = make("quote", sku="A1", **options)
    method, body, said = engine.asked()
    assert (found, method, body, said["idempotency_key"]) == ("1.5", "quote", b'{"sku":"A1"}', b"order 1")
    assert is_as_said(said)


def test_a_pending_call_is_made_once(engine: Engine) -> None:
    caller = engine.caller(BUSY, RESULT)
    pending = caller.submit("quote", "A1", **OPTIONS)
    with pytest.raises(rpc.ResourceExhausted):
        pending.wait()
    assert is_as_said(engine.asked()[2])
    assert engine.native.left() == 1


def test_a_call_without_a_reply_returns_the_delivery_of_its_request(engine: Engine) -> None:
    caller: Any = engine.caller()
    assert caller.cast("note", 1, **OPTIONS) == "delivery"
    method, body, said = engine.asked()
    assert (method, body) == ("note", b"[1]")
    assert is_as_said(said)


def test_a_stream_has_the_window_of_the_caller(engine: Engine) -> None:
    caller = engine.caller([item(1), item(2), END], window=8)
    assert list(caller.stream("count", to=2, **OPTIONS)) == [1, 2]
    method, body, said = engine.asked()
    assert (method, body, said["window"], said["replies"]) == ("count", b'{"to":2}', 8, 1)
    assert is_as_said(said)


@pytest.mark.parametrize("is_async", [False, True])
def test_several_responders_are_asked_at_once(engine: Engine, is_async: bool) -> None:
    caller = engine.caller([RESULT, RESULT, RESULT])
    options: dict[str, Any] = {"replies": 3, "until": lambda results: len(results) == 2}
    make = blocking(caller.ascatter) if is_async else caller.scatter
    found = make("price", **options)
    assert (found.results, found.is_partial) == ([1, 1], True)
    assert engine.asked()[2]["replies"] == 3


class OutOfStock(rpc.RpcError):
    code = "out_of_stock"


def test_codes_of_the_service_have_the_classes_that_the_caller_names(engine: Engine) -> None:
    caller = engine.caller(("error", b'{"code":"out_of_stock","message":"none"}', None), errors=[OutOfStock])
    with pytest.raises(OutOfStock, match="none"):
        caller.call("quote")


def test_a_method_that_is_named_idempotent_is_called_again(engine: Engine) -> None:
    broken: Part = ("error", b'{"code":"unavailable","message":"m","is_retryable":true}', None)
    assert engine.caller(broken, RESULT, idempotent=["find"]).call("find") == 1
    with pytest.raises(rpc.Unavailable):
        engine.caller(broken, RESULT, idempotent=["find"]).call("quote")


@pytest.mark.parametrize(
    "block", [lambda caller: caller.call("quote"), lambda caller: caller.scatter("quote", replies=1)]
)
def test_a_call_that_blocks_an_event_loop_is_warned_of_at_its_line(
    engine: Engine, block: Callable[[rpc.Caller], Any]
) -> None:
    async def run() -> None:
        caller = engine.caller(RESULT)
        with pytest.warns(BlockingCallWarning) as caught:
            block(caller)
        assert caught[0].filename == __file__
        await caller.aclose()

    asyncio.run(run())


def test_a_proxy_calls_the_method_of_each_name(engine: Engine) -> None:
    caller = engine.caller(RESULT, RESULT)
    assert caller.proxy(timeout_s=60.0).quote(sku="A1") == 1
    assert asyncio.run(caller.aproxy(timeout_s=60.0).price(sku="A2")) == 1
    assert [(method, body) for method, body, _ in engine.native.asked] == [
        ("quote", b'{"sku":"A1"}'),
        ("price", b'{"sku":"A2"}'),
    ]
    assert all(options["left_s"] > 59 for _, _, options in engine.native.asked)


class Shop(Protocol):
    def quote(self, sku: str) -> float: ...
    def report(self, day: str) -> Iterator[int]: ...


class AsyncShop(Protocol):
    async def quote(self, sku: str) -> int: ...


def test_a_client_reads_results_as_its_annotations_say(engine: Engine) -> None:
    shop = engine.caller(RESULT, [item(1), END]).client(Shop)
    price = shop.quote("A1")
    assert (price, type(price)) == (1.0, float)
    assert list(shop.report("today")) == [1]
    assert asyncio.run(engine.caller(RESULT).aclient(AsyncShop).quote("A1")) == 1
    with pytest.raises(awoke.ConfigError):
        engine.caller().aclient(Shop)


def test_a_service_tells_of_its_methods(engine: Engine) -> None:
    caller = engine.caller(("reply", msgspec.json.encode([{"name": "quote"}]), None))
    assert caller.methods(timeout_s=60.0) == [{"name": "quote"}]
    method, body, said = engine.asked()
    assert (method, body) == ("rpc.methods", b"{}")
    assert said["idempotency_key"] is not None, "it may be asked again"


NOBODY: Part = ("failed", "nobody_there", "the group has no member")


def test_a_service_is_waited_for_while_its_group_has_no_member(engine: Engine) -> None:
    engine.caller(NOBODY, NOBODY, ("reply", b"[]", None)).wait_until_served()
    assert engine.native.left() == 0


def test_a_service_that_does_not_answer_in_time_is_an_error(engine: Engine) -> None:
    with pytest.raises(rpc.DeadlineExceeded):
        engine.caller(NOBODY, ("failed", "deadline_exceeded", "")).wait_until_served()


def test_the_warning_names_the_line_that_blocks_and_what_to_use() -> None:
    with pytest.warns(BlockingCallWarning) as caught:
        warn_blocking("call", "await caller.acall(…)")
    (warning,) = caught
    assert warning.filename == __file__
    assert "Caller.call blocks the event loop" in str(warning.message)
    assert "use await caller.acall(…)" in str(warning.message)


def test_frames_of_the_package_are_not_the_line_that_blocks() -> None:
    names: dict[str, Any] = {"warn_blocking": warn_blocking}
    source = "def call():\n    warn_blocking('call', 'acall')\ndef proxy():\n    call()\n"
    exec(compile(source, f"{PACKAGE}caller/made_up.py", "exec"), names)
    with pytest.warns(BlockingCallWarning) as caught:
        names["proxy"]()
    assert [warning.filename for warning in caught] == [__file__]


def test_each_line_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn_blocking("call", "acall")
        warn_blocking("scatter", "ascatter")
    assert [str(warning.message).split()[0] for warning in caught] == ["Caller.call", "Caller.scatter"]


def test_each_option_of_a_call_is_a_parameter_of_the_methods() -> None:
    types = CallOptions.__annotations__

    def options_of(method: Callable[..., Any]) -> dict[str, Any]:
        return {name: hint for name, hint in method.__annotations__.items() if name in types}

    ways: list[Callable[..., Any]] = [
        rpc.Caller.submit,
        rpc.Caller.cast,
        rpc.Caller.stream,
        rpc.Caller.scatter,
        rpc.Caller.ascatter,
    ]
    assert set(options_of(rpc.Caller.call)) == CALLER_WORDS
    assert options_of(rpc.Caller.acall) == options_of(rpc.Caller.call)
    assert all(options_of(way).items() <= options_of(rpc.Caller.call).items() for way in ways)
