"""Results of several messages of a partition at once: in the order of the messages or not, refused, or dropped."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

import awoke
from awoke.testing import Runs, running
from tests.contract.test_consume import assert_committed, new_app
from tests.contract.test_lanes import SOON, numbered, send_keyed
from tests.support.clusters import Cluster, read_all, reading
from tests.support.waiting import WITHIN_S, Collected, awork_for, work_for

CreateTopic = Callable[..., str]


@pytest.mark.parametrize("is_async", [False, True])
def test_results_leave_in_the_order_of_the_messages(
    cluster: Cluster, topic: CreateTopic, is_async: bool, awoke_run: Runs
) -> None:
    name, out, dead = topic(), topic("out"), topic("dead")
    app, chance, done = new_app(cluster), random.Random(5), Collected[int]()

    def answer(message: awoke.Message[bytes]) -> bytes | None:
        done.add(message.offset)
        if message.offset % 50 == 7:
            raise ValueError("no more tries")
        if message.offset % 31 == 4 and message.attempt == 1:
            raise ValueError("works the second time")
        return None if message.offset % 10 == 3 else message.value

    def handle(message: awoke.Message[bytes]) -> bytes | None:
        work_for(chance.random() / 500)
        return answer(message)

    async def handle_async(message: awoke.Message[bytes]) -> bytes | None:
        await awork_for(chance.random() / 500)
        return answer(message)

    app.on(name, output=out, ordered=True, concurrency=awoke.by_key(8), retry=SOON, dead_letter=dead)(
        handle_async if is_async else handle
    )
    send_keyed(cluster, name, numbered(37, 500))
    expected = [b"%d" % number for number in range(500) if number % 10 != 3 and number % 50 != 7]
    probe = awoke_run(app)
    probe.idle()
    seen = [message.value for message in read_all(cluster, out)]
    assert seen == expected
    failing = {number for number in range(500) if number % 50 == 7 or number % 31 == 4}
    assert {each.offset for each in probe.failures} == failing
    assert_committed(cluster, app, {(name, 0): 500})


def test_without_order_results_leave_as_they_come(cluster: Cluster, topic: CreateTopic) -> None:
    name, out, release = topic(), topic("out"), threading.Event()
    app = new_app(cluster)

    @app.on(name, output=out, concurrency=awoke.by_key(4))
    def handle(message: awoke.Message[bytes]) -> bytes:
        if message.offset == 0:
            release.wait(WITHIN_S)
        return message.value

    send_keyed(cluster, name, numbered(20, 20))
    with running(app), reading(cluster, out) as reader:
        seen = []
        for message in reader:
            seen.append(message.value)
            if len(seen) == 19:
                release.set()
            if len(seen) == 20:
                break
    assert seen[-1] == b"0"
    assert_committed(cluster, app, {(name, 0): 20})


@pytest.mark.parametrize("ordered", [False, True])
def test_a_result_that_the_broker_refuses_is_the_failure_of_its_message(
    cluster: Cluster, topic: CreateTopic, ordered: bool, awoke_run: Runs
) -> None:
    name, out, dead = topic(), topic("out"), topic("dead")
    app, runs = new_app(cluster, kafka={"message.max.bytes": 10_000}), Collected[int]()

    @app.on(name, output=out, ordered=ordered, concurrency=awoke.by_key(4), retry=SOON, dead_letter=dead)
    def handle(message: awoke.Message[bytes]) -> bytes:
        runs.add(message.offset)
        return b"x" * 20_000 if message.offset in (3, 5) else message.value

    send_keyed(cluster, name, numbered(20, 20))
    probe = awoke_run(app)
    probe.idle()
    assert sorted(each.offset for each in probe.dead_letters) == [3, 5]
    assert all(isinstance(each.error, awoke.MessageTooLarge) for each in probe.dead_letters)
    assert {type(each.error) for each in probe.failures} == {awoke.MessageTooLarge}
    assert sorted(runs.items) == list(range(20))  # Neither those that would be refused again, nor their neighbours.
    assert_committed(cluster, app, {(name, 0): 20})


def test_a_shutdown_drops_what_waits_for_a_result_that_will_not_come(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, out, release = topic(), topic("out"), threading.Event()
    done: Collected[int] = Collected()
    app = new_app(cluster)

    @app.on(
        name, output=out, ordered=True, concurrency=awoke.by_key(4, in_flight=50), retry=awoke.Retry(backoff_s=(60, 60))
    )
    def handle(message: awoke.Message[bytes]) -> bytes:
        if message.offset == 1:
            raise ValueError("again in a minute")
        done.add(message.offset)
        return message.value

    send_keyed(cluster, name, numbered(20, 20))
    probe = awoke_run(app)
    probe.rest()
    assert (len(done.items), [each.offset for each in probe.failures]) == (19, [1])
    probe.stop()
    release.set()
    assert_committed(cluster, app, {(name, 0): 1})
    assert [message.value for message in read_all(cluster, out)] == [b"0"]
