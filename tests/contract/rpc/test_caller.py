"""Callers over Kafka: deadlines, cancellation, limits, groups of responders, and their end."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected, awork_for


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


def test_a_busy_event_loop_delays_no_call_of_another(cluster: Cluster) -> None:
    app, began, go = new_app(cluster), threading.Event(), threading.Event()

    @app.rpc.method
    async def hold() -> str:
        began.set()
        await asyncio.to_thread(go.wait, WITHIN_S)
        return "held"

    @app.rpc.method
    async def echo(number: int) -> int:
        return number

    async def call_beside(caller: rpc.Caller) -> None:
        # Its loop would serve the replies, but it is blocked.
        task = asyncio.create_task(caller.acall("hold"))
        await asyncio.to_thread(began.wait, WITHIN_S)
        with ThreadPoolExecutor(1) as thread:
            of_another = thread.submit(asyncio.run, caller.acall("echo", number=7))
            assert of_another.result(WITHIN_S) == 7
        go.set()
        assert await task == "held"

    with calling(app) as caller:
        asyncio.run(call_beside(caller))


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


def test_a_cast_wants_no_reply(cluster: Cluster) -> None:
    app, seen = new_app(cluster), Collected[int]()

    @app.rpc.method
    def note(number: int) -> None:
        seen.add(number)

    with calling(app) as caller:
        caller.cast("note", number=1).wait()
        assert seen.wait_for(1) == [1]
        assert caller.open_calls() == 0


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
