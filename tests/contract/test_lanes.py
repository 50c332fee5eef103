"""Several messages of a partition at once: the order of keys, the limits of delay, the commits."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.testing import Probe, Runs, running
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster, read_all, reading, unique
from tests.support.waiting import WITHIN_S, Collected, awork_for, stays_so, wait_until, work_for

CreateTopic = Callable[..., str]
SOON = awoke.Retry(attempts=3, backoff_s=(0.01, 0.02))


def send_keyed(cluster: Cluster, topic: str, pairs: list[tuple[bytes | None, bytes]]) -> None:
    """Pairs of key and value into partition 0, in order and together."""
    with awoke.Producer(cluster.bootstrap_servers, kafka={"linger.ms": 1_000}) as producer:
        awoke.wait_all([producer.produce(topic, value, key=key, partition=0) for key, value in pairs], 60)


def numbered(keys: int, messages: int) -> list[tuple[bytes | None, bytes]]:
    """Messages that count up, with keys in turn."""
    return [(b"%d" % (number % keys), b"%d" % number) for number in range(messages)]


def idle_while_more_is_done(probe: Probe, done: Collected[int]) -> None:
    """Waits until all is processed, for as long as each wait finds more done: a hundred back-offs take their time."""
    while True:
        before = len(done.items)
        try:
            probe.idle()
        except AssertionError:
            if len(done.items) > before:
                continue
            raise
        return


class Order:
    """A record of begins and ends, which shows that a key's messages ran in order and never beside each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.by_key: dict[bytes | None, list[int]] = defaultdict(list)
        self.running: set[bytes | None] = set()
        self.most = 0
        self.overlaps = 0

    def begin(self, message: awoke.Message[bytes]) -> None:
        with self._lock:
            self.overlaps += message.key in self.running
            self.running.add(message.key)
            self.most = max(self.most, len(self.running))

    def end(self, message: awoke.Message[bytes]) -> None:
        with self._lock:
            self.running.discard(message.key)
            self.by_key[message.key].append(message.offset)

    def check(self) -> None:
        assert self.overlaps == 0
        assert all(offsets == sorted(offsets) for offsets in self.by_key.values())


def test_different_keys_run_at_once(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, done = topic(), Collected[bytes]()
    app, together = new_app(cluster), threading.Barrier(4)

    @app.on(name, concurrency=awoke.by_key(4))
    def handle(message: awoke.Message[bytes]) -> None:
        together.wait(WITHIN_S)
        done.add(message.value)

    send_keyed(cluster, name, numbered(4, 8))
    awoke_run(app).idle()
    assert len(done.items) == 8
    assert_committed(cluster, app, {(name, 0): 8})


@pytest.mark.parametrize("is_async", [False, True])
def test_a_key_keeps_its_order(cluster: Cluster, topic: CreateTopic, is_async: bool, awoke_run: Runs) -> None:
    name, done, order = topic(), Collected[int](), Order()
    app, chance = new_app(cluster), random.Random(3)

    def handle(message: awoke.Message[bytes]) -> None:
        order.begin(message)
        work_for(chance.random() / 500)
        order.end(message)
        done.add(message.offset)

    async def handle_async(message: awoke.Message[bytes]) -> None:
        order.begin(message)
        await awork_for(chance.random() / 500)
        order.end(message)
        done.add(message.offset)

    app.on(name, concurrency=awoke.by_key(8))(handle_async if is_async else handle)
    keys = [b"%d" % chance.randrange(20) for _ in range(600)]
    send_keyed(cluster, name, [(key, b"value") for key in keys])
    awoke_run(app).idle()
    order.check()
    assert order.most > 1
    assert sorted(done.items) == list(range(600))
    assert_committed(cluster, app, {(name, 0): 600})


def test_a_slow_key_delays_no_other_key_and_the_offset_waits_for_it(cluster: Cluster, topic: CreateTopic) -> None:
    name, done, release = topic(), Collected[bytes](), threading.Event()
    app = new_app(cluster)

    @app.on(name, concurrency=awoke.by_key(4))
    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"3":
            release.wait(WITHIN_S)
        done.add(message.value)

    send_keyed(cluster, name, numbered(4, 400))
    with running(app) as server:
        done.wait_for(300)

        def gap() -> tuple[int, int] | None:
            (state,) = server.partitions()
            return None if state.commit_gap is None else (state.commit_gap.oldest_offset, state.commit_gap.messages)

        # A handler that has returned is noted when its job ends, or when the lanes behind a slow one are taken away.
        wait_until(lambda: gap() == (3, 397), "all but the slow key are done", WITHIN_S, every_s=0.001)
        assert server.own.member is not None
        server.own.member.commit().wait(30)
        assert_committed(cluster, app, {(name, 0): 3})
        release.set()
        done.wait_for(400)
    assert_committed(cluster, app, {(name, 0): 400})


@pytest.mark.parametrize("is_async", [False, True])
def test_a_slow_message_among_short_ones_delays_its_own_key_only(
    cluster: Cluster, topic: CreateTopic, is_async: bool
) -> None:
    name, done, order, release = topic(), Collected[int](), Order(), threading.Event()
    app, slow = new_app(cluster), {500, 700}

    def handle(message: awoke.Message[bytes]) -> None:
        order.begin(message)
        if message.offset in slow:
            assert release.wait(WITHIN_S)
        order.end(message)
        done.add(message.offset)

    async def handle_async(message: awoke.Message[bytes]) -> None:
        order.begin(message)
        if message.offset in slow:
            assert await asyncio.to_thread(release.wait, WITHIN_S)
        order.end(message)
        done.add(message.offset)

    app.on(name, concurrency=awoke.by_key(4))(handle_async if is_async else handle)
    send_keyed(
        cluster, name, numbered(300, 900)
    )  # Each key has three messages: 500 and 800 are of one, 700 of another.
    with running(app):
        assert set(range(900)) - set(done.wait_for(897)) == {500, 700, 800}
        release.set()
        done.wait_for(900)
    order.check()
    assert_committed(cluster, app, {(name, 0): 900})


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("has_output", [False, True])
def test_messages_that_fail_among_short_ones_are_tried_again_in_their_order(
    cluster: Cluster, topic: CreateTopic, is_async: bool, has_output: bool, awoke_run: Runs
) -> None:
    name, output, done, order = topic(), topic("output"), Collected[int](), Order()
    app, failed = new_app(cluster), set[int]()

    def handle(message: awoke.Message[bytes]) -> bytes | None:
        if message.offset % 9 == 0 and message.offset not in failed:
            failed.add(message.offset)
            raise ValueError("not yet")
        order.begin(message)
        order.end(message)
        done.add(message.offset)
        return message.value if has_output else None

    async def handle_async(message: awoke.Message[bytes]) -> bytes | None:
        return handle(message)

    options: dict[str, Any] = {"output": output} if has_output else {}
    app.on(name, concurrency=awoke.by_key(4), retry=SOON, **options)(handle_async if is_async else handle)
    send_keyed(cluster, name, numbered(250, 1_000))
    probe = awoke_run(app)
    idle_while_more_is_done(probe, done)
    assert sorted(done.items) == list(range(1_000))
    assert {each.offset for each in probe.failures} == failed
    order.check()
    assert_committed(cluster, app, {(name, 0): 1_000})
    if has_output:
        with reading(cluster, output) as reader:
            copies = [(message.key, int(message.value or b"")) for message in reader.read_until_end(30)]
        assert sorted(value for _, value in copies) == list(range(1_000))
        of_key: dict[bytes | None, list[int]] = {}
        for key, value in copies:
            of_key.setdefault(key, []).append(value)
        assert all(values == sorted(values) for values in of_key.values())


def test_a_failing_key_is_tried_again_alone_and_its_dead_letter_goes_alone(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, dead, done = topic(), topic("dead"), Collected[tuple[bytes, int]]()
    app = new_app(cluster)

    @app.on(name, concurrency=awoke.by_key(4), retry=SOON, dead_letter=dead)
    def handle(message: awoke.Message[bytes]) -> None:
        done.add((message.value, message.attempt))
        if message.value == b"1":
            raise ValueError("no good")

    send_keyed(cluster, name, numbered(4, 40))
    probe = awoke_run(app)
    probe.idle()
    assert sorted(attempt for value, attempt in done.items if value == b"1") == [1, 2, 3]
    assert [each.offset for each in probe.failures] == [1, 1, 1]
    others = [value for value, _ in done.items if value != b"1"]
    assert len(others) == len(set(others)) == 39
    first_of_key = [value for value, _ in done.items if int(value) % 4 == 1]
    assert first_of_key == [b"1", b"1", b"1", *(b"%d" % number for number in range(5, 40, 4))]
    assert_committed(cluster, app, {(name, 0): 40})
    assert [letter.value for letter in read_all(cluster, dead)] == [b"1"]


def test_hundreds_of_coroutines_of_one_partition_are_in_flight(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, done = topic(), Collected[bytes]()
    app = new_app(cluster)
    waiting: list[asyncio.Future[None]] = []

    @app.on(name, concurrency=awoke.unordered(500))
    async def handle(message: awoke.Message[bytes]) -> None:
        future = asyncio.get_running_loop().create_future()
        waiting.append(future)
        if len(waiting) == 500:
            for each in waiting:
                each.set_result(None)
            waiting.clear()
        await asyncio.wait_for(future, WITHIN_S)
        done.add(message.value)

    send(cluster, name, [b"value"] * 1_000)
    awoke_run(app).idle()
    assert_committed(cluster, app, {(name, 0): 1_000})


@pytest.mark.parametrize("is_async", [False, True])
def test_the_route_says_what_keeps_its_order(
    cluster: Cluster, topic: CreateTopic, is_async: bool, awoke_run: Runs
) -> None:
    name, done = topic(), Collected[bytes]()
    app, order = new_app(cluster), Order()

    def lane_of(message: awoke.Message[bytes]) -> int:
        return int(message.value) % 3

    def handle(message: awoke.Message[bytes]) -> None:
        done.add(message.value)

    async def handle_async(message: awoke.Message[bytes]) -> None:
        done.add(message.value)

    app.on(name, concurrency=awoke.by(lane_of, 4))(handle_async if is_async else handle)
    send_keyed(cluster, name, [*numbered(50, 99), (b"odd", b"not a number")])
    probe = awoke_run(app)
    probe.idle()
    for lane in range(3):
        mine = [int(value) for value in done.items if value.isdigit() and int(value) % 3 == lane]
        assert mine == sorted(mine)
    assert [(each.event, each.offset) for each in probe.failures] == [("lane.failed", 99)]
    assert_committed(cluster, app, {(name, 0): 100})
    order.check()


def test_batches_hold_whole_lanes(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, done, order = topic(), Collected[int](), Order()
    app = new_app(cluster)

    @app.consumer(name, concurrency=awoke.by_key(4))
    class Batches(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            messages = list(batch)
            assert batch.offsets() == sorted(batch.offsets())
            for key in {message.key for message in messages}:
                order.begin(next(message for message in messages if message.key == key))
            work_for(0.002)
            for message in messages:
                order.end(message)
            done.add(len(messages))

    send_keyed(cluster, name, numbered(20, 1_000))
    awoke_run(app).idle()
    order.check()
    assert len(done.items) < 500, "a share is more than a message"
    assert_committed(cluster, app, {(name, 0): 1_000})


def test_what_is_marked_is_not_done_again(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, done = topic(), Collected[list[int]]()
    app = new_app(cluster)

    @app.consumer(name, concurrency=awoke.by_key(2), retry=SOON)
    class Marks(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            done.add(batch.offsets())
            if batch.attempt == 1 and len(batch) > 1:
                self.mark(batch[0])
                raise ValueError("after the first")

    send_keyed(cluster, name, [(b"key", b"value")] * 10)
    probe = awoke_run(app)
    probe.idle()
    assert done.items[1] == done.items[0][1:]
    assert [each.offset for each in probe.failures] == [1]
    assert_committed(cluster, app, {(name, 0): 10})


def test_a_partition_takes_in_no_more_while_its_oldest_is_too_far_behind(cluster: Cluster, topic: CreateTopic) -> None:
    name, done, release = topic(), Collected[int](), threading.Event()
    app = new_app(cluster)

    @app.on(name, concurrency=awoke.by_key(4, in_flight=10, commit_gap=30))
    def handle(message: awoke.Message[bytes]) -> None:
        if message.offset == 2:
            release.wait(WITHIN_S)
        done.add(message.offset)

    send_keyed(cluster, name, numbered(100, 100))
    with running(app) as server:
        done.wait_for(31)
        stays_so(lambda: sorted(done.items) == [0, 1, *range(3, 32)], "no more than these are taken in", for_s=0.1)
        (reason,) = server.health().reasons
        assert f"{name}[0] takes in no more: offset 2 is not done" in reason
        release.set()
        done.wait_for(100)
        wait_until(lambda: server.health().is_healthy, "all is well")
    assert_committed(cluster, app, {(name, 0): 100})


@pytest.mark.parametrize("is_exactly_once", [False, True], ids=["at_least_once", "exactly_once"])
def test_what_the_first_process_has_done_is_not_done_again_by_the_third(
    cluster: Cluster, topic: CreateTopic, is_exactly_once: bool, awoke_run: Runs
) -> None:
    name, out, group, done = topic(), topic("out"), unique("group"), [Collected[int]() for _ in range(3)]
    send_keyed(cluster, name, numbered(20, 20))

    def start(process: int, failing: set[int], concurrency: awoke.Concurrency) -> None:
        app = new_app(cluster, group=group)
        options: dict[str, Any] = {"output": out, "exactly_once": True} if is_exactly_once else {}

        @app.on(name, concurrency=concurrency, retry=awoke.Retry(attempts=2, backoff_s=(100, 100)), **options)
        def handle(message: awoke.Message[bytes]) -> bytes | None:
            if message.offset in failing:
                raise ValueError("not in this process")
            done[process].add(message.offset)
            return b"done" if is_exactly_once else None

        probe = awoke_run(app)
        probe.rest()
        assert {each.offset for each in probe.failures} == failing
        probe.stop()

    start(0, {0, 5}, awoke.by_key(4))
    start(1, {5}, awoke.by_key(2, in_flight=2, commit_gap=2))
    start(2, set(), awoke.by_key(4))
    assert [sorted(each.items) for each in done] == [[*range(1, 5), *range(6, 20)], [0], [5]]
    assert cluster.admin.group_offsets(group)[(name, 0)] >= 20


def test_a_seek_goes_for_all_lanes(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, done, went_back = topic(), Collected[int](), threading.Event()
    app = new_app(cluster)

    @app.consumer(name, concurrency=awoke.by_key(4))
    class Seeks(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            if batch.last_offset == 50 and not went_back.is_set():
                went_back.set()
                self.seek(20)
            for offset in batch.offsets():
                done.add(offset)

    send_keyed(cluster, name, numbered(10, 50))
    probe = awoke_run(app, may_repeat=True)
    probe.idle()
    send_keyed(cluster, name, [(b"last", b"last")])
    probe.idle()
    assert sorted(done.items[51:]) == list(range(20, 51))
    assert_committed(cluster, app, {(name, 0): 51})


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": awoke.by_key(2), "ordered": True},
        {"concurrency": "by_key"},
    ],
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    app = awoke.App("wrong")
    with pytest.raises(awoke.ConfigError):
        app.on("topic", **options)(print)  # type: ignore[arg-type]


def test_wrong_concurrency_is_refused() -> None:
    with pytest.raises(awoke.ConfigError):
        awoke.by_key(0)
    with pytest.raises(awoke.ConfigError):
        awoke.by_key(10, in_flight=5)
    with pytest.raises(awoke.ConfigError):
        awoke.unordered(10, commit_gap=5)
    with pytest.raises(awoke.ConfigError):
        awoke.by("key")  # type: ignore[arg-type]
    app = awoke.App("manual")
    with pytest.raises(awoke.ConfigError, match="offsets='manual'"):

        @app.consumer("topic", offsets="manual", concurrency=awoke.by_key(2))
        class Manual(awoke.Consumer):
            def consume(self, batch: awoke.Batch[bytes]) -> None: ...
