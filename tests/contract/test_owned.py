"""Things that a consumer owns: threads and tasks that end with it, a tick, offsets that it moves; changing workers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

import awoke
from awoke.testing import Runs, running
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]


def test_a_background_thread_ends_before_its_partition_is_given_back(cluster: Cluster, topic: CreateTopic) -> None:
    name, told = topic(partitions=2), Collected[str]()
    app = new_app(cluster)

    @app.consumer(name)
    class Owner(awoke.Consumer):
        def assigned(self) -> None:
            self.background(self.flush_forever)

        def flush_forever(self) -> None:
            told.add(f"began on {threading.current_thread().name}")
            self.stopping.wait()
            told.add("ended")

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            told.add("batch")

        def shutdown(self) -> None:
            assert not self.stopping.is_set()
            told.add("shutdown")

    with running(app) as server:
        told.wait_for(2)
        assert server.ledger.counts()[f"{name}[0]"] == 1
    assert sorted(told.items[:2]) == [f"began on {name}[{partition}]-flush_forever" for partition in (0, 1)]
    assert sorted(told.items[2:]) == ["ended", "ended", "shutdown", "shutdown"]
    assert f"{name}[0]" not in server.ledger.counts()


def test_an_async_consumer_owns_its_tasks(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, told = topic(), Collected[str]()
    app = new_app(cluster)

    @app.consumer(name)
    class Owner(awoke.Consumer):
        async def assigned(self) -> None:
            self.background(self.flush_forever)

        async def flush_forever(self) -> None:
            told.add("began")
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                told.add("cancelled")
                raise

        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            pass

    probe = awoke_run(app)
    told.wait_for(1)
    probe.stop()
    assert told.items == ["began", "cancelled"]


def test_a_background_failure_may_fail_the_consumer(cluster: Cluster, topic: CreateTopic) -> None:
    name, told, failed = topic(), Collected[str](), Collected[awoke.Event]()
    app = new_app(cluster)
    app.events.subscribe("job.failed", failed.add)
    fell = threading.Event()
    app.events.subscribe("background.failed", lambda event: fell.set())

    @app.consumer(name, retry=awoke.Retry(backoff_s=(0.01, 0.02)))
    class Owner(awoke.Consumer):
        def assigned(self) -> None:
            told.add("assigned")
            if told.items.count("assigned") == 1:
                self.background(self.fall, on_error="fail")

        def fall(self) -> None:
            raise OSError("the buffer is gone")

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            told.add("batch")

    with running(app):
        assert fell.wait(30)
        send(cluster, name, [b"value"])
        told.wait_until(lambda items: "batch" in items)
    assert told.items == ["assigned", "assigned", "batch"]
    assert isinstance(failed.items[0].fields["error"], awoke.BackgroundFailed)


def test_a_thread_that_outlives_its_consumer_is_reported(cluster: Cluster, topic: CreateTopic) -> None:
    name, leaked, started, release = topic(), Collected[awoke.Event](), threading.Event(), threading.Event()
    app, threads = new_app(cluster), []
    app.events.subscribe("thread.leaked", leaked.add)

    @app.consumer(name)
    class Forgetful(awoke.Consumer):
        def assigned(self) -> None:
            threads.append(threading.Thread(target=release.wait, name="forgotten", daemon=True))
            threads[0].start()
            started.set()

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            pass

    try:
        with running(app):
            assert started.wait(30)
        (event,) = leaked.wait_for(1)
    finally:
        release.set()
        threads[0].join()
    assert event.fields["owner"] == f"{name}[0]"
    assert event.fields["thread"] == "forgotten"
    assert event.fields["handler"].endswith("Forgetful")
    assert "test_owned.py" in event.fields["started_at"]


def test_an_app_owns_threads_too(cluster: Cluster, topic: CreateTopic) -> None:
    name, told = topic(), Collected[str]()
    app = new_app(cluster)

    @app.on(name)
    def handle(message: awoke.Message[bytes]) -> None:
        pass

    def watch(word: str, stop: threading.Event) -> None:
        told.add(word)
        stop.wait()
        told.add("ended")

    app.background(watch, "before")
    with running(app):
        told.wait_for(1)
        app.background(watch, "while")
        told.wait_for(2)
    assert told.items == ["before", "while", "ended", "ended"]


def test_an_apps_background_failure_may_end_it(cluster: Cluster, topic: CreateTopic) -> None:
    app, errors = new_app(cluster), Collected[BaseException]()

    @app.on(topic())
    def handle(message: awoke.Message[bytes]) -> None:
        pass

    app.background(lambda: 1 / 0, on_error="fail", name="divide")
    server = awoke.AppRunner(app, on_fatal_error=errors.add)
    server.start()
    try:
        errors.wait_for(1)
    finally:
        server.stop()
    assert isinstance(server.fatal_error, ZeroDivisionError)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tick_comes_while_nothing_else_does(cluster: Cluster, topic: CreateTopic, is_async: bool) -> None:
    name, ticks = topic(), Collected[str]()
    app = new_app(cluster)

    class Ticking(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            ticks.add("batch")

        def tick(self) -> None:
            ticks.add("tick")

    class TickingAsync(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            ticks.add("batch")

        async def tick(self) -> None:
            ticks.add("tick")

    app.consumer(name, tick_every_s=0.02)(TickingAsync if is_async else Ticking)
    with running(app):
        assert set(ticks.wait_for(5)) == {"tick"}
        send(cluster, name, [b"value"])
        ticks.wait_until(lambda items: "batch" in items and items[-1] == "tick")


def test_only_what_is_marked_is_committed_with_manual_offsets(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, seen = topic(), Collected[int]()
    app = new_app(cluster)

    @app.consumer(name, offsets="manual")
    class Manual(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                if message.offset == 3:
                    self.mark_sync(message, metadata="as far as here", timeout_s=30)
                    assert self.committed() == (4, "as far as here")
                seen.add(message.offset)

    send(cluster, name, [b"value"] * 10)
    probe = awoke_run(app)
    probe.rest()
    assert seen.items == list(range(10))
    probe.stop()
    assert_committed(cluster, app, {(name, 0): 4})


def test_workers_come_and_go_while_the_app_runs(cluster: Cluster, topic: CreateTopic) -> None:
    name, inside, release = topic(partitions=4), Collected[str](), threading.Semaphore(0)
    app = new_app(cluster, workers=1)

    @app.on(name)
    def hold(message: awoke.Message[bytes]) -> None:
        inside.add(threading.current_thread().name)
        assert release.acquire(timeout=30)

    with running(app) as server:
        for partition in range(4):
            send(cluster, name, [b"value"], partition=partition)
        inside.wait_for(1)
        server.resize(4)
        assert len(set(inside.wait_for(4))) == 4
        server.resize(1)
        release.release(8)
        for partition in range(4):
            send(cluster, name, [b"value"], partition=partition)
        inside.wait_for(8)
        workers = [thread for thread in server._pool.workers if thread.thread.is_alive()]
        assert len(workers) == 1
        with pytest.raises(awoke.ConfigError):
            server.resize(0)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_job_that_runs_too_long_is_bad_for_health_until_it_ends(
    cluster: Cluster, topic: CreateTopic, is_async: bool
) -> None:
    name, slow, done = topic(), Collected[awoke.Event](), Collected[bytes]()
    app, release = new_app(cluster), threading.Event()
    app.events.subscribe("job.slow", slow.add)

    def handle(message: awoke.Message[bytes]) -> None:
        assert release.wait(30)
        done.add(message.value)

    async def handle_async(message: awoke.Message[bytes]) -> None:
        await asyncio.get_running_loop().run_in_executor(None, handle, message)

    app.on(name, max_processing_s=0.05)(handle_async if is_async else handle)
    send(cluster, name, [b"value"])
    with running(app) as server:
        (event,) = slow.wait_for(1)
        assert (event.fields["topic"], event.fields["offset"]) == (name, 0)
        assert not server.health().is_healthy
        assert f"{name}[0] offset 0" in server.health().reasons[0]
        release.set()
        done.wait_for(1)
    assert server.health().is_healthy
