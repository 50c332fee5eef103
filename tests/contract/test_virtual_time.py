"""Virtual time: hours of back-offs, delays, batches, rates, ticks and deadlines pass at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

import awoke
from awoke import rpc
from awoke.observe.events import JobSlow
from awoke.testing import Runs, VirtualClock, running
from tests.contract.test_consume import assert_committed, committed, new_app, send
from tests.support import services
from tests.support.clusters import Cluster, read_all, unique
from tests.support.waiting import Collected, ahang, wait_until

CreateTopic = Callable[..., str]

HOUR_S = 3_600.0


@pytest.fixture
def clock(awoke_clock: VirtualClock) -> VirtualClock:
    return awoke_clock


@pytest.fixture
def cluster(mock_cluster: Cluster) -> Cluster:
    """Embedded brokers only: what is tested here is awoke's own clock."""
    return mock_cluster


@pytest.mark.parametrize("is_async", [False, True])
def test_a_retry_ladder_of_an_hour_ends_in_a_dead_letter(
    clock: VirtualClock, cluster: Cluster, topic: CreateTopic, is_async: bool, awoke_run: Runs
) -> None:
    name, dead, app, tries = topic(), topic("dead"), new_app(cluster), Collected[float]()

    def fail(message: awoke.Message[bytes]) -> None:
        tries.add(clock.now_s)
        raise ValueError("never right")

    async def fail_async(message: awoke.Message[bytes]) -> None:
        fail(message)

    retry = awoke.Retry(attempts=7, backoff_s=(60.0, HOUR_S), jitter=0.0)
    app.on(name, dead_letter=dead, retry=retry)(fail_async if is_async else fail)
    send(cluster, name, [b"bad"])
    probe = awoke_run(app)
    clock.run_until_idle()
    probe.idle()
    assert (len(probe.failures), len(probe.dead_letters)) == (7, 1)
    assert tries.items == pytest.approx([0, 60, 180, 420, 900, 1_860, 3_780])
    assert_committed(cluster, app, {(name, 0): 1})
    assert [letter.value for letter in read_all(cluster, dead)] == [b"bad"]


def test_a_back_off_is_not_over_before_its_moment(
    clock: VirtualClock, cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, tries = topic(), new_app(cluster), Collected[float]()

    @app.on(name, retry=awoke.Retry(attempts=2, backoff_s=(HOUR_S, HOUR_S), jitter=0.0, on_exhausted="skip"))
    def fail(message: awoke.Message[bytes]) -> None:
        tries.add(clock.now_s)
        raise ValueError("never right")

    send(cluster, name, [b"bad"])
    probe = awoke_run(app)
    assert clock.next_due_s() == pytest.approx(HOUR_S)
    clock.advance(HOUR_S - 0.001)
    assert len(tries.items) == 1
    clock.advance(0.001)
    assert tries.items == pytest.approx([0, HOUR_S])
    clock.run_until_idle()
    assert [each.attempt for each in probe.failures] == [1, 2]
    assert clock.now_s == pytest.approx(HOUR_S), "nothing is left"


def test_lanes_retry_their_own_message(
    clock: VirtualClock, cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[bytes]()

    @app.on(name, concurrency=awoke.by_key(4), retry=awoke.Retry(backoff_s=(HOUR_S, HOUR_S), jitter=0.0))
    def note(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)
        if message.value == b"bad" and seen.items.count(b"bad") < 3:
            raise ValueError("not yet")

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for value in (b"bad", b"good"):
            producer.produce(name, value, key=value)
    probe = awoke_run(app)
    clock.advance(2 * HOUR_S)
    assert [each.attempt for each in probe.failures] == [1, 2]
    assert sorted(seen.items) == [b"bad"] * 3 + [b"good"]


def test_a_delay_counts_from_the_virtual_time_of_sending(
    clock: VirtualClock, cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, ages = topic(), new_app(cluster), Collected[float]()

    @app.on(name, flow=awoke.Flow(delay_s=HOUR_S))
    def note(message: awoke.Message[bytes]) -> None:
        ages.add(clock.now_s)

    clock.advance(10)
    send(cluster, name, [b"later"])
    awoke_run(app)
    clock.advance(HOUR_S - 1)
    assert ages.items == []
    clock.advance(1)
    assert ages.items == pytest.approx([10 + HOUR_S], abs=0.01)


def test_a_batch_waits_for_more_as_long_as_it_may(clock: VirtualClock, cluster: Cluster, topic: CreateTopic) -> None:
    name, app, sizes = topic(), new_app(cluster), Collected[int]()

    @app.consumer(name, batch=awoke.Batching(max_messages=5, max_wait_s=HOUR_S))
    class Sizes(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            sizes.add(len(batch))

    with running(app), awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for _ in range(5):
            producer.produce(name, b"value").wait(30)
        assert sizes.wait_for(1) == [5]
        for _ in range(3):
            producer.produce(name, b"value").wait(30)
        # The messages may be fetched one by one: each fetch may begin a batch that waits.
        while sum(sizes.items) < 8:
            wait_until(lambda: clock.next_due_s() is not None or sum(sizes.items) == 8, "a batch waits", every_s=0.01)
            clock.advance(HOUR_S)
        assert sum(sizes.items) == 8


def test_a_rate_lets_messages_pass_as_time_does(
    clock: VirtualClock, cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, moments = topic(), new_app(cluster), Collected[float]()

    @app.on(name, flow=awoke.Flow(per_s=0.1))
    def note(message: awoke.Message[bytes]) -> None:
        moments.add(clock.now_s)

    send(cluster, name, [b"value"] * 4)
    awoke_run(app)
    clock.run_until_idle()
    assert moments.items == pytest.approx([0, 10, 20, 30], abs=0.01)


def test_a_tick_comes_once_for_each_of_its_intervals(
    clock: VirtualClock, cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, ticks = topic(), new_app(cluster), Collected[float]()

    @app.consumer(name, tick_every_s=10)
    class Ticking(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None: ...

        def tick(self) -> None:
            ticks.add(clock.now_s)

    awoke_run(app)
    clock.advance(25)
    assert ticks.items == pytest.approx([10, 20])
    clock.run_until_idle()
    assert len(ticks.items) == 2, "a tick is nothing to run for"


def test_the_commit_interval_passes_with_the_clock(clock: VirtualClock, cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen = topic(), new_app(cluster, commit_interval_s=HOUR_S), Collected[bytes]()

    @app.on(name)
    def note(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    with running(app), awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        producer.produce(name, b"first").wait(30)
        seen.wait_for(1)
        clock.settle()
        assert committed(cluster, app) == {(name, 0): 1}, "a lone offset is committed at once"
        producer.produce(name, b"second").wait(30)
        seen.wait_for(2)
        clock.advance(HOUR_S / 2)
        assert committed(cluster, app) == {(name, 0): 1}
        clock.advance(HOUR_S / 2)
        assert committed(cluster, app) == {(name, 0): 2}


def test_a_handler_that_takes_too_long_is_reported(clock: VirtualClock, cluster: Cluster, topic: CreateTopic) -> None:
    name, app, slow, hangs, go = topic(), new_app(cluster), Collected[float](), threading.Event(), threading.Event()
    app.events.subscribe(JobSlow, lambda event: slow.add(event.ran_s))

    @app.on(name, max_processing_s=HOUR_S)
    def hang(message: awoke.Message[bytes]) -> None:
        hangs.set()
        go.wait(30)

    send(cluster, name, [b"value"])
    with running(app):
        assert hangs.wait(30)
        clock.advance(HOUR_S, jobs_go_on=True)
        assert slow.wait_for(1) == pytest.approx([HOUR_S])
        go.set()


def test_a_wait_for_a_handler_that_runs_takes_no_processor_time(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, hangs, go = topic(), new_app(cluster), threading.Event(), threading.Event()

    @app.on(name)
    def hang(message: awoke.Message[bytes]) -> None:
        hangs.set()
        go.wait(30)

    send(cluster, name, [b"value"])
    with VirtualClock(settle_timeout_s=0.5) as clock, running(app):
        assert hangs.wait(30)
        before_s = time.thread_time()
        with pytest.raises(TimeoutError, match="a scheduler with 1 jobs"):
            clock.settle()
        assert time.thread_time() - before_s < 0.05
        go.set()


def test_a_background_thread_waits_by_the_clock(clock: VirtualClock, cluster: Cluster, topic: CreateTopic) -> None:
    name, app, turns = topic(), new_app(cluster), Collected[float]()

    @app.consumer(name)
    class Flushing(awoke.Consumer):
        def assigned(self) -> None:
            self.background(self.flush_forever)

        def consume(self, batch: awoke.Batch[bytes]) -> None: ...

        def flush_forever(self) -> None:
            while not self.stopping.wait(10):
                turns.add(clock.now_s)

    with running(app):
        wait_until(lambda: clock.next_due_s() is not None, "the thread waits", every_s=0.01)
        clock.advance(25)
        assert turns.items == pytest.approx([10, 20])


def test_a_call_ends_at_its_deadline(clock: VirtualClock, cluster: Cluster) -> None:
    app, called, go = services.new_app(cluster), threading.Event(), threading.Event()

    @app.rpc.method
    def hang() -> None:
        called.set()
        go.wait(30)

    with services.calling(app, timeout_s=HOUR_S) as caller:
        pending = caller.submit("hang")
        assert called.wait(30)
        clock.advance(HOUR_S - 1, jobs_go_on=True)
        assert not pending.done()
        clock.advance(1, jobs_go_on=True)
        with pytest.raises(rpc.DeadlineExceeded):
            pending.wait(30)
        go.set()


def test_an_hour_beside_an_open_call_takes_few_steps(
    clock: VirtualClock, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, called, go, steps = services.new_app(cluster), threading.Event(), threading.Event(), Collected[float]()
    settle = clock.settle

    def count(jobs_going_on: int = 0) -> None:
        settle(jobs_going_on)
        steps.add(clock.now_s)

    @app.rpc.method
    def hang() -> None:
        called.set()
        go.wait(30)

    monkeypatch.setattr(clock, "settle", count)
    with services.calling(app, timeout_s=HOUR_S) as caller:
        pending = caller.submit("hang")
        assert called.wait(30)
        clock.advance(HOUR_S - 1, jobs_go_on=True)
        assert len(steps.items) < 20, "the times between lookups of the responders double"
        go.set()
        pending.wait(30)


def test_an_async_method_is_cancelled_at_its_deadline(clock: VirtualClock, cluster: Cluster) -> None:
    app, called, cancelled = services.new_app(cluster), threading.Event(), threading.Event()

    @app.rpc.method
    async def hang() -> None:
        called.set()
        try:
            await ahang()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with services.calling(app, timeout_s=HOUR_S) as caller:
        pending = caller.submit("hang")
        assert called.wait(30)
        clock.advance(HOUR_S, jobs_go_on=True)
        assert cancelled.wait(30)
        with pytest.raises(rpc.DeadlineExceeded):
            pending.wait(30)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_that_waits_for_a_call_is_not_waited_for(
    clock: VirtualClock, cluster: Cluster, topic: CreateTopic, is_async: bool
) -> None:
    name, app, ended, asked = topic(), new_app(cluster), Collected[str](), threading.Event()
    caller = rpc.Caller(unique("silent"), cluster.bootstrap_servers, create_topics=True, checks_group=False)

    def ask(message: awoke.Message[bytes]) -> None:
        asked.set()
        try:
            caller.call("quote", timeout_s=HOUR_S)
        except rpc.DeadlineExceeded:
            ended.add("late")

    async def ask_async(message: awoke.Message[bytes]) -> None:
        asked.set()
        try:
            await caller.acall("quote", timeout_s=HOUR_S)
        except rpc.DeadlineExceeded:
            ended.add("late")

    app.on(name)(ask_async if is_async else ask)
    send(cluster, name, [b"value"])
    with caller, running(app):
        assert asked.wait(30)
        clock.run_until_idle()
        assert ended.items == ["late"]


def test_an_app_goes_on_in_real_time_when_the_clock_is_given_back(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, tries = topic(), new_app(cluster), Collected[int]()

    @app.on(name, retry=awoke.Retry(attempts=2, backoff_s=(60.0, 60.0), jitter=0.0, on_exhausted="skip"))
    def fail(message: awoke.Message[bytes]) -> None:
        tries.add(1)
        raise ValueError("never right")

    send(cluster, name, [b"bad"])
    with running(app):
        with VirtualClock() as clock:
            tries.wait_for(1)
            clock.advance(59.95)
            assert len(tries.items) == 1
        tries.wait_for(2)


def test_a_clock_that_is_taken_while_an_app_runs_has_its_timers(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, tries = topic(), new_app(cluster), Collected[int]()

    @app.on(name, retry=awoke.Retry(attempts=2, backoff_s=(HOUR_S, HOUR_S), jitter=0.0, on_exhausted="skip"))
    def fail(message: awoke.Message[bytes]) -> None:
        tries.add(1)
        raise ValueError("never right")

    send(cluster, name, [b"bad"])
    with running(app):
        tries.wait_for(1)
        with VirtualClock() as clock:
            clock.advance(HOUR_S)
            assert len(tries.items) == 2
