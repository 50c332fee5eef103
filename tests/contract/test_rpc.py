"""Calls over Kafka: arguments and results, errors, deadlines, cancellation, streams, limits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected, ahang, awork_for

WITHIN_S = 30.0


class Money(msgspec.Struct):
    amount: float
    currency: str = "EUR"


class OutOfStock(rpc.RpcError):
    code = "out_of_stock"


def new_app(cluster: Cluster, **options: Any) -> awoke.App:
    app = awoke.App(unique("shop"), bootstrap_servers=cluster.bootstrap_servers)
    app.rpc.options(**options)
    return app


@contextlib.contextmanager
def calling(app: awoke.App, **options: Any) -> Iterator[rpc.Caller]:
    """The app runs, and a caller of it is open."""
    options = {"timeout_s": WITHIN_S, **options}
    with running(app), rpc.Caller(app.name, app.settings.bootstrap_servers, **options) as caller:
        caller.wait_until_served()
        yield caller
        assert caller.open_calls() == 0, "calls are left in the table"


def test_arguments_and_results_are_typed(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def quote(sku: str, quantity: int = 1) -> Money:
        return Money(quantity * len(sku))

    @app.rpc.method(name="shop.aquote")
    async def aquote(price: Money, note: str | None = None) -> dict[str, object]:
        return {"amount": price.amount, "note": note}

    with calling(app) as caller:
        assert caller.call("quote", sku="A1", quantity=3, returns=Money) == Money(6)
        assert caller.call("quote", "A1") == {"amount": 2, "currency": "EUR"}
        assert caller.call("shop.aquote", price=Money(2)) == {"amount": 2, "note": None}
        assert caller.proxy().quote(sku="A") == {"amount": 1, "currency": "EUR"}
        with pytest.raises(awoke.DecodeError, match="quote"):
            caller.call("quote", sku="A", returns=int)
        with pytest.raises(TypeError):
            caller.call("quote", "A", quantity=1)
        with pytest.raises(awoke.EncodeError):
            caller.call("quote", sku=object())
        with pytest.raises(ValueError, match="belong to the protocol"):
            caller.call("quote", sku="A", headers={"rpc-kind": "cast"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "required field `sku`"),
        ({"sku": 1}, "Expected `str`"),
        ({"sku": "A", "quantity": 1.5}, "quantity"),
        ({"sku": "A", "color": "red"}, "unknown field `color`"),
    ],
    ids=["missing", "type", "fraction", "unknown"],
)
def test_wrong_arguments_are_refused_before_the_method_is_called(
    cluster: Cluster, arguments: dict[str, Any], words: str
) -> None:
    app, called = new_app(cluster), threading.Event()

    @app.rpc.method
    def quote(sku: str, quantity: int = 1) -> None:
        called.set()

    with calling(app) as caller:
        with pytest.raises(rpc.InvalidArgument, match=words):
            caller.call("quote", **arguments)
        with pytest.raises(rpc.InvalidArgument, match="takes 2 arguments, 3 were given"):
            caller.call("quote", "A", 1, 2)
        with pytest.raises(rpc.Unimplemented, match="no method 'quota'"):
            caller.call("quota")
    assert not called.is_set()


def test_errors_come_back_typed_and_tell_no_secrets(cluster: Cluster) -> None:
    app = new_app(cluster)
    app.rpc.map_error(LookupError, rpc.NotFound)
    app.rpc.map_error(ZeroDivisionError, "out_of_stock")

    @app.rpc.method
    def fail(how: str) -> object:
        match how:
            case "mapped":
                raise KeyError("A1")
            case "code":
                raise ZeroDivisionError("none left")
            case "own":
                raise rpc.FailedPrecondition("closed", details={"opens": 9}, retry_after_s=2.5)
            case "result":
                return object()
        raise ValueError("the password is hunter2")

    with calling(app, errors=[OutOfStock]) as caller:
        with pytest.raises(rpc.NotFound, match="A1"):
            caller.call("fail", how="mapped")
        with pytest.raises(OutOfStock, match="none left"):
            caller.call("fail", how="code")
        with pytest.raises(rpc.FailedPrecondition, match="closed") as own:
            caller.call("fail", how="own")
        assert (own.value.details, own.value.retry_after_s, own.value.is_retryable) == ({"opens": 9}, 2.5, False)
        with pytest.raises(rpc.Internal, match="can't be written as JSON"):
            caller.call("fail", how="result")
        with pytest.raises(rpc.Internal, match="ValueError") as internal:
            caller.call("fail", how="else")
        assert "hunter2" not in str(internal.value)
        assert internal.value.remote_traceback is None


def test_tracebacks_are_sent_if_the_service_says_so(cluster: Cluster) -> None:
    app = new_app(cluster, tracebacks=True)

    @app.rpc.method
    def fail() -> None:
        raise ValueError("because")

    with calling(app) as caller, pytest.raises(rpc.Internal, match="because") as internal:
        caller.call("fail")
    assert "in fail" in str(internal.value.remote_traceback)


def test_a_call_ends_at_its_deadline_and_its_late_reply_is_counted(cluster: Cluster) -> None:
    app, go = new_app(cluster), threading.Event()

    @app.rpc.method
    def hold() -> str:
        go.wait(WITHIN_S)
        return "late"

    @app.rpc.method
    def left() -> float:
        return rpc.current_call().remaining_s

    with calling(app) as caller:
        assert 5 < caller.call("left", timeout_s=10) <= 10
        began_s = time.monotonic()
        with pytest.raises(rpc.DeadlineExceeded, match=r"no reply within 0.2 s"):
            caller.call("hold", timeout_s=0.2)
        assert 0.2 <= time.monotonic() - began_s < 5
        go.set()
        assert caller.counters()["expired"] == 1


def test_what_has_expired_is_passed_over_unseen(cluster: Cluster) -> None:
    app, called = new_app(cluster), Collected[int]()

    @app.rpc.method
    def note(number: int) -> None:
        called.add(number)

    with rpc.Caller(app.name, cluster.bootstrap_servers, create_topics=True) as caller:
        handles = [caller.cast("note", number=number, timeout_s=0.001, key="one") for number in range(200)]
        awoke.wait_all(handles, WITHIN_S)
        caller.cast("note", number=-1, timeout_s=WITHIN_S, key="one").wait()
        with running(app) as server:
            assert called.wait_for(1) == [-1]
            assert server.calls()["expired"] == 200


def test_nested_calls_inherit_what_is_left(cluster: Cluster) -> None:
    outer, inner = new_app(cluster), new_app(cluster)

    @inner.rpc.method
    def left() -> float:
        return rpc.current_call().remaining_s

    with running(inner), rpc.Caller(inner.name, cluster.bootstrap_servers, timeout_s=1_000) as between:
        between.wait_until_served(WITHIN_S)

        @outer.rpc.method
        def through() -> float:
            found: float = between.call("left")
            return found

        with calling(outer) as caller:
            assert 0 < caller.call("through", timeout_s=7) < 7


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


def test_an_unexpected_exception_is_an_event_and_a_mapped_one_is_not(cluster: Cluster) -> None:
    app, failed = new_app(cluster), Collected[awoke.Event]()
    app.rpc.map_error(KeyError, rpc.NotFound)
    app.events.subscribe("rpc.failed", failed.add)

    @app.rpc.method
    def find(sku: str) -> None:
        raise {"unknown": KeyError, "broken": ZeroDivisionError}[sku](sku)

    with calling(app) as caller:
        with pytest.raises(rpc.NotFound):
            caller.call("find", sku="unknown")
        with pytest.raises(rpc.Internal):
            caller.call("find", sku="broken")
        (event,) = failed.wait_for(1)
    assert (event.fields["method"], type(event.fields["error"])) == ("find", ZeroDivisionError)
    assert len(failed.items) == 1


def test_a_call_that_is_cancelled_in_the_queue_delays_no_other(cluster: Cluster) -> None:
    app, go, began = new_app(cluster, tasks=1), threading.Event(), threading.Event()

    @app.rpc.method
    async def hold(number: int) -> int:
        began.set()
        await asyncio.to_thread(go.wait, WITHIN_S)
        return number

    @app.rpc.method
    def ping() -> None: ...

    with calling(app) as caller:
        first = caller.submit("hold", number=1)
        assert began.wait(WITHIN_S)
        for _ in range(10):
            caller.submit("hold", number=2).cancel()
        for _ in range(20):
            caller.call("ping")  # What came before has been looked at.
        go.set()
        assert first.wait() == 1
        assert caller.call("hold", number=3) == 3


def test_a_cancelled_task_cancels_its_call(cluster: Cluster) -> None:
    app, told, began = new_app(cluster), Collected[str](), threading.Event()

    @app.rpc.method
    def hold() -> None:
        began.set()
        if rpc.current_call().wait_cancelled():
            told.add("cancelled")

    async def cancel_one(caller: rpc.Caller) -> None:
        task = asyncio.create_task(caller.acall("hold"))
        await asyncio.to_thread(began.wait, WITHIN_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with calling(app) as caller:
        asyncio.run(cancel_one(caller))
        assert told.wait_for(1) == ["cancelled"]


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


def test_a_cast_wants_no_reply(cluster: Cluster) -> None:
    app, seen = new_app(cluster), Collected[int]()

    @app.rpc.method
    def note(number: int) -> None:
        seen.add(number)

    with calling(app) as caller:
        caller.cast("note", number=1).wait()
        assert seen.wait_for(1) == [1]
        assert caller.open_calls() == 0


def test_calls_of_one_key_are_executed_in_order(cluster: Cluster) -> None:
    app, seen = new_app(cluster, threads=8), Collected[tuple[str, int]]()

    @app.rpc.method
    def note(who: str, number: int) -> None:
        seen.add((who, number))

    with calling(app) as caller:
        pending = [
            caller.submit("note", who=who, number=number, key=who) for number in range(50) for who in ("one", "two")
        ]
        for each in pending:
            each.wait()
    for who in ("one", "two"):
        assert [number for each, number in seen.items if each == who] == list(range(50))


def test_one_idempotency_key_is_executed_once(cluster: Cluster) -> None:
    app, seen, go = new_app(cluster), Collected[str](), threading.Event()

    @app.rpc.method
    def charge(card: str) -> int:
        seen.add(card)
        go.wait(WITHIN_S)
        return len(seen.items)

    with calling(app) as caller:
        at_once = [caller.submit("charge", card="visa", idempotency_key="order 1") for _ in range(3)]
        seen.wait_for(1)
        go.set()
        assert [each.wait() for each in at_once] == [1, 1, 1]
        assert caller.call("charge", card="visa", idempotency_key="order 1") == 1
        assert caller.call("charge", card="visa", idempotency_key="order 2") == 2
        assert seen.items == ["visa", "visa"]


def test_who_waits_for_the_same_does_not_share_anothers_deadline(cluster: Cluster) -> None:
    app, go, began, done = new_app(cluster, threads=1), threading.Event(), threading.Event(), Collected[int]()

    @app.rpc.method
    def hold() -> None:
        began.set()
        go.wait(WITHIN_S)

    @app.rpc.method
    def order(number: int) -> int:
        done.add(number)
        return number

    with calling(app) as caller:
        first = caller.submit("hold")
        assert began.wait(WITHIN_S)
        hasty = caller.submit("order", number=1, idempotency_key="one", timeout_s=0.5)
        patient = caller.submit("order", number=1, idempotency_key="one")
        with pytest.raises(rpc.DeadlineExceeded):
            hasty.wait()
        go.set()
        assert patient.wait() == 1
        first.wait()
    assert done.items == [1]


def test_a_method_runs_as_often_at_once_as_it_says(cluster: Cluster) -> None:
    app, running_now, most, lock = new_app(cluster, threads=6), 0, Collected[int](), threading.Lock()

    @app.rpc.method(concurrency=2)
    def limited() -> None:
        nonlocal running_now
        with lock:
            running_now += 1
            most.add(running_now)
        rpc.current_call().wait_cancelled(0.01)
        with lock:
            running_now -= 1

    @app.rpc.method
    def free() -> str:
        return "free"

    with calling(app) as caller:
        pending = [caller.submit("limited") for _ in range(20)]
        assert caller.call("free") == "free"
        for each in pending:
            each.wait()
    assert max(most.items) == 2


def test_one_too_many_is_refused_at_once(cluster: Cluster) -> None:
    app, go, began = new_app(cluster, threads=1, waiting_max=2, retry_after_s=0.5), threading.Event(), threading.Event()

    @app.rpc.method
    def hold(number: int) -> int:
        began.set()
        go.wait(WITHIN_S)
        return number

    with calling(app, retries=rpc.Retries(attempts=1)) as caller:
        pending = [caller.submit("hold", number=0)]
        assert began.wait(WITHIN_S)
        refused = Collected[rpc.PendingResult]()
        for number in (1, 2, 3):
            pending.append(caller.submit("hold", number=number))
            pending[-1].add_done_callback(refused.add)
        (one,) = refused.wait_for(1)
        with pytest.raises(rpc.ResourceExhausted, match="queue of calls is full") as error:
            one.result()
        assert error.value.retry_after_s == 0.5
        go.set()
        assert len([each.wait() for each in pending if each is not one]) == 3


def test_what_waited_too_long_is_refused(cluster: Cluster) -> None:
    app, began = new_app(cluster, threads=1, queue_time_share_max=0.1), threading.Event()

    @app.rpc.method
    def hold() -> None:
        began.set()
        rpc.current_call().wait_cancelled(1.0)

    with calling(app, retries=rpc.Retries(attempts=1)) as caller:
        first = caller.submit("hold", timeout_s=30)
        assert began.wait(WITHIN_S)
        with pytest.raises(rpc.ResourceExhausted, match="in queues"):
            caller.call("hold", timeout_s=5)
        first.wait()


def test_a_caller_has_its_own_limits(cluster: Cluster) -> None:
    app, go = new_app(cluster), threading.Event()

    @app.rpc.method
    def hold() -> int:
        go.wait(WITHIN_S)
        return 1

    with calling(app, calls_max=2, retries=rpc.Retries(attempts=1)) as caller:
        pending = [caller.submit("hold") for _ in range(2)]
        with pytest.raises(rpc.ResourceExhausted, match="see calls_max"):
            caller.call("hold", timeout_s=0.1)
        go.set()
        assert [each.wait() for each in pending] == [1, 1]
        assert caller.call("hold") == 1


def test_tasks_wait_for_room_without_their_loop(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def echo(number: int) -> int:
        return number

    async def ask(caller: rpc.Caller) -> list[Any]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await awork_for(0.001)

        beating = asyncio.create_task(beat())
        found = await asyncio.gather(*(caller.acall("echo", number=number) for number in range(60)))
        beating.cancel()
        assert beats > 1
        return list(found)

    with calling(app, calls_max=2) as caller:
        assert asyncio.run(ask(caller)) == list(range(60))


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


def test_only_those_who_may_call(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method(callers=["billing"])
    def charge() -> str:
        return rpc.current_call().caller

    with calling(app, name="billing") as caller:
        assert caller.call("charge") == "billing"
        with (
            rpc.Caller(app.name, cluster.bootstrap_servers, name="web", timeout_s=WITHIN_S) as other,
            pytest.raises(rpc.PermissionDenied),
        ):
            other.call("charge")


def test_scatter_asks_several_groups(cluster: Cluster) -> None:
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
        part = caller.scatter("price", replies=4, timeout_s=2.0)
        assert (sorted(part.results), part.is_partial) == ([0, 1], True)
        enough = asyncio.run(caller.ascatter("price", replies=4, until=lambda results: len(results) == 1))
        assert (len(enough.results), enough.is_partial) == (1, True)
        assert caller.open_calls() == 0


def test_many_threads_and_tasks_share_a_caller(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def double(number: int) -> int:
        return 2 * number

    async def ask(caller: rpc.Caller) -> list[Any]:
        return await asyncio.gather(*(caller.acall("double", number=number) for number in range(500)))

    with calling(app) as caller:
        with ThreadPoolExecutor(20) as threads:
            found = list(threads.map(lambda number: caller.call("double", number=number), range(500)))
        assert found == [2 * number for number in range(500)]
        assert asyncio.run(ask(caller)) == [2 * number for number in range(500)]


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


def test_the_first_call_of_a_fresh_caller_is_answered(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def echo(number: int) -> int:
        return number

    with running(app):
        for number in range(10):
            with rpc.Caller(app.name, cluster.bootstrap_servers, timeout_s=WITHIN_S) as caller:
                assert caller.call("echo", number=number) == number


def test_closing_fails_what_is_open(cluster: Cluster) -> None:
    app, go, began = new_app(cluster), threading.Event(), threading.Event()

    @app.rpc.method
    def hold() -> None:
        began.set()
        go.wait(WITHIN_S)

    with running(app):
        caller = rpc.Caller(app.name, cluster.bootstrap_servers, timeout_s=WITHIN_S)
        pending = caller.submit("hold")
        assert began.wait(WITHIN_S)
        caller.close()
        caller.close()
        with pytest.raises(awoke.ClosedError):
            pending.wait()
        with pytest.raises(awoke.ClosedError):
            caller.call("hold")
        go.set()


def test_a_service_tells_of_its_methods(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method(idempotent=True)
    def quote(sku: str, quantity: int = 1) -> float:
        """The price of some."""
        return 0.0

    @app.rpc.method
    def report(day: str) -> Iterator[dict[str, int]]:
        yield {}

    @app.rpc.method
    async def words():  # type: ignore[no-untyped-def]
        yield "one"

    with calling(app) as caller:
        found = {each["name"]: each for each in caller.methods()}
    assert found["quote"] == {
        "name": "quote",
        "signature": "quote(sku: str, quantity: int = ...) -> float",
        "doc": "The price of some.",
        "is_idempotent": True,
        "is_stream": False,
        "result_type": "float",
    }
    assert (found["report"]["is_stream"], found["report"]["result_type"]) == (True, "dict[str, int]")
    assert (found["words"]["is_stream"], found["words"]["result_type"]) == (True, "Any")


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
        assert "awoke_rpc_running_calls 0.0" in text


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


def test_a_service_without_responders_is_noticed_soon(real_cluster: Any) -> None:
    service = unique("empty")
    with pytest.raises(awoke.UnknownTopic, match="start it"):
        rpc.Caller(service, real_cluster.bootstrap_servers)
    with rpc.Caller(service, real_cluster.bootstrap_servers, create_topics=True) as caller:
        began_s = time.monotonic()
        with pytest.raises(rpc.NobodyThere, match="has no member"):
            caller.call("anything", timeout_s=WITHIN_S)
        assert time.monotonic() - began_s < 10


LONGER_THAN_IT_TAKES_TO_LOOK_S = 3.0


def slow_app(cluster: Any) -> awoke.App:
    """An app whose responders are in a group that is not called as the service, and take their time."""
    app = new_app(cluster)
    app.use(group=unique("elsewhere"))

    @app.rpc.method
    def slow() -> str:
        rpc.current_call().wait_cancelled(LONGER_THAN_IT_TAKES_TO_LOOK_S)
        return "done"

    return app


def test_a_caller_finds_responders_in_another_group_by_its_name(real_cluster: Any) -> None:
    app = slow_app(real_cluster)
    with calling(app, group=app.settings.group) as caller:
        assert caller.call("slow") == "done"
        other = awoke.App("other", bootstrap_servers=real_cluster.bootstrap_servers)
        assert other.caller(app.name, group=app.settings.group).call("slow", timeout_s=WITHIN_S) == "done"
        other.close_callers(WITHIN_S)


def test_a_caller_that_looks_in_another_group_says_how_to_name_the_right_one(real_cluster: Any) -> None:
    app = slow_app(real_cluster)
    with (
        running(app),
        rpc.Caller(app.name, real_cluster.bootstrap_servers) as caller,
        pytest.raises(rpc.NobodyThere, match=f'group "{app.name}".*group='),
    ):
        caller.call("slow", timeout_s=WITHIN_S)


def test_a_caller_may_leave_the_group_alone(real_cluster: Any) -> None:
    app = slow_app(real_cluster)
    with calling(app, checks_group=False) as caller:
        assert caller.call("slow") == "done"
    with (
        rpc.Caller(app.name, real_cluster.bootstrap_servers, checks_group=False) as caller,
        pytest.raises(rpc.DeadlineExceeded),
    ):
        caller.call("slow", timeout_s=LONGER_THAN_IT_TAKES_TO_LOOK_S)


def test_the_new_group_protocol_serves_too(real_cluster: Any) -> None:
    app = new_app(real_cluster)
    app.use(kafka={"group.protocol": "consumer"})

    @app.rpc.method
    def echo(number: int) -> int:
        return number

    with calling(app) as caller:
        assert [caller.call("echo", number=number) for number in range(10)] == list(range(10))
    with rpc.Caller(app.name, real_cluster.bootstrap_servers) as caller, pytest.raises(rpc.NobodyThere):
        caller.call("echo", number=1, timeout_s=WITHIN_S)


def test_a_responder_that_takes_long_is_found(real_cluster: Any) -> None:
    app = new_app(real_cluster)

    @app.rpc.method
    def slow() -> str:
        rpc.current_call().wait_cancelled(2.0)
        return "done"

    with calling(app) as caller:
        assert caller.call("slow") == "done"


def test_at_most_once_commits_first(real_cluster: Any) -> None:
    app, committed = new_app(real_cluster, mode="at_most_once"), Collected[int]()

    @app.rpc.method
    def look() -> None:
        with awoke.Admin(real_cluster.bootstrap_servers) as admin:
            committed.add(sum(admin.group_offsets(app.name).values()))

    @app.rpc.method
    async def alook() -> None:
        await asyncio.to_thread(look)

    with calling(app) as caller:
        caller.call("look")
        caller.call("alook")
    assert committed.items[1] == committed.items[0] + 1
    assert committed.items[0] >= 2, "its own offset, behind that of the first question"


def test_exactly_once_forgets_a_result_that_was_not_committed(real_cluster: Any) -> None:
    app, out, sizes = new_app(real_cluster, mode="exactly_once"), unique("out"), [2_000_000, 10]
    real_cluster.create_topic(out)

    @app.rpc.method
    def order(number: int) -> int:
        sender = rpc.current_call().transaction_entry
        assert sender is not None
        sender.produce(out, b"x" * sizes.pop(0))  # The first is larger than messages may be.
        return number

    with calling(app) as caller:
        with pytest.raises(rpc.Internal, match="refused"):
            caller.call("order", number=1, idempotency_key="once")
        assert caller.call("order", number=1, idempotency_key="once") == 1
    with awoke.Reader(out, bootstrap_servers=real_cluster.bootstrap_servers) as reader:
        assert [message.value for message in reader.read_until_end(WITHIN_S)] == [b"x" * 10]


def test_exactly_once_tells_of_a_reply_that_is_too_large(real_cluster: Any) -> None:
    app, done = new_app(real_cluster, mode="exactly_once"), Collected[int]()

    @app.rpc.method
    def large(number: int) -> str:
        done.add(number)
        return "x" * 2_000_000

    with calling(app) as caller, pytest.raises(rpc.ResourceExhausted, match="too large"):
        caller.call("large", number=1)
    assert done.items == [1]


def test_exactly_once_commits_replies_with_offsets(real_cluster: Any) -> None:
    app, out = new_app(real_cluster, mode="exactly_once"), unique("out")
    real_cluster.create_topic(out)

    @app.rpc.method
    def order(number: int) -> int:
        sender = rpc.current_call().transaction_entry
        assert sender is not None
        sender.produce(out, number)
        if number == 3:
            raise rpc.Aborted("not this one")
        return number

    @app.rpc.method
    def count(to: int) -> Iterator[int]:
        yield from range(to)

    with calling(app) as caller:
        assert [caller.call("order", number=number) for number in range(3)] == [0, 1, 2]
        with pytest.raises(rpc.Aborted):
            caller.call("order", number=3)
        assert list(caller.stream("count", to=500)) == list(range(500))
    with awoke.Admin(real_cluster.bootstrap_servers) as admin:
        # The first question, four orders, a stream; what was said about the stream meanwhile may still lie behind them.
        assert sum(admin.group_offsets(app.name).values()) >= 6
    with awoke.Reader(out, bootstrap_servers=real_cluster.bootstrap_servers) as reader:
        assert [message.value for message in reader.read_until_end(WITHIN_S)] == [b"0", b"1", b"2"]
