"""The flow of messages, and which of them come: filling batches, rates, delays, expiry, filters, pause, seek, start."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import awoke
from awoke.testing import Runs, VirtualClock, running
from tests.contract.test_consume import assert_committed, new_app, send
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_batch_waits_for_more_messages(cluster: Cluster, topic: CreateTopic) -> None:
    name, sizes = topic(), Collected[int]()
    app = new_app(cluster)

    @app.consumer(name, batch=awoke.Batching(max_messages=5, max_wait_s=60))
    class Sizes(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            sizes.add(len(batch))

    with running(app), awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for _ in range(10):
            producer.produce(name, b"value").wait(30)
        assert sizes.wait_for(2) == [5, 5]  # The batch did not wait for the minute.


def test_a_batch_waits_no_longer_than_it_may(cluster: Cluster, topic: CreateTopic) -> None:
    name, sizes = topic(), Collected[int]()
    app = new_app(cluster)

    @app.consumer(name, batch=awoke.Batching(max_messages=5, max_wait_s=0.3))
    class Sizes(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            sizes.add(len(batch))

    with running(app), awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for _ in range(3):
            producer.produce(name, b"value").wait(30)
        assert sum(sizes.wait_until(lambda items: sum(items) == 3)) == 3


def test_a_rate_holds_for_all_partitions_together(
    cluster: Cluster, topic: CreateTopic, clock: VirtualClock | None, awoke_run: Runs
) -> None:
    name, moments = topic(partitions=2), Collected[float]()
    app = new_app(cluster)
    now_s = time.monotonic if clock is None else lambda: clock.now_s

    @app.on(name, flow=awoke.Flow(per_s=50))
    def note(message: awoke.Message[bytes]) -> None:
        moments.add(now_s())

    for partition in (0, 1):
        send(cluster, name, [b"value"] * 20, partition=partition)
    probe = awoke_run(app)
    if clock is not None:
        clock.run_until_idle()
    probe.idle()
    seen = moments.items
    # 5 at once, then 50 a second: never earlier, however slow the machine.
    assert seen[-1] - seen[0] >= (40 - 5) / 50 - 0.05


def test_a_delayed_topic_is_processed_when_its_messages_are_old_enough(cluster: Cluster, topic: CreateTopic) -> None:
    name, ages_ms = topic(), Collected[float]()
    app = new_app(cluster)

    @app.on(name, flow=awoke.Flow(delay_s=0.5))
    def note(message: awoke.Message[bytes]) -> None:
        ages_ms.add(now_ms() - (message.timestamp_ms or 0))

    with running(app), awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        began_ms = now_ms()
        producer.produce(name, b"old", timestamp_ms=began_ms - 10_000).wait(30)
        producer.produce(name, b"new", timestamp_ms=began_ms).wait(30)
        old, new = ages_ms.wait_for(2)
    assert old >= 10_000
    assert new >= 500


def test_messages_that_are_too_old_or_not_wanted_are_passed_over(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, seen, told = topic(), Collected[bytes](), Collected[awoke.Event]()
    app = new_app(cluster)
    app.events.subscribe("messages.expired", told.add)
    app.events.subscribe("messages.filtered", told.add)

    @app.consumer(name, flow=awoke.Flow(expire_s=60, where=lambda message: message.key != b"other"))
    class Wanted(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message, value in zip(batch, batch.values(), strict=True):
                assert message.value == value
                seen.add(value)

    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        sent = [
            producer.produce(name, b"late", timestamp_ms=now_ms() - 120_000),
            producer.produce(name, b"1"),
            producer.produce(name, b"not mine", key=b"other"),
            producer.produce(name, b"2"),
            producer.produce(name, b"late", timestamp_ms=now_ms() - 120_000),
        ]
        awoke.wait_all(sent, 30)
    awoke_run(app).idle()
    assert seen.items == [b"1", b"2"]
    assert_committed(cluster, app, {(name, 0): 5})


def test_a_consumer_pauses_and_goes_on(cluster: Cluster, topic: CreateTopic) -> None:
    name, seen, ticks, consumers = topic(), Collected[bytes](), Collected[int](), []
    app = new_app(cluster)

    @app.consumer(name, batch=awoke.Batching(max_messages=1), tick_every_s=0.02)
    class Pausing(awoke.Consumer):
        def assigned(self) -> None:
            consumers.append(self)

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            seen.add(batch[0].value)
            if batch[0].value == b"1":
                self.pause()

        def tick(self) -> None:
            ticks.add(len(seen.items))

    send(cluster, name, [b"0", b"1", b"2"])
    with running(app):
        seen.wait_for(2)
        ticks.wait_until(lambda items: len(items) >= 3 and items[-1] == 2)  # Time goes on, messages don't.
        assert seen.items == [b"0", b"1"]
        consumers[0].resume()
        assert seen.wait_for(3) == [b"0", b"1", b"2"]


def test_a_consumer_seeks_back_and_forth(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, seen = topic(), Collected[int]()
    app = new_app(cluster)

    @app.consumer(name, batch=awoke.Batching(max_messages=1))
    class Seeking(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            offset = batch.first_offset
            seen.add(offset)
            if seen.items == [0, 1]:
                self.seek(7)
            elif seen.items[-1] == 8 and seen.items.count(8) == 1:
                self.seek("earliest")

    send(cluster, name, [b"value"] * 10)
    awoke_run(app, may_repeat=True).idle()
    assert seen.items == [0, 1, 7, 8, *range(10)]
    assert_committed(cluster, app, {(name, 0): 10})


def test_a_seek_that_goes_back_is_committed(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, seen, consumers = topic(), Collected[int](), []
    app = new_app(cluster)

    @app.consumer(name)
    class Seeking(awoke.Consumer):
        def assigned(self) -> None:
            consumers.append(self)

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            seen.add(batch.last_offset)
            if batch.first_offset == 2:
                self.pause()

    send(cluster, name, [b"value"] * 10)
    probe = awoke_run(app, may_repeat=True)
    probe.idle()
    consumers[0].commit(30)
    consumers[0].seek(2)
    probe.idle()
    assert seen.items.count(9) == 2
    assert consumers[0].committed() is not None
    assert_committed(cluster, app, {(name, 0): 10})


def test_a_seek_to_a_time(cluster: Cluster, awoke_run: Runs) -> None:
    name, seen = unique("timed"), Collected[int]()
    cluster.create_topic(name)
    app, noon = new_app(cluster), datetime.now(UTC) - timedelta(hours=1)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for number in range(10):
            timestamp_ms = int(noon.timestamp() * 1_000) + (number - 6) * 1_000
            producer.produce(name, b"value", timestamp_ms=timestamp_ms).wait(30)

    @app.consumer(name, batch=awoke.Batching(max_messages=1))
    class Seeking(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            seen.add(batch.first_offset)
            if batch.first_offset == 0:
                self.seek(noon)

    awoke_run(app).idle()
    assert seen.items == [0, 6, 7, 8, 9]


def test_a_seek_takes_what_it_understands(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, refused = topic(), Collected[str]()
    app = new_app(cluster)

    @app.consumer(name)
    class Wrong(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for to in (-5, "middle", datetime(2026, 1, 1)):
                try:
                    self.seek(to)  # type: ignore[arg-type]
                except awoke.ConfigError as error:
                    refused.add(str(error))

    send(cluster, name, [b"value"])
    awoke_run(app).idle()
    assert len(refused.items) == 3


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), (4, 4), (-3, 7), ("time", 5)])
def test_a_group_without_offsets_starts_where_its_route_says(
    cluster: Cluster, topic: CreateTopic, start: str | int, first: int, awoke_run: Runs
) -> None:
    name, seen = topic(), Collected[int]()
    app = new_app(cluster)
    noon = datetime.now(UTC) - timedelta(hours=1)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for number in range(10):
            moment_ms = int(noon.timestamp() * 1_000) + (number - 5) * 1_000
            producer.produce(name, b"value", timestamp_ms=moment_ms).wait(30)

    @app.on(name, start=noon if start == "time" else start)  # type: ignore[arg-type]
    def note(message: awoke.Message[bytes]) -> None:
        seen.add(message.offset)

    probe = awoke_run(app)
    probe.idle()
    probe.stop()
    assert seen.items == list(range(first, 10))
    seen_again = Collected[int]()
    again = awoke.App(app.name, bootstrap_servers=cluster.bootstrap_servers)

    @again.on(name, start="earliest")
    def note_again(message: awoke.Message[bytes]) -> None:
        seen_again.add(message.offset)

    with running(again), awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        producer.produce(name, b"value").wait(30)
        assert seen_again.wait_for(1) == [10]  # What is committed wins.


def test_wrong_flows_and_starts_are_refused() -> None:
    app = awoke.App("wrong")
    for wrong in (
        lambda: awoke.Flow(per_s=0),
        lambda: awoke.Flow(delay_s=-1),
        lambda: awoke.Batching(max_wait_s=-1),
        lambda: app.on("a", start="middle")(print),  # type: ignore[arg-type]
        lambda: app.on("b", start=datetime(2026, 1, 1))(print),
        lambda: app.on("c", weight=0)(print),
        lambda: app.on("d", max_processing_s=0)(print),
        lambda: app.on("e", dead_letter="e")(print),
        lambda: app.on("f", flows=3)(print),  # type: ignore[call-arg]
    ):
        with pytest.raises(awoke.ConfigError):
            wrong()
