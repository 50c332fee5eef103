"""Messages whose handler fails: tried again, exhausted, sent to a dead letter topic, or left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.payloads import dead_letter
from awoke.payloads.message import Outgoing
from awoke.testing import Runs
from tests.contract.test_consume import committed, new_app, send
from tests.support.clusters import Cluster, read_all
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]
SOON = awoke.Retry(attempts=3, backoff_s=(0.01, 0.02))


class NoSuchCard(Exception):
    """Not worth another try."""


def letters(cluster: Cluster, topic: str) -> list[awoke.Message[bytes | None]]:
    """Returns the messages of a dead letter topic."""
    return read_all(cluster, topic)


def refuse_letters(message: Outgoing) -> Outgoing:
    """Refuses what an app sends for good, as a broker's policy would."""
    raise awoke.KafkaError("invalid record", 87, "INVALID_RECORD")


@pytest.mark.parametrize("is_async", [False, True])
def test_an_exhausted_message_goes_to_the_dead_letter_topic_as_it_was(
    cluster: Cluster, topic: CreateTopic, is_async: bool, awoke_run: Runs
) -> None:
    name, dead, seen = topic(), topic("dead"), Collected[tuple[bytes, int]]()
    app = new_app(cluster)

    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"bad":
            seen.add((message.value, message.attempt))
            raise ValueError("no good")
        seen.add((message.value, message.attempt))

    async def handle_async(message: awoke.Message[bytes]) -> None:
        handle(message)

    app.on(name, dead_letter=dead, retry=SOON)(handle_async if is_async else handle)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for value in (b"1", b"bad", b"2"):
            producer.produce(name, value, key=b"key", headers=[("trace", b"a"), ("trace", None)]).wait(30)
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == [(b"1", 1), (b"bad", 1), (b"bad", 2), (b"bad", 3), (b"2", 1)]
    assert [each.offset for each in probe.failures] == [1, 1, 1]
    (letter,) = letters(cluster, dead)
    assert (letter.value, letter.key) == (b"bad", b"key")
    assert letter.headers[:2] == [("trace", b"a"), ("trace", None)]
    origin = dead_letter.origin(letter)
    assert origin is not None
    assert origin[:3] == (name, 0, 1)
    assert (origin.group, origin.attempts) == (probe.runner.group, 3)
    assert (origin.error_type, origin.error_text) == ("builtins.ValueError", "no good")
    assert dead_letter.original(letter).headers == [("trace", b"a"), ("trace", None)]


def test_a_dead_letter_is_acknowledged_before_its_offset_moves(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, dead, paused = topic(), topic("dead"), Collected[awoke.Event]()
    app = new_app(cluster)
    app.outgoing(refuse_letters)

    @app.on(name, dead_letter=dead, retry=awoke.Retry(attempts=1, backoff_s=(0.01, 0.02)))
    def refuse(message: awoke.Message[bytes]) -> None:
        raise ValueError("no good")

    send(cluster, name, [b"x" * 2_000])
    app.events.subscribe("partition.paused", paused.add)
    probe = awoke_run(app)
    probe.rest()  # The letter is refused: the message stays.
    assert len(probe.failures) == 1
    paused.wait_for(1)
    probe.stop()
    assert committed(cluster, app) in ({}, {(name, 0): 0})


def test_some_errors_are_not_worth_another_try(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, dead, tries = topic(), topic("dead"), Collected[bytes]()
    app = new_app(cluster)

    @app.on(name, dead_letter=dead, retry=awoke.Retry(backoff_s=(0.01, 0.02), not_on=(NoSuchCard,)))
    def charge(message: awoke.Message[bytes]) -> None:
        tries.add(message.value)
        if message.value == b"card":
            raise NoSuchCard
        if message.value == b"bank" and tries.items.count(b"bank") < 3:
            raise OSError("the bank is closed")

    send(cluster, name, [b"card", b"bank", b"last"])
    probe = awoke_run(app)
    probe.idle()
    assert tries.items == [b"card", b"bank", b"bank", b"bank", b"last"]
    assert [each.offset for each in probe.failures] == [0, 1, 1]
    assert [each.offset for each in probe.dead_letters] == [0]
    assert [message.value for message in letters(cluster, dead)] == [b"card"]


def test_only_what_a_retry_is_for_is_tried_again(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, tries = topic(), Collected[bytes]()
    app = new_app(cluster)

    @app.on(name, retry=awoke.Retry(on=(OSError,), on_exhausted="skip", backoff_s=(0.01, 0.02)))
    def charge(message: awoke.Message[bytes]) -> None:
        tries.add(message.value)
        if message.value == b"bad":
            raise NoSuchCard

    send(cluster, name, [b"bad", b"last"])
    probe = awoke_run(app)
    probe.idle()
    assert tries.items == [b"bad", b"last"]
    assert [type(each.error) for each in probe.failures] == [NoSuchCard]


def test_a_message_behind_a_skipped_one_is_tried_for_the_first_time(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, attempts = topic(), Collected[int]()
    app = new_app(cluster)

    @app.on(name, retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.02), on_exhausted="skip"))
    def count(message: awoke.Message[bytes]) -> None:
        attempts.add(message.attempt)
        if message.value == b"bad":
            raise ValueError

    send(cluster, name, [b"bad", b"good"])
    probe = awoke_run(app)
    probe.idle()
    assert attempts.items == [1, 2, 1]
    assert [each.offset for each in probe.failures] == [0, 0]


def test_a_partition_may_be_left_alone_until_it_is_resumed(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, seen, paused = topic(partitions=2), Collected[Any](), Collected[awoke.Event]()
    app, is_repaired = new_app(cluster), threading.Event()
    app.events.subscribe("partition.paused", paused.add)

    @app.on(name, retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.02), on_exhausted="pause"))
    def handle(message: awoke.Message[bytes]) -> None:
        if message.value == b"bad" and not is_repaired.is_set():
            raise ValueError("no good")
        seen.add(message.value)

    probe = awoke_run(app)
    probe.send(name, b"bad", partition=0)
    (event,) = paused.wait_for(1)
    assert (event.fields["topic"], event.fields["partition"]) == (name, 0)
    probe.send(name, b"behind", partition=0)
    probe.send(name, b"beside", partition=1)
    probe.rest()
    assert seen.items == [b"beside"]
    (reason,) = probe.runner.health().reasons
    assert f"{name}[0] is paused" in reason
    assert f"awoke resume MODULE:APP {name} 0" in reason
    is_repaired.set()
    assert app.resume(name, 0)
    probe.idle()
    assert seen.items == [b"beside", b"bad", b"behind"]
    assert [each.attempt for each in probe.failures] == [1, 2]
    assert probe.runner.health().is_healthy
    assert not app.resume(name, 0)


def test_a_consumer_that_ends_the_process_ends_the_app_in_order(cluster: Cluster, topic: CreateTopic) -> None:
    name, errors = topic(), Collected[BaseException]()
    app = new_app(cluster)

    @app.on(name)
    def leave(message: awoke.Message[bytes]) -> None:
        raise SystemExit(7)

    send(cluster, name, [b"value"])
    server = awoke.AppRunner(app, on_fatal_error=errors.add)
    server.start()
    try:
        (error,) = errors.wait_for(1)
    finally:
        server.stop()
    assert isinstance(error, SystemExit)
    assert committed(cluster, app) in ({}, {(name, 0): 0})


@pytest.mark.parametrize("concurrency", [None, awoke.by_key(2)], ids=["partition", "by_key"])
def test_a_failure_after_all_is_marked_is_seen_and_nothing_is_tried_again(
    cluster: Cluster, topic: CreateTopic, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[bytes]()

    @app.consumer(name, concurrency=concurrency, dead_letter=topic("dead"), retry=SOON)
    class Mark(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                seen.add(message.value)
                self.mark(message)
            raise ValueError("too late")

    send(cluster, name, [b"1"])
    probe = awoke_run(app)
    probe.idle()
    send(cluster, name, [b"2"])
    probe.idle()
    assert ([each.offset for each in probe.failures], probe.retries) == ([0, 1], [])
    assert seen.items == [b"1", b"2"]
