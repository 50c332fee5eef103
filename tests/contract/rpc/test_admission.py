"""The admission of calls over Kafka: expired, cancelled, repeated, too many at once, or in order."""

from __future__ import annotations

import asyncio
import threading

import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import Cluster
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected


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
