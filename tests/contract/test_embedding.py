"""An app beside other code: in an event loop, stopped from any thread, with start-up and shutdown functions."""

from __future__ import annotations

import asyncio
import threading

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import MockCluster, unique
from tests.support.waiting import Collected

WITHIN_S = 30.0


def app_of(cluster: MockCluster, shutdown_timeout_s: float | None = None) -> tuple[awoke.App, str, Collected[bytes]]:
    """An app that writes down the messages of a topic of its own."""
    topic = unique("embedded")
    cluster.create_topic(topic)
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers)
    app.use(shutdown_timeout_s=shutdown_timeout_s)
    seen: Collected[bytes] = Collected()

    @app.on(topic, retry=awoke.Retry(attempts=1))
    def see(message: awoke.Message[bytes]) -> None:
        if message.value == b"bad":
            raise ValueError("a bad message")
        seen.add(message.value)

    return app, topic, seen


async def test_an_app_serves_beside_an_event_loop(mock_cluster: MockCluster) -> None:
    app, topic, seen = app_of(mock_cluster)
    async with app.serving() as runner:
        await app.producer.produce(topic, b"1")
        await asyncio.to_thread(seen.wait_for, 1)
        assert runner.health().is_healthy
        assert not runner.has_ended
    assert runner.has_ended
    assert seen.items == [b"1"]


async def test_two_apps_serve_in_one_loop(mock_cluster: MockCluster) -> None:
    (first, topic, seen), (second, other_topic, other_seen) = app_of(mock_cluster), app_of(mock_cluster)
    async with first.serving(), second.serving():
        await asyncio.gather(first.producer.produce(topic, b"1"), second.producer.produce(other_topic, b"2"))
        await asyncio.to_thread(seen.wait_for, 1)
        await asyncio.to_thread(other_seen.wait_for, 1)
        first.stop()
        await second.producer.produce(other_topic, b"3")
        await asyncio.to_thread(other_seen.wait_for, 2)
    assert (seen.items, other_seen.items) == ([b"1"], [b"2", b"3"])


async def test_the_loop_turns_while_the_app_starts_and_stops(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    turned, here = [], asyncio.get_running_loop()

    def wait_for_the_loop(when: str) -> None:
        reached = threading.Event()
        here.call_soon_threadsafe(reached.set)
        turned.append((when, reached.wait(WITHIN_S)))

    app.on_startup(lambda: wait_for_the_loop("start"))
    app.on_shutdown(lambda: wait_for_the_loop("stop"))
    async with app.serving():
        pass
    assert turned == [("start", True), ("stop", True)]


async def test_a_block_that_raises_stops_the_app(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    with pytest.raises(ZeroDivisionError):
        async with app.serving() as runner:
            raise ZeroDivisionError
    assert runner.has_ended


async def test_a_start_that_fails_is_raised_in_the_loop() -> None:
    with pytest.raises(awoke.ConfigError, match="has no route"):
        async with awoke.App("empty").serving():
            pass


async def test_a_cancelled_start_stops_what_it_started(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    began, may_go_on, done = asyncio.Event(), threading.Event(), []
    here = asyncio.get_running_loop()

    @app.on_startup
    def start() -> None:
        here.call_soon_threadsafe(began.set)
        assert may_go_on.wait(WITHIN_S)

    app.on_shutdown(lambda: done.append("stopped"))

    async def serve() -> None:
        async with app.serving():
            raise AssertionError("it was cancelled before")

    task = asyncio.create_task(serve())
    await began.wait()
    task.cancel()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["stopped"]


async def test_a_fatal_error_ends_the_block_and_is_raised(mock_cluster: MockCluster) -> None:
    app, topic, _ = app_of(mock_cluster)
    with pytest.raises(awoke.RetriesExhausted):
        async with app.serving() as runner:
            await app.producer.produce(topic, b"bad")
            with pytest.raises(awoke.RetriesExhausted):
                await runner.ended()
            assert runner.has_ended


async def test_run_inside_a_running_loop_is_a_clear_error(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    with pytest.raises(awoke.ConfigError, match=r"async with app\.serving\(\)"):
        app.run()


async def test_a_handler_stops_the_app(mock_cluster: MockCluster) -> None:
    topic = unique("stopping")
    mock_cluster.create_topic(topic)
    app = awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers)

    @app.on(topic)
    def stop(message: awoke.Message[bytes]) -> None:
        app.stop()
        app.stop()

    async with app.serving() as runner:
        await app.producer.produce(topic, b"last")
        await asyncio.wait_for(runner.ended(), WITHIN_S)


def test_a_wait_whose_loop_has_closed_disturbs_no_stop(
    mock_cluster: MockCluster, caplog: pytest.LogCaptureFixture
) -> None:
    app, _, _ = app_of(mock_cluster)
    runner = awoke.AppRunner(app)
    runner.start()

    async def wait_in_vain() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(runner.ended(), 0.01)

    asyncio.run(wait_in_vain())
    assert runner.stop()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_run_returns_after_a_stop_from_another_thread(mock_cluster: MockCluster) -> None:
    app, topic, seen = app_of(mock_cluster)
    codes: Collected[int] = Collected()
    thread = threading.Thread(target=lambda: codes.add(app.run()))
    thread.start()
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        producer.produce(topic, b"1").wait()
    seen.wait_for(1)
    app.stop()
    app.stop()
    thread.join(WITHIN_S)
    app.stop()
    assert codes.items == [0]


def test_a_stop_before_the_start_ends_it_at_once_and_only_once(mock_cluster: MockCluster) -> None:
    app, topic, seen = app_of(mock_cluster)
    started: list[str] = []
    app.on_startup(lambda: started.append("started"))
    app.stop()
    app.stop()
    assert app.run() == 0
    assert started == []
    with running(app):
        app.producer.produce(topic, b"1").wait()
        seen.wait_for(1)
    assert started == ["started"]


def test_a_stop_during_the_start_ends_the_app_after_it(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    said: list[str] = []

    @app.on_startup
    def start() -> None:
        said.append("start")
        app.stop()

    app.on_shutdown(lambda: said.append("stop"))
    assert app.run() == 0
    runner = awoke.AppRunner(app)
    runner.start()
    assert runner.stop()
    assert said == ["start", "stop"] * 2


def test_a_stop_ends_a_runner_that_was_started_by_hand(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    stopped: Collected[awoke.Event] = Collected()
    app.events.subscribe("app.stopped", stopped.add)
    runner = awoke.AppRunner(app)
    runner.start()
    app.stop()
    (event,) = stopped.wait_for(1)
    assert event.fields["is_clean"]
    assert runner.stop()
    assert runner.has_ended


def test_functions_run_around_all_messages_and_in_order(mock_cluster: MockCluster) -> None:
    topic = unique("around")
    mock_cluster.create_topic(topic)
    app = awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers)
    said: Collected[str] = Collected()
    loops: set[int] = set()

    @app.on_startup
    def first() -> None:
        said.add("first")

    @app.on_shutdown
    def undo_first() -> None:
        said.add("undo first")
        app.producer.produce(topic, b"the producer still works").wait()

    @app.on_startup
    async def second() -> None:
        loops.add(id(asyncio.get_running_loop()))
        said.add("second")

    @app.on_shutdown
    async def undo_second() -> None:
        loops.add(id(asyncio.get_running_loop()))
        said.add("undo second")

    @app.on(topic)
    async def see(message: awoke.Message[bytes]) -> None:
        loops.add(id(asyncio.get_running_loop()))
        said.add("message")

    app.events.subscribe("partitions.revoked", lambda event: said.add("revoked"))
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        producer.produce(topic, b"1").wait()
    with running(app):
        said.wait_until(lambda items: "message" in items)
    assert [each for each in said.items if each != "revoked"] == [
        "first",
        "second",
        "message",
        "undo second",
        "undo first",
    ]
    assert len(loops) == 1


def test_an_async_function_runs_in_an_app_without_async_handlers(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    said: list[str] = []

    @app.on_startup
    async def start() -> None:
        await asyncio.sleep(0)
        said.append("start")

    @app.on_shutdown
    async def stop() -> None:
        said.append("stop")

    with running(app):
        assert said == ["start"]
    assert said == ["start", "stop"]


def test_a_startup_function_that_raises_ends_the_start_and_undoes_what_succeeded(mock_cluster: MockCluster) -> None:
    app, topic, seen = app_of(mock_cluster)
    said: list[str] = []

    @app.on_shutdown
    def always() -> None:
        said.append("always")

    for name in ("a", "b", "c"):

        @app.on_startup
        def start(name: str = name) -> None:
            said.append(name)
            if name == "b":
                raise ZeroDivisionError

        @app.on_shutdown
        def stop(name: str = name) -> None:
            said.append(f"undo {name}")

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        producer.produce(topic, b"1").wait()
    with pytest.raises(ZeroDivisionError):
        app.run()
    assert said == ["a", "b", "undo a", "always"]
    assert seen.items == []


def test_a_shutdown_function_that_raises_hides_no_other(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster)
    said: list[str] = []
    failed: Collected[awoke.Event] = Collected()
    app.events.subscribe("shutdown.failed", failed.add)

    @app.on_shutdown
    def last() -> None:
        said.append("last")

    @app.on_shutdown
    async def failing() -> None:
        raise ZeroDivisionError

    @app.on_shutdown
    def ending() -> None:
        raise SystemExit(3)

    with running(app):
        pass
    assert said == ["last"]
    assert [type(event.fields["error"]) for event in failed.items] == [SystemExit, ZeroDivisionError]
    assert "failing" in failed.items[1].fields["function"]


def test_a_shutdown_function_that_hangs_does_not_hold_up_the_end(mock_cluster: MockCluster) -> None:
    app, _, _ = app_of(mock_cluster, shutdown_timeout_s=1.0)
    may_end, has_ended = threading.Event(), threading.Event()

    @app.on_shutdown
    def hang() -> None:
        may_end.wait(WITHIN_S)
        has_ended.set()

    runner = awoke.AppRunner(app)
    runner.start()
    assert not runner.stop()
    assert not has_ended.is_set()
    may_end.set()
    for thread in threading.enumerate():
        if thread.name == "awoke-shutdown":
            thread.join(WITHIN_S)


@pytest.mark.parametrize("register", ["on_startup", "on_shutdown"])
def test_functions_that_cannot_be_called_are_refused(register: str) -> None:
    app = awoke.App("refusing")

    def needs(argument: str) -> None: ...

    def yields() -> object:
        yield

    async def yields_async() -> object:
        yield

    with pytest.raises(awoke.ConfigError, match="without arguments"):
        getattr(app, register)(needs)
    for each in (yields, yields_async):
        with pytest.raises(awoke.ConfigError, match="yield"):
            getattr(app, register)(each)
