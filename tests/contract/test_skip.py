"""A message that fails and holds up its partition is skipped on demand: the partition goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.testing import running
from tests.contract.test_consume import assert_committed, new_app, send
from tests.contract.test_recovery import refuse_letters
from tests.support.clusters import Cluster
from tests.support.waiting import Collected, became

CreateTopic = Callable[..., str]
SOON = (0.01, 0.02)
FOREVER = awoke.Retry(backoff_s=SOON)
PAUSE = awoke.Retry(attempts=2, backoff_s=SOON, on_exhausted="pause")


class Skipping:
    """An app whose handler fails for values that begin with `bad`, and what is to be seen of it."""

    def __init__(self, cluster: Cluster, name: str, **options: Any) -> None:
        self.app, self.seen = new_app(cluster), Collected[bytes]()
        self.failed, self.skipped = Collected[awoke.Event](), Collected[awoke.Event]()
        self.paused = Collected[awoke.Event]()
        for event, to in (("job.failed", self.failed), ("message.skipped", self.skipped)):
            self.app.events.subscribe(event, to.add)
        self.app.events.subscribe("partition.paused", self.paused.add)
        is_async = options.pop("is_async", False)
        self.app.on(name, **options)(self.handle_async if is_async else self.handle)

    def handle(self, message: awoke.Message[bytes]) -> bytes | None:
        """Fails, or notes the value."""
        if message.value.startswith(b"bad"):
            raise ValueError("no good")
        self.seen.add(message.value)
        return None

    async def handle_async(self, message: awoke.Message[bytes]) -> None:
        """As `handle`."""
        self.handle(message)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_message_that_is_tried_for_ever_is_skipped(cluster: Cluster, topic: CreateTopic, is_async: bool) -> None:
    name = topic()
    send(cluster, name, [b"1", b"bad", b"2"])
    test = Skipping(cluster, name, retry=FOREVER, is_async=is_async)
    with running(test.app):
        test.failed.wait_for(3)
        for wrong in (0, 2):
            assert not test.app.skip(name, 0, wrong), "no other offset holds it up"
        assert not test.app.skip(name, 1, 1)
        assert test.app.blocking(name, 0) == [1]
        assert test.app.skip(name, 0, 1)
        assert test.seen.wait_for(2) == [b"1", b"2"]
        (event,) = test.skipped.wait_for(1)
        assert (event.fields["topic"], event.fields["partition"], event.fields["offset"]) == (name, 0, 1)
        assert "skipped by an operator; it failed with ValueError('no good')" in str(event.fields["error"])
        assert test.app.blocking(name, 0) == []
        assert not test.app.skip(name, 0, 1)
    assert_committed(cluster, test.app, {(name, 0): 3})
    assert not test.app.skip(name, 0, 1), "the app does not run"


def test_a_message_that_has_paused_its_partition_is_skipped_at_once(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    send(cluster, name, [b"bad 1", b"1", b"bad 2", b"2"])
    test = Skipping(cluster, name, retry=PAUSE)
    with running(test.app) as server:
        for count, offset in ((1, 0), (2, 2)):
            test.paused.wait_for(count)
            assert not test.app.skip(name, 0, offset + 1)
            assert test.app.skip(name, 0, offset)
        assert test.seen.wait_for(2) == [b"1", b"2"]
        assert [event.fields["offset"] for event in test.skipped.wait_for(2)] == [0, 2]
        assert server.health().is_healthy
    assert_committed(cluster, test.app, {(name, 0): 4})


def test_a_batch_is_skipped_by_its_first_message(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen, failed = topic(), new_app(cluster), Collected[list[bytes]](), Collected[awoke.Event]()
    app.events.subscribe("job.failed", failed.add)

    @app.consumer(name, retry=FOREVER)
    class Careful(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                if message.value == b"bad":
                    raise ValueError("no good")
                self.mark(message)
            seen.add(batch.values())

    send(cluster, name, [b"1", b"2", b"bad", b"3"])
    with running(app):
        failed.wait_until(lambda events: bool(events) and events[-1].fields["offset"] == 2)
        assert became(lambda: app.blocking(name, 0) == [2]), "the event comes before the failure is noted"
        assert app.skip(name, 0, 2)
        assert seen.wait_until(lambda batches: batches[-1:] == [[b"3"]])
    assert_committed(cluster, app, {(name, 0): 4})


def test_one_key_of_a_partition_is_skipped_and_others_go_on(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for value, key in ((b"bad a", b"a"), (b"bad b", b"b"), (b"1", b"a"), (b"2", b"b"), (b"3", b"c")):
            producer.produce(name, value, key=key).wait(30)
    test = Skipping(cluster, name, retry=FOREVER, concurrency=awoke.by_key(4))
    with running(test.app):
        assert test.seen.wait_for(1) == [b"3"]
        test.failed.wait_until(lambda events: {each.fields["offset"] for each in events} == {0, 1})
        assert became(lambda: test.app.blocking(name, 0) == [0, 1])
        assert not test.app.skip(name, 0, 2)
        assert test.app.skip(name, 0, 1)
        assert test.seen.wait_for(2) == [b"3", b"2"]
        assert test.app.blocking(name, 0) == [0]
        assert test.app.skip(name, 0, 0)
        assert test.seen.wait_for(3) == [b"3", b"2", b"1"]
    assert_committed(cluster, test.app, {(name, 0): 5})


def test_a_message_that_succeeds_in_the_end_is_not_skipped(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[bytes]()

    @app.on(name, retry=FOREVER)
    def handle(message: awoke.Message[bytes]) -> None:
        if message.attempt < 3:
            raise ValueError("not yet")
        seen.add(message.value)

    send(cluster, name, [b"1"])
    with running(app):
        seen.wait_for(1)
        send(cluster, name, [b"2"])
        assert seen.wait_for(2) == [b"1", b"2"], "the first one's job has ended"
        assert not app.skip(name, 0, 0)


def test_a_message_whose_dead_letter_is_refused_is_skipped(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead, once = topic(), topic("dead"), awoke.Retry(attempts=1)
    send(cluster, name, [b"bad", b"1"])
    test = Skipping(cluster, name, dead_letter=dead, retry=once)
    test.app.outgoing(refuse_letters)
    with running(test.app):
        test.paused.wait_for(1)
        assert test.app.skip(name, 0, 0)
        assert test.seen.wait_for(1) == [b"1"]
        test.skipped.wait_for(1)
    assert_committed(cluster, test.app, {(name, 0): 2})


def test_a_message_of_an_exactly_once_route_is_skipped_in_a_transaction(cluster: Cluster, topic: CreateTopic) -> None:
    name, out = topic(), topic("out")
    send(cluster, name, [b"1", b"bad", b"2"])
    test = Skipping(cluster, name, retry=FOREVER, output=out, exactly_once=True)
    with running(test.app):
        test.failed.wait_until(lambda events: bool(events) and events[-1].fields["offset"] == 1)
        assert became(lambda: test.app.skip(name, 0, 1))
        assert test.seen.wait_until(lambda values: values[-1:] == [b"2"])
        test.skipped.wait_for(1)
    assert_committed(cluster, test.app, {(name, 0): 3})


@pytest.mark.parametrize("concurrency", [None, awoke.by_key(4)], ids=["partition", "lanes"])
def test_a_skip_waits_for_no_back_off(
    cluster: Cluster, topic: CreateTopic, concurrency: awoke.Concurrency | None
) -> None:
    name = topic()
    send(cluster, name, [b"1", b"bad", b"2"])
    test = Skipping(cluster, name, retry=awoke.Retry(backoff_s=(3_600.0, 3_600.0)), concurrency=concurrency)
    with running(test.app):
        test.failed.wait_for(1)
        assert became(lambda: test.app.skip(name, 0, 1))
        test.skipped.wait_for(1)
        assert sorted(test.seen.wait_for(2)) == [b"1", b"2"]
