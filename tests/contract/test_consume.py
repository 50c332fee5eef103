"""Consuming: functions, classes, async, order, failure, offsets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import awoke
from awoke.testing import Runs, running
from tests.support.clusters import Cluster, read_all, unique
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]


class Order(msgspec.Struct):
    id: int


def send(cluster: Cluster, topic: str, values: list[object], **more: object) -> None:
    """Send values and wait until they are there. They go together: `wait_all` does not wait for the linger's end."""
    with awoke.Producer(cluster.bootstrap_servers, kafka={**cluster.properties, "linger.ms": 1_000}) as producer:
        awoke.wait_all([producer.produce(topic, value, **more) for value in values], 30)  # type: ignore[arg-type]


def new_app(cluster: Cluster, **settings: Any) -> awoke.App:
    kafka = {**cluster.properties, **settings.pop("kafka", {})}
    return awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, kafka=kafka, **settings)


def committed(cluster: Cluster, app: awoke.App) -> dict[tuple[str, int], int]:
    """Returns the offsets that the app's group has committed."""
    return cluster.admin.group_offsets(app.name)


def assert_committed(cluster: Cluster, app: awoke.App, expected: dict[tuple[str, int], int]) -> None:
    """Checks what the app's group has committed."""
    assert committed(cluster, app) == expected


def test_a_function_gets_every_message_in_order_with_its_typed_value(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int]()

    @app.on(name, value=Order)
    def charge(message: awoke.Message[Order]) -> None:
        seen.add(message.value.id)

    send(cluster, name, [Order(number) for number in range(500)])
    awoke_run(app).idle()
    assert seen.items == list(range(500))


def test_an_async_function_runs_on_the_runtimes_loop(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(partitions=4), new_app(cluster), Collected[str]()
    out = topic("out")

    @app.on(name, output=out)
    async def forward(message: awoke.Message[bytes]) -> bytes:
        await app.producer.produce(out, b"awaited")
        seen.add(threading.current_thread().name)
        return message.value

    send(cluster, name, [b"value"] * 10)
    awoke_run(app).idle()
    assert set(seen.items) == {"awoke-loop"}
    values = [message.value or b"" for message in read_all(cluster, out)]
    assert sorted(values) == [b"awaited"] * 10 + [b"value"] * 10


def test_a_consumer_lives_as_long_as_its_partition_is_assigned(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, told = topic(partitions=2), new_app(cluster), Collected[tuple[str, int, int]]()

    @app.consumer(name)
    class Reporting(awoke.Consumer):
        def assigned(self) -> None:
            told.add(("assigned", self.partition, id(self)))

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            told.add((f"{len(batch.values())} messages", self.partition, id(self)))
            self.commit(10)

        def shutdown(self) -> None:
            told.add(("shutdown", self.partition, id(self)))

    send(cluster, name, [b"value"] * 3, partition=1)
    probe = awoke_run(app)
    probe.idle()
    probe.stop()
    of_one = [(what, instance) for what, partition, instance in told.items if partition == 1]
    assert (of_one[0][0], of_one[-1][0]) == ("assigned", "shutdown")
    assert len({instance for _, instance in of_one}) == 1


def test_a_hook_that_fails_is_tried_again_before_the_first_batch(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, told = topic(), new_app(cluster), Collected[str]()

    @app.consumer(name, retry=awoke.Retry(backoff_s=(0.01, 0.01)))
    class Fragile(awoke.Consumer):
        def assigned(self) -> None:
            told.add("assigned")
            if len(told.items) < 3:
                raise RuntimeError("not yet")
            self.ready = True

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            assert self.ready
            told.add("batch")

    send(cluster, name, [b"value"])
    probe = awoke_run(app)
    probe.idle()
    assert told.items == ["assigned", "assigned", "assigned", "batch"]
    assert {str(each.error) for each in probe.failures} == {"not yet"}


def test_messages_that_are_kept_outlive_the_app(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, kept = topic(), new_app(cluster), Collected[awoke.Message[bytes]]()
    app.on(name)(kept.add)
    send(cluster, name, [str(number) for number in range(10)], key="k", headers={"h": b"1"})
    awoke_run(app).idle()
    assert [message.value for message in kept.items] == [str(number).encode() for number in range(10)]
    assert {(message.key, tuple(message.headers)) for message in kept.items} == {(b"k", (("h", b"1"),))}
    assert bytes(kept.items[3].value_buffer or b"") == b"3"


def test_a_failing_message_is_tried_again_in_its_place(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[tuple[bytes, int]]()

    @app.on(name, retry=awoke.Retry(backoff_s=(0.01, 0.02)))
    def fragile(message: awoke.Message[bytes]) -> None:
        seen.add((message.value, message.attempt))
        if message.value == b"2" and message.attempt < 3:
            raise RuntimeError("not yet")

    send(cluster, name, [b"1", b"2", b"3"])
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == [(b"1", 1), (b"2", 1), (b"2", 2), (b"2", 3), (b"3", 1)]
    assert [(each.offset, each.attempt) for each in probe.failures] == [(1, 1), (1, 2)]


def test_a_batch_that_was_marked_is_tried_again_from_there(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[list[int]]()

    @app.consumer(name, retry=awoke.Retry(backoff_s=(0.01, 0.02)))
    class Marks(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            seen.add(batch.offsets())
            if batch.first_offset == 0:
                self.mark(batch[1])
                raise RuntimeError("halfway")

    send(cluster, name, [b"value"] * 4)
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == [[0, 1, 2, 3], [2, 3]]
    assert [each.offset for each in probe.failures] == [2]


def test_a_value_that_does_not_decode_is_that_messages_error(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[int]()
    skipped: Collected[awoke.Event] = Collected()
    app.events.subscribe("message.skipped", skipped.add)

    @app.on(name, value=Order, retry=awoke.Retry(attempts=2, backoff_s=(0.01, 0.01), on_exhausted="skip"))
    def charge(message: awoke.Message[Order]) -> None:
        seen.add(message.value.id)

    send(cluster, name, [Order(1), b"no json", Order(3)])
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == [1, 3]
    (event,), (failure,) = skipped.items, probe.failures
    error = event.fields["error"]
    assert failure.error is error
    assert isinstance(error, awoke.DecodeError)
    assert (error.topic, error.partition, error.offset) == (name, 0, 1)


def test_a_fatal_error_says_why(cluster: Cluster, topic: CreateTopic) -> None:
    name, app = topic(), new_app(cluster)

    @app.on(name, retry=awoke.Retry(attempts=1))
    def fail(message: awoke.Message[bytes]) -> None:
        raise RuntimeError("never")

    send(cluster, name, [b"value"])
    errors: Collected[BaseException] = Collected()
    server = awoke.AppRunner(app, on_fatal_error=errors.add)
    server.start()
    assert "offset 0 failed once" in str(errors.wait_for(1)[0])
    server.stop()


def test_offsets_stand_after_what_was_done_and_a_restart_goes_on_there(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, seen = topic(partitions=3), new_app(cluster), Collected[bytes]()

    @app.on(name)
    def count(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    send(cluster, name, [str(number).encode() for number in range(300)])
    probe = awoke_run(app)
    probe.idle()
    probe.stop()
    highest: dict[int, int] = {}
    for commit in probe.commits:
        assert commit.offset >= highest.get(commit.partition, 0)
        highest[commit.partition] = commit.offset
    assert sum(highest.values()) == 300
    send(cluster, name, [b"more"] * 5)
    awoke_run(app).idle()
    assert seen.items[300:] == [b"more"] * 5


def test_one_wake_up_is_one_job(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[bytes]()

    @app.on(name)
    def count(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    probe = awoke_run(app)
    server = probe.runner
    for number in range(20):
        send(cluster, name, [b"value"])
        seen.wait_for(number + 1)
    counters = server.counters()["threads"]
    probe.stop()
    assert counters["job_wakes"] <= counters["jobs"]
    assert counters["clock_wakes"] == 0


def test_a_missing_topic_is_named_before_anything_runs(cluster: Cluster) -> None:
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers)
    app.on("nowhere")(print)
    with pytest.raises(awoke.UnknownTopic, match="'nowhere' does not exist"), running(app):
        pass


def test_an_unreachable_broker_is_named_within_the_time() -> None:
    app = awoke.App("app", bootstrap_servers="127.0.0.1:1", startup_timeout_s=0.5)
    app.on("topic")(print)
    with (
        pytest.raises(awoke.BrokerUnreachable, match=r"127\.0\.0\.1:1 .*answered within 0\.5 s.*refused"),
        running(app),
    ):
        pass


@pytest.mark.parametrize("name", ["enable.auto.commit", "enable.auto.offset.store"])
def test_what_belongs_to_awoke_cannot_be_set(cluster: Cluster, topic: CreateTopic, name: str) -> None:
    app = new_app(cluster, kafka={name: "true"})
    app.on(topic())(print)
    with pytest.raises(awoke.ConfigError, match="belongs to awoke"), running(app):
        pass
