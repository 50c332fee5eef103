"""Several consumer groups in one app, and routes that name their partitions, on brokers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import awoke
from awoke.testing import Runs, running
from tests.contract.test_consume import new_app, send
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected, wait_until

CreateTopic = Callable[..., str]
Place = tuple[int, int]

ERROR = ValueError("the ledger is away")


def committed(cluster: Cluster, group: str) -> dict[tuple[str, int], int]:
    """Returns what a group has committed."""
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        return admin.group_offsets(group)


def fill(cluster: Cluster, topic: str, partitions: int, each: int) -> set[Place]:
    """Sends messages to each partition; returns their places."""
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        handles = [
            producer.produce(topic, b"%d" % number, key=b"%d" % number, partition=partition)
            for partition in range(partitions)
            for number in range(each)
        ]
        awoke.wait_all(handles, 30)
    return {(partition, number) for partition in range(partitions) for number in range(each)}


def note_in(seen: Collected[Place]) -> Callable[[awoke.Message[bytes]], None]:
    """Returns a handler that notes the place of each message."""

    def note(message: awoke.Message[bytes]) -> None:
        seen.add((message.partition, message.offset))

    return note


def route_of(kind: str, app: awoke.App, topic: str, seen: Collected[Place], **options: Any) -> None:
    """Adds a route of one kind that notes the place of each message."""
    if kind == "def":
        app.on(topic, **options)(note_in(seen))
    elif kind == "lanes":
        app.on(topic, concurrency=awoke.by_key(4), **options)(note_in(seen))
    elif kind == "async def":

        async def note(message: awoke.Message[bytes]) -> None:
            seen.add((message.partition, message.offset))

        app.on(topic, **options)(note)
    else:

        class Notes(awoke.Consumer):
            def consume(self, batch: awoke.Batch[bytes]) -> None:
                for message in batch:
                    seen.add((message.partition, message.offset))

        app.consumer(topic, **options)(Notes)


KINDS = pytest.mark.parametrize("kind", ["def", "lanes", "async def", "class"])


@KINDS
def test_each_group_gets_all_messages_of_a_topic_and_commits_its_own_offsets(
    cluster: Cluster, topic: CreateTopic, kind: str, awoke_run: Runs
) -> None:
    name, app, audit = topic(partitions=3), new_app(cluster), unique("audit")
    own, other = Collected[Place](), Collected[Place]()
    route_of("def", app, name, own)
    route_of(kind, app, name, other, group=audit)
    places = fill(cluster, name, 3, 40)
    probe = awoke_run(app)
    server = probe.runner
    probe.idle()
    assert set(own.items) == set(other.items) == places
    assert [(each.group, len(each.partitions())) for each in server.joining] == [(app.name, 3), (audit, 3)]
    assert {each["group"] for each in server.status()["partitions"]} == {app.name, audit}
    assert (len(own.items), len(other.items)) == (120, 120)
    ends = {(name, partition): 40 for partition in range(3)}
    assert committed(cluster, app.name) == committed(cluster, audit) == ends


def test_events_and_dead_letters_name_the_group(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, dead, app, audit = topic(), topic("dead"), new_app(cluster), unique("audit")
    assigned, letters = Collected[awoke.events.PartitionsAssigned](), Collected[str]()
    app.events.subscribe(awoke.events.PartitionsAssigned, assigned.add)

    @app.on(name, group=audit, dead_letter=dead, retry=awoke.Retry(attempts=1))
    def refuse(_message: awoke.Message[bytes]) -> None:
        raise ERROR

    @app.on(dead)
    def note(message: awoke.Message[bytes]) -> None:
        origin = awoke.dead_letter.origin(message)
        assert origin is not None
        letters.add(origin.group)

    send(cluster, name, [b"1"])
    probe = awoke_run(app)
    probe.idle()
    assert [each.error for each in probe.failures] == [ERROR]
    assert letters.items == [audit]
    found = {each.group: each.partitions for each in assigned.items if each.partitions}
    assert found == {app.name: [(dead, 0)], audit: [(name, 0)]}


def test_a_partition_that_one_group_has_paused_goes_on_in_the_other(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, audit = topic(), new_app(cluster), unique("audit")
    own, other, paused = Collected[Place](), Collected[Place](), Collected[awoke.events.PartitionPaused]()
    app.events.subscribe(awoke.events.PartitionPaused, paused.add)
    app.on(name)(note_in(own))

    @app.on(name, group=audit, retry=awoke.Retry(attempts=1, on_exhausted="pause"))
    def refuse_once(message: awoke.Message[bytes]) -> None:
        if not paused.items:
            raise ERROR
        other.add((message.partition, message.offset))

    fill(cluster, name, 1, 5)
    with running(app) as server:
        (event,) = paused.wait_for(1)
        assert event.group == audit
        own.wait_for(5)
        wait_until(lambda: not server.health().is_healthy, "the pause is known")
        (reason,) = server.health().reasons
        assert reason.startswith(f"{name}[0] of group {audit} is paused: ")
        assert not app.resume(name, 0, group=app.name)
        assert app.resume(name, 0, group=audit)
        assert other.wait_for(5) == [(0, number) for number in range(5)]


def test_a_message_is_skipped_in_the_group_that_is_named(cluster: Cluster, topic: CreateTopic) -> None:
    name, app, audit = topic(), new_app(cluster), unique("audit")
    own, other = Collected[Place](), Collected[Place]()
    is_mended: list[bool] = []

    def refusing(seen: Collected[Place]) -> Callable[[awoke.Message[bytes]], None]:
        def refuse(message: awoke.Message[bytes]) -> None:
            if message.offset == 1 and not is_mended:
                raise ERROR
            seen.add((message.partition, message.offset))

        return refuse

    retry = awoke.Retry(backoff_s=(0.05, 0.05))
    app.on(name, retry=retry)(refusing(own))
    app.on(name, retry=retry, group=audit)(refusing(other))
    fill(cluster, name, 1, 3)
    with running(app):
        wait_until(lambda: app.blocking(name, 0, group=app.name) == [1], "it fails in the app's own group")
        wait_until(lambda: app.blocking(name, 0, group=audit) == [1], "it fails in the other group")
        assert app.skip(name, 0, 1, group=audit)
        assert other.wait_for(2) == [(0, 0), (0, 2)]
        assert app.blocking(name, 0) == [1]
        is_mended.append(True)
        assert own.wait_for(3) == [(0, 0), (0, 1), (0, 2)]


def test_a_pattern_of_a_group_reads_new_topics_for_that_group(cluster: Cluster, topic: CreateTopic) -> None:
    prefix, app, audit = unique("orders"), new_app(cluster), unique("audit")
    app.use(kafka={"topic.metadata.refresh.interval.ms": 200})
    pattern = awoke.pattern(rf"{re.escape(prefix)}-.*", may_match_nothing=True)
    own, other = Collected[Place](), Collected[Place]()
    app.on(pattern)(note_in(own))
    app.on(pattern, group=audit)(note_in(other))
    with running(app):
        cluster.create_topic(f"{prefix}-1")
        fill(cluster, f"{prefix}-1", 1, 3)
        assert own.wait_for(3) == other.wait_for(3) == [(0, 0), (0, 1), (0, 2)]


def test_methods_belong_to_the_own_group_of_an_app_whose_routes_name_another(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, audit, seen = topic(), new_app(cluster), unique("audit"), Collected[Place]()
    app.on(name, group=audit)(note_in(seen))

    @app.rpc.method
    def double(number: int) -> int:
        return 2 * number

    fill(cluster, name, 1, 1)
    probe = awoke_run(app)
    server = probe.runner
    assert [each.group for each in server.joining] == [app.name, audit]
    probe.idle()
    with awoke.rpc.Caller(app.name, bootstrap_servers=cluster.bootstrap_servers) as caller:
        wait_until(lambda: server.why_not_ready() is None, "both groups have partitions")
        assert caller.call("double", 21, timeout_s=30) == 42


@pytest.mark.parametrize("transactional_id", [None, "named"], ids=["unnamed", "named"])
def test_each_group_has_transactions_of_its_own(cluster: Any, transactional_id: str | None) -> None:
    name, outs = unique("orders"), [unique("out"), unique("out")]
    for each in (name, *outs):
        cluster.create_topic(each)
    app, audit = new_app(cluster), unique("audit")
    app.use(transactional_id=transactional_id and unique(transactional_id))

    def same(message: awoke.Message[bytes]) -> bytes:
        return message.value

    app.on(name, output=outs[0], exactly_once=True)(same)
    app.on(name, output=outs[1], exactly_once=True, group=audit)(same)
    fill(cluster, name, 1, 200)
    copies: list[Collected[Place]] = [Collected(), Collected()]
    reading = new_app(cluster, kafka={"isolation.level": "read_committed"})
    for out, copy in zip(outs, copies, strict=True):
        reading.on(out, value=int)(lambda message, copy=copy: copy.add((0, message.value)))
    with running(reading), running(app):
        for copy in copies:
            assert copy.wait_for(200) == [(0, number) for number in range(200)]
    assert committed(cluster, app.name) == committed(cluster, audit) == {(name, 0): 200}


def test_a_group_that_is_the_own_one_already_is_refused(cluster: Cluster, topic: CreateTopic) -> None:
    name, app = topic(), new_app(cluster)
    app.on(name)(note_in(Collected()))
    app.on(name, group=app.name)(note_in(Collected()))
    with pytest.raises(awoke.ConfigError, match=f"group='{app.name}' is the app's own group already"), running(app):
        pass


ENDING = """
import atexit, sys, threading
import awoke
from awoke.runtime.process.runner import AppRunner

app, seen = awoke.App(sys.argv[2], bootstrap_servers=sys.argv[1]), threading.Semaphore(0)
for group in (None, sys.argv[2] + "-audit"):
    app.on(sys.argv[3], group=group)(lambda message: seen.release())
runner = AppRunner(app)
runner.start()
atexit.register(lambda: print("stopped", runner.stop()))
assert seen.acquire(timeout=30) and seen.acquire(timeout=30)
"""
"""A program that stops its app when the interpreter ends already."""


@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="Python 3.12 starts no thread when it ends")
def test_an_app_of_two_groups_may_be_stopped_when_the_interpreter_ends(cluster: Cluster, topic: CreateTopic) -> None:
    name, app = topic(), unique("app")
    fill(cluster, name, 1, 1)
    arguments = [sys.executable, "-c", ENDING, cluster.bootstrap_servers, app, name]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "stopped True\n"), done.stderr
    assert committed(cluster, app) == committed(cluster, f"{app}-audit") == {(name, 0): 1}


# Partitions that routes name.


@KINDS
def test_named_partitions_are_read_without_a_group_and_go_on_where_they_were(
    cluster: Cluster, topic: CreateTopic, kind: str, awoke_run: Runs
) -> None:
    name, app, seen = topic(partitions=4), new_app(cluster), Collected[Place]()
    route_of(kind, app, name, seen, partitions=[0, 3])
    places = fill(cluster, name, 4, 20)
    probe = awoke_run(app)
    server = probe.runner
    probe.idle()
    assert set(seen.items) == {place for place in places if place[0] in (0, 3)}
    assert [(each.group, len(each.partitions())) for each in server.joining] == [(f"{app.name}.partitions", 2)]
    assert committed(cluster, f"{app.name}.partitions") == {(name, 0): 20, (name, 3): 20}
    assert committed(cluster, app.name) == {}
    probe.stop()
    fill(cluster, name, 4, 1)
    awoke_run(app).idle()
    assert set(seen.items[40:]) == {(0, 20), (3, 20)}


def test_each_process_reads_the_partitions_that_it_names_and_moves_no_other(
    cluster: Cluster, topic: CreateTopic
) -> None:
    name, changes = topic(partitions=2), Collected[awoke.Event]()
    one, other = new_app(cluster), new_app(cluster)
    seen, seen_too = Collected[Place](), Collected[Place]()
    one.on(name, partitions=[0])(note_in(seen))
    other.on(name, partitions=[0, 1])(note_in(seen_too))
    for word in ("partitions.revoked", "partitions.lost"):
        one.events.subscribe(word, changes.add)
    fill(cluster, name, 2, 3)
    with running(one):
        seen.wait_for(3)
        with running(other):
            seen_too.wait_for(6)
        fill(cluster, name, 2, 1)
        assert seen.wait_for(4)[-1] == (0, 3)
        assert changes.items == []


def test_the_hooks_of_named_partitions_are_called_at_start_and_stop(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app, called = topic(partitions=2), new_app(cluster), Collected[str]()

    @app.consumer(name, partitions=[1], tick_every_s=0.05)
    class Hooked(awoke.Consumer):
        def assigned(self) -> None:
            called.add(f"assigned {self.partition}")

        def tick(self) -> None:
            if "tick" not in called.items:
                called.add("tick")

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            called.add(f"consume {len(batch)}")

        def shutdown(self) -> None:
            called.add("shutdown")

    fill(cluster, name, 2, 1)
    probe = awoke_run(app)
    probe.idle()
    called.wait_for(3)  # The tick needs no message.
    probe.stop()
    assert sorted(called.items) == ["assigned 1", "consume 1", "shutdown", "tick"]


def test_a_named_partition_begins_where_the_route_says(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[Place]()
    fill(cluster, name, 1, 10)
    app.on(name, partitions=[0], start=-3)(note_in(seen))
    awoke_run(app).idle()
    assert seen.items == [(0, 7), (0, 8), (0, 9)]


def test_a_partition_that_the_topic_does_not_have_ends_the_start(cluster: Cluster, topic: CreateTopic) -> None:
    name, app = topic(partitions=2), new_app(cluster)
    app.on(name, partitions=[0, 2])(note_in(Collected()))
    text = rf"route '{name}': partitions=\[0, 2\]: the topic has 2 partitions, 0 to 1"
    with pytest.raises(awoke.ConfigError, match=text), running(app):
        pass


def test_a_topic_may_be_read_by_a_group_and_by_its_partitions(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, app = topic(partitions=2), new_app(cluster)
    seen, alone = Collected[Place](), Collected[Place]()
    app.on(name)(note_in(seen))
    app.on(name, partitions=[1])(note_in(alone))
    fill(cluster, name, 2, 3)
    awoke_run(app).idle()
    assert len(seen.items) == 6
    assert alone.items == [(1, 0), (1, 1), (1, 2)]
