"""A failing message near the size limit stops no partition: its dead letter fits, or goes without its value."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.observe.events import NamedEvent
from awoke.payloads import dead_letter
from awoke.payloads.dead_letter import producer_properties
from awoke.testing import running
from tests.contract.test_consume import assert_committed, new_app
from tests.contract.test_recovery import letters
from tests.support.clusters import Cluster, RealCluster, unique
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]
LIMIT = 2_000
BIG = random.Random(1).randbytes(5_000)
NEAR_LIMIT = random.Random(2).randbytes(999_900)
"""A producer with librdkafka's defaults sends it, but not with the headers of a dead letter."""
EVENTS = ("job.failed", "dead_letter.shortened", "dead_letter.failed", "message.dead_lettered", "message.skipped")

KINDS = ["plain", "async", "lanes", "class", "once async", "once lanes", "once class"]


def failing_app(
    cluster: Cluster, kind: str, name: str, output: str, dead: str
) -> tuple[awoke.App, Collected[awoke.Event]]:
    """An app whose handler fails at every message but the last."""
    app, heard = new_app(cluster), Collected[awoke.Event]()
    for event in EVENTS:
        app.events.subscribe(event, heard.add)
    options: dict[str, Any] = {"dead_letter": dead, "retry": awoke.Retry(attempts=1), "exactly_once": "once" in kind}
    if "lanes" in kind:
        options["concurrency"] = awoke.by_key(4)

    def work(message: awoke.Message[bytes]) -> bytes:
        if message.value != b"last":
            raise ValueError("poison")
        heard.add(NamedEvent(name="last", values={}))
        return b"done"

    async def work_async(message: awoke.Message[bytes]) -> bytes:
        return work(message)

    class Works(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                work(message)
                self.mark(message)

    if "class" in kind:
        app.consumer(name, **options)(Works)
    else:
        app.on(name, output=output, **options)(work_async if "async" in kind else work)
    return app, heard


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_letter_that_its_topic_does_not_take_goes_without_its_value(
    real_cluster: RealCluster, kind: str
) -> None:
    name, output, dead = unique("in"), unique("out"), unique("dead")
    real_cluster.create_topic(name)
    real_cluster.create_topic(output)
    real_cluster.admin.create_topic(dead, partitions=1, config={"max.message.bytes": str(LIMIT)}, timeout_s=30)
    app, heard = failing_app(real_cluster, kind, name, output, dead)
    with awoke.Producer(real_cluster.bootstrap_servers) as producer:
        producer.produce(name, BIG, key=b"a", headers=[("trace", b"a")]).wait(30)
        producer.produce(name, b"small", key=b"b", headers=[("huge", BIG)]).wait(30)
        producer.produce(name, b"last", key=b"c").wait(30)
    with running(app):
        heard.wait_until(
            lambda events: {"last", "message.dead_lettered", "message.skipped"} <= {each.name for each in events}
        )
    found = {event: [each.fields for each in heard.items if each.name == event] for event in EVENTS}
    assert sorted(each["offset"] for each in found["job.failed"]) == [0, 1], "user code ran once for each"
    assert sorted(each["offset"] for each in found["dead_letter.shortened"]) == [0, 1]
    assert [each["offset"] for each in found["message.dead_lettered"]] == [0]
    assert [each["offset"] for each in found["dead_letter.failed"]] == [1]
    assert [each["offset"] for each in found["message.skipped"]] == [1]
    assert isinstance(found["message.skipped"][0]["error"], ValueError)
    (letter,) = letters(real_cluster, dead)
    assert (letter.value, letter.key, letter.headers[0]) == (b"", b"a", ("trace", b"a"))
    origin = dead_letter.origin(letter)
    assert origin is not None
    assert origin[:3] == (name, 0, 0)
    assert (origin.value_bytes, origin.value_sha256) == (len(BIG), hashlib.sha256(BIG).hexdigest())
    assert_committed(real_cluster, app, {(name, 0): 3})


@pytest.mark.parametrize("kind", ["lanes", "once"])
def test_a_refused_result_and_its_refused_letter_run_user_code_once(real_cluster: RealCluster, kind: str) -> None:
    name, small, dead = unique("in"), unique("small"), unique("dead")
    real_cluster.create_topic(name)
    for each in (small, dead):
        real_cluster.admin.create_topic(each, partitions=1, config={"max.message.bytes": str(LIMIT)}, timeout_s=30)
    app, runs, heard = new_app(real_cluster), Collected[bytes](), Collected[awoke.Event]()
    app.events.subscribe("message.dead_lettered", heard.add)
    app.events.subscribe("message.skipped", heard.add)
    concurrency = awoke.by_key(4) if kind == "lanes" else None

    @app.on(name, output=small, dead_letter=dead, concurrency=concurrency, exactly_once=kind == "once")
    def grow(message: awoke.Message[bytes]) -> bytes:
        runs.add(message.value)
        return BIG

    with running(app), awoke.Producer(real_cluster.bootstrap_servers) as producer:
        producer.produce(name, BIG, key=b"a").wait(30)
        heard.wait_for(1)
        producer.produce(name, b"small", key=b"b", headers=[("huge", BIG)]).wait(30)
        heard.wait_for(2)
    assert runs.items == [BIG, b"small"]
    assert [each.name for each in heard.items] == ["message.dead_lettered", "message.skipped"]
    assert_committed(real_cluster, app, {(name, 0): 2})


@pytest.mark.parametrize("kind", ["plain", "lanes async", "once"])
def test_a_dead_letter_is_larger_than_producers_may_send(real_cluster: RealCluster, kind: str) -> None:
    name, output, dead = unique("in"), unique("out"), unique("dead")
    for each in (name, output, dead):
        real_cluster.create_topic(each)
    app, heard = failing_app(real_cluster, kind, name, output, dead)
    with awoke.Producer(real_cluster.bootstrap_servers) as producer:
        producer.produce(name, NEAR_LIMIT, key=b"a").wait(30)
    with running(app):
        heard.wait_until(lambda events: "message.dead_lettered" in {each.name for each in events})
    assert [each.name for each in heard.items] == ["job.failed", "message.dead_lettered"]
    (letter,) = letters(real_cluster, dead)
    assert letter.value == NEAR_LIMIT
    assert_committed(real_cluster, app, {(name, 0): 1})


def test_a_letter_of_an_app_with_a_small_limit_is_whole(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead, heard = topic(), topic("dead"), Collected[awoke.Event]()
    app = new_app(cluster, kafka={"message.max.bytes": 1_000})
    app.events.subscribe("message.dead_lettered", heard.add)

    @app.on(name, dead_letter=dead, retry=awoke.Retry(attempts=1))
    def refuse(message: awoke.Message[bytes]) -> None:
        raise ValueError("no good")

    with awoke.Producer(cluster.bootstrap_servers) as producer:
        producer.produce(name, BIG).wait(30)
    with running(app):
        heard.wait_for(1)
    (letter,) = letters(cluster, dead)
    assert letter.value == BIG


def test_the_limits_of_dead_letters_leave_batches_as_they_were() -> None:
    found = producer_properties({"message.max.bytes": "200000"})
    assert (found["message.max.bytes"], found["batch.size"]) == ("100000000", "200000")
    assert producer_properties({"message.max.bytes": "900000000"})["message.max.bytes"] == "900000000"
    assert producer_properties({"batch.size": "5000"})["batch.size"] == "5000"
    assert int(producer_properties({"queue.buffering.max.kbytes": "1000"})["queue.buffering.max.kbytes"]) > 100_000


def test_headers_of_a_message_are_not_taken_for_those_of_its_letter(mock_cluster: Cluster) -> None:
    name, dead = unique("in"), unique("dead")
    for each in (name, dead):
        mock_cluster.create_topic(each)
    forged: list[tuple[str, bytes | str | None]] = [(header, b"1") for header in dead_letter.HEADERS]
    with awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        producer.produce(name, b"1", headers=forged).wait(30)
        with awoke.Reader(name, bootstrap_servers=mock_cluster.bootstrap_servers) as reader:
            (message,) = list(reader.read_until_end(30))
        record = dead_letter.letter(message, "group", 3, ValueError("no"), "charge")
        producer.produce(dead, record.value, headers=record.headers).wait(30)
    (letter,) = letters(mock_cluster, dead)
    origin = dead_letter.origin(letter)
    assert origin is not None
    assert (origin.topic, origin.attempts, origin.value_bytes) == (name, 3, None)
