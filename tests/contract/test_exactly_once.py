"""Exactly once from topic to topic: results, dead letters and offsets are one transaction. On real Kafka only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest

import awoke
from awoke.observe.events import JobFailed
from awoke.payloads import dead_letter
from awoke.testing import Runs, running
from tests.contract.test_consume import assert_committed, committed, new_app, send
from tests.contract.test_transactions import values
from tests.support.clusters import Cluster, read_all, reading, unique
from tests.support.waiting import Collected, elapse

CreateTopic = Callable[..., str]
HELD_UP_S = 2.0
SOON = awoke.Retry(attempts=2, backoff_s=(0.01, 0.02))


def wait_for_values(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """Returns the values of a topic, as soon as it has `count` of them."""
    seen: list[bytes] = []
    with reading(cluster, topic) as reader:
        for message in reader:
            seen.append(message.value or b"")
            if len(seen) == count:
                break
    return seen


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async"])
@pytest.mark.parametrize(
    "concurrency", [None, awoke.by_key(8), awoke.unordered(8)], ids=["partition", "by_key", "unordered"]
)
def test_each_message_has_one_result(
    cluster: Cluster, topic: CreateTopic, is_async: bool, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    name, output, app = topic("in", 3), topic("out", 2), new_app(cluster)

    def double(message: awoke.Message[int]) -> int:
        return 2 * message.value

    async def double_async(message: awoke.Message[int]) -> int:
        return 2 * message.value

    route = app.on(name, output=output, value=int, exactly_once=True, concurrency=concurrency)
    route(double_async if is_async else double)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for number in range(500):
            producer.produce(name, number, key=b"%d" % (number % 20))
    awoke_run(app).idle()
    assert sorted(int(value) for value in values(cluster, output)) == [2 * number for number in range(500)]
    assert sum(committed(cluster, app).values()) == 500


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async"])
@pytest.mark.parametrize("concurrency", [None, awoke.by_key(4)], ids=["partition", "by_key"])
def test_a_failure_in_the_middle_repeats_no_result(
    cluster: Cluster, topic: CreateTopic, is_async: bool, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    name, output, dead, app = topic("in"), topic("out"), topic("dead"), new_app(cluster)

    def handle(message: awoke.Message[bytes]) -> bytes:
        if message.value == b"bad" or (message.value == b"later" and message.attempt == 1):
            raise ValueError("no good")
        return message.value

    async def handle_async(message: awoke.Message[bytes]) -> bytes:
        return handle(message)

    route = app.on(name, output=output, exactly_once=True, retry=SOON, dead_letter=dead, concurrency=concurrency)
    route(handle_async if is_async else handle)
    send(cluster, name, [b"1", b"later", b"2", b"bad", b"3"], key=b"key")
    probe = awoke_run(app)
    probe.idle()
    seen, (letter,) = values(cluster, output), values(cluster, dead)
    assert (seen, letter) == ([b"1", b"later", b"2", b"3"], b"bad")
    assert [(each.offset, each.attempt) for each in probe.failures] == [(1, 1), (3, 1), (3, 2)]
    assert_committed(cluster, app, {(name, 0): 5})
    origin = dead_letter.origin(read_all(cluster, dead)[0])
    assert origin is not None
    assert (origin.offset, origin.group) == (3, probe.runner.group)


def test_what_is_skipped_is_committed(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, output, app = topic("in"), topic("out"), new_app(cluster)
    skipped = Collected[awoke.Event]()
    app.events.subscribe("message.skipped", skipped.add)
    retry = awoke.Retry(attempts=1, on_exhausted="skip")

    @app.on(name, output=output, exactly_once=True, retry=retry)
    def refuse(message: awoke.Message[bytes]) -> bytes | None:
        if message.value == b"bad":
            raise ValueError("no good")
        return None

    send(cluster, name, [b"1", b"bad"])
    probe = awoke_run(app)
    probe.idle()
    (event,), (failure,) = skipped.items, probe.failures
    assert event.fields["offset"] == failure.offset == 1
    assert values(cluster, output) == []
    assert_committed(cluster, app, {(name, 0): 2})


def test_a_result_that_the_broker_refuses_fails_its_message_alone(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, output, dead = topic("in"), topic("out"), topic("dead")
    app = new_app(cluster, kafka={"message.max.bytes": 10_000_000})  # More than the broker takes.

    @app.on(
        name,
        output=output,
        exactly_once=True,
        retry=SOON,
        dead_letter=dead,
        batch=awoke.Batching(max_messages=1),
        concurrency=awoke.unordered(4),
    )
    def grow(message: awoke.Message[bytes]) -> bytes:
        return b"x" * 5_000_000 if message.value == b"large" else message.value

    send(cluster, name, [b"1", b"large", b"2", b"3"])
    probe = awoke_run(app)
    probe.idle()
    assert values(cluster, dead) == [b"large"]
    assert sorted(values(cluster, output)) == [b"1", b"2", b"3"]
    assert {each.offset for each in probe.failures} == {1}
    assert_committed(cluster, app, {(name, 0): 4})


def test_a_consumer_sends_within_its_own_transactions(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, output, app = topic("in"), topic("out"), new_app(cluster)

    @app.consumer(name, exactly_once=True, retry=awoke.Retry(backoff_s=(0.01, 0.02)))
    class Sum(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            with self.transaction() as t:
                t.produce(output, batch[0].value)
                t.mark(batch[0])
            with self.transaction() as t:
                for message in batch:
                    t.produce(output, message.value + b"!")
                if batch.attempt == 1:
                    raise RuntimeError("after produce")

    send(cluster, name, [b"1", b"2"])
    probe = awoke_run(app)
    probe.idle()
    # The first was marked; the second block sent nothing when it raised.
    seen = values(cluster, output)
    assert seen[0] == b"1"
    assert len(seen) == 3
    assert [each.attempt for each in probe.failures] == [1]
    assert_committed(cluster, app, {(name, 0): 2})


def test_what_a_job_sent_that_is_tried_again_meanwhile_is_seen_once(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    """A job that fails while its transaction ends has its batch tried again: only one transaction may take effect."""
    name, output, app = topic("in"), topic("out"), new_app(cluster)

    @app.consumer(name, exactly_once=True, retry=awoke.Retry(backoff_s=(0.01, 0.02)))
    class Early(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            transaction = self.transaction()
            transaction.produce(output, batch[0].value)
            ending = asyncio.ensure_future(transaction.__aexit__(None, None, None))
            await asyncio.sleep(0)  # It has been submitted; the first one waits for its producer's id.
            if batch.attempt == 1:
                ending.cancel()
                raise RuntimeError("in no mood to wait")
            await ending

    send(cluster, name, [b"1"])
    probe = awoke_run(app)
    # Either one: the first may be committed before it can be given up, at any moment until the job is tried again.
    probe.idle()
    assert len(probe.failures) == 1
    assert values(cluster, output) == [b"1"]
    assert_committed(cluster, app, {(name, 0): 1})


def test_a_job_whose_transaction_is_committed_while_it_fails_lets_its_partition_go_on(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    """The commit comes when it is decided that the batch is tried again: nothing is left of it to be tried."""
    name, output, app, over = topic("in"), topic("out"), new_app(cluster), Collected[bytes]()

    def wait_for_commit(event: JobFailed) -> None:
        wait_for_values(cluster, output, 1)

    app.events.subscribe(JobFailed, wait_for_commit)

    @app.consumer(name, exactly_once=True, retry=awoke.Retry(backoff_s=(0.01, 0.02)))
    class Early(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            transaction = self.transaction()
            transaction.produce(output, batch[0].value)
            ending = asyncio.ensure_future(transaction.__aexit__(None, None, None))
            await asyncio.sleep(0)  # It has been submitted.
            if batch[0].value == b"1":
                raise RuntimeError("after it was submitted")
            await ending
            over.add(batch[0].value)

    send(cluster, name, [b"1"])
    probe = awoke_run(app)
    probe.idle()
    assert len(probe.failures) == 1
    send(cluster, name, [b"2"])
    probe.idle()
    assert values(cluster, output) == [b"1", b"2"]
    assert_committed(cluster, app, {(name, 0): 2})


def test_an_async_consumer_awaits_its_transaction(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, output, app, after = topic("in"), topic("out"), new_app(cluster), Collected[int]()

    @app.consumer(name, exactly_once=True)
    class Copy(awoke.Consumer):
        async def consume(self, batch: awoke.Batch[bytes]) -> None:
            async with self.transaction() as t:
                for message in batch:
                    t.produce(output, message.value, key=message.key)
            after.add(len(values(cluster, output)))

    send(cluster, name, [b"1", b"2"])
    awoke_run(app).idle()
    assert values(cluster, output) == [b"1", b"2"]
    assert_committed(cluster, app, {(name, 0): 2})


def test_wrong_use_is_refused(cluster: Cluster, topic: CreateTopic) -> None:
    app = awoke.App("wrong")

    def function(message: awoke.Message[bytes]) -> bytes:
        return message.value

    with pytest.raises(awoke.ConfigError, match="there is none"):
        app.on("a", exactly_once=True)(function)
    with pytest.raises(awoke.ConfigError, match="ordered=True"):
        app.on("a", output="b", exactly_once=True, ordered=True, concurrency=awoke.by_key(2))(function)

    class Consumer(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Any]) -> None:
            self.transaction()

    with pytest.raises(awoke.ConfigError, match=r"self\.transaction"):
        app.consumer("a", exactly_once=True, offsets="manual")(Consumer)
    name, other, failed = topic(), topic(), Collected[awoke.Event]()
    plain = new_app(cluster)
    plain.events.subscribe("job.failed", failed.add)
    plain.consumer(name)(Consumer)
    send(cluster, name, [b"x"])
    with running(plain):
        (event,) = failed.wait_for(1)
    assert "exactly_once=True" in str(event.fields["error"])

    class Committing(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Any]) -> None:
            self.mark_sync(batch[0])

    strict, refused = new_app(cluster), Collected[awoke.Event]()
    strict.events.subscribe("job.failed", refused.add)
    strict.consumer(name, exactly_once=True)(Committing)
    with running(strict):
        (event,) = refused.wait_for(1)
    assert "in transactions only" in str(event.fields["error"])
    dirty = new_app(cluster, kafka={"isolation.level": "read_uncommitted"})
    dirty.on(name, output=other, exactly_once=True)(function)
    with pytest.raises(awoke.ConfigError, match=r"isolation\.level"), running(dirty):
        pass


def test_an_aborted_message_is_not_processed(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, output, app = topic("in"), topic("out"), new_app(cluster)
    app.on(name, output=output, exactly_once=True)(lambda message: message.value)
    with awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("id")) as producer:
        with pytest.raises(ZeroDivisionError), producer.transaction() as t:
            t.produce(name, b"aborted").wait(30)
            raise ZeroDivisionError
        with producer.transaction() as t:
            t.produce(name, b"committed")
    awoke_run(app).idle()
    assert values(cluster, output) == [b"committed"]


def test_two_processes_with_one_name_do_not_fight(cluster: Cluster, topic: CreateTopic) -> None:
    name, output, has_failed = topic("in", 2), topic("out"), threading.Event()
    first = new_app(cluster, transactional_id=unique("id"))
    second = awoke.App(first.name, bootstrap_servers=cluster.bootstrap_servers)
    second.use(transactional_id=first.settings.transactional_id)
    for app in (first, second):
        app.on(name, output=output, exactly_once=True)(lambda message: message.value)
    with running(first) as one:
        send(cluster, name, [b"1"], partition=0)
        wait_for_values(cluster, output, 1)
        one._on_fatal_error = lambda error: has_failed.set()
        with running(second):
            for number in range(240):
                send(cluster, name, [b"%d" % number], partition=number % 2)
                if has_failed.wait(0.25):
                    break
            assert isinstance(one.fatal_error, awoke.ProducerFenced)


@pytest.mark.parametrize(
    ("cluster", "concurrency"),
    [("mock", None), ("real", awoke.by_key(8))],
    ids=["mock-partition", "real-by_key"],
    indirect=["cluster"],
)
def test_offsets_in_an_open_transaction_are_waited_for_while_members_join(
    cluster: Cluster, topic: CreateTopic, concurrency: awoke.Concurrency | None, awoke_run: Runs
) -> None:
    # Given messages that have been done, and another producer's transaction that has not ended and holds their offsets
    group, name, output = unique("group"), topic("in", 2), topic("out", 1)

    def member() -> awoke.App:
        app = awoke.App(group, bootstrap_servers=cluster.bootstrap_servers)
        app.on(name, output=output, exactly_once=True, concurrency=concurrency)(lambda message: message.value)
        return app

    def produce(values: range) -> None:
        with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
            awoke.wait_all([producer.produce(name, b"%d" % each, partition=each % 2) for each in values], 30)

    produce(range(100))
    first = awoke_run(member())
    first.idle()
    first.stop()
    other = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": unique("other")}
    )
    other.init_transactions(30)
    other.begin_transaction()
    reader = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    done = [confluent_kafka.TopicPartition(name, each, 50) for each in range(2)]
    other.send_offsets_to_transaction(done, reader.consumer_group_metadata(), 30)

    # When members come while it lasts
    stays = awoke_run(member(), may_join_later=True)
    comes = awoke_run(member(), may_join_later=True)
    elapse(HELD_UP_S / 2, "a member comes and goes while the other transaction holds the offsets up")
    comes.stop()  # It takes 5 s: librdkafka's goodbye waits behind its request to join.
    other.commit_transaction(30)
    produce(range(100, 200))

    # Then nothing is done again, and what is new is done
    stays.idle()
    assert sorted(map(int, values(cluster, output))) == list(range(200))
    reader.close()
