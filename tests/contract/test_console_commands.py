"""The commands of a console, on embedded brokers and on Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import awoke
from awoke.console.commands import Audit, Commander
from awoke.console.process_commands import commands_of
from awoke.console.reporter import Reporter
from awoke.console.topics import ConsoleTopics
from awoke.rpc.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument, PermissionDenied
from awoke.runtime.process.runner import AppRunner
from awoke.settings import load
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected, wait_until

CreateTopic = Callable[..., str]
WAIT_S = 30.0
SENT: dict[str, Any] = {"who": "ann", "reason": "a test", "timeout_s": WAIT_S}


def commander(cluster: Cluster, app: awoke.App) -> Commander:
    """Returns a client for the commands of an app."""
    settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
    return Commander(app.name, settings=settings, name="test")


def node_of(runner: AppRunner) -> str:
    """Returns the name of a process that takes commands by now."""
    reporter = runner.extension(Reporter)
    assert reporter is not None
    assert commands_of(runner).wait_open(WAIT_S)
    return reporter.node


def audit_of(cluster: Cluster, app: awoke.App) -> list[Audit]:
    """Returns the records of the commands of an app."""
    with awoke.Reader(ConsoleTopics.of(app.name).audit, bootstrap_servers=cluster.bootstrap_servers) as reader:
        return [msgspec.json.decode(each.value, type=Audit) for each in reader.read_until_end(WAIT_S)]


def test_an_operator_pauses_seeks_and_lets_failing_messages_go(cluster: Cluster, topic: CreateTopic) -> None:
    name, letters = topic(), topic()
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, console=True, console_commands=True)
    seen, failed = Collected[bytes](), Collected[object]()
    lettered, skipped, paused = Collected[object](), Collected[object](), Collected[object]()
    for event, collected in (
        ("job.failed", failed),
        ("message.dead_lettered", lettered),
        ("message.skipped", skipped),
        ("partition.paused", paused),
    ):
        app.events.subscribe(event, collected.add)

    @app.on(name, start=0, retry=awoke.Retry(backoff_s=(600.0, 600.0)), dead_letter=letters)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)
        if message.value.startswith(b"bad"):
            raise ValueError("no good")

    def wait_for_failure(count: int, offset: int) -> None:
        """Waits until a message has failed, and is known to: the event comes first."""
        failed.wait_for(count)
        wait_until(lambda: app.blocking(name, 0) == [offset], f"offset {offset} fails")

    with running(app) as runner, commander(cluster, app) as console:
        node = node_of(runner)
        place: dict[str, Any] = {"topic": name, "partition": 0}
        values = (b"good", b"bad 1", b"bad 2", b"bad 3")
        awoke.wait_all([app.producer.produce(name, value, partition=0) for value in values], WAIT_S)
        wait_for_failure(1, 1)
        console.send(node, "retry", offset=1, **place, **SENT)
        wait_for_failure(2, 1)
        console.send(node, "skip", offset=1, **place, **SENT)
        skipped.wait_for(1)
        wait_for_failure(3, 2)
        answer = console.send(node, "dead_letter", offset=2, **place, **SENT)
        assert (answer.node, answer.verb) == (node, "dead_letter")
        lettered.wait_for(1)
        wait_for_failure(4, 3)
        with pytest.raises(FailedPrecondition, match="offset 9 does not fail"):
            console.send(node, "skip", offset=9, **place, **SENT)
        console.send(node, "skip", offset=3, **place, **SENT)
        skipped.wait_for(2)
        console.send(node, "pause", **place, **SENT)
        paused.wait_for(1)
        count = len(seen.items)
        awoke.wait_all([app.producer.produce(name, b"later", partition=0)], WAIT_S)
        console.send(node, "seek", offset=0, **place, **SENT)
        console.send(node, "resume", **place, **SENT)
        seen.wait_for(count + 1)
        assert seen.items[count] == b"good"
        stacks = console.send(node, "stacks", **SENT).stacks
        assert "awoke-console" in {each.name for each in stacks}
    records = audit_of(cluster, app)
    assert [(each.verb, each.result) for each in records] == [
        ("retry", "done"),
        ("skip", "done"),
        ("dead_letter", "done"),
        ("skip", "failed_precondition"),
        ("skip", "done"),
        ("pause", "done"),
        ("seek", "done"),
        ("resume", "done"),
        ("stacks", "done"),
    ]
    assert {(each.who, each.via, each.reason, each.node) for each in records} == {("ann", "test", "a test", node)}


def test_a_process_takes_only_the_commands_that_it_allows_and_that_name_it(
    cluster: Cluster, topic: CreateTopic
) -> None:
    name = topic()
    app = awoke.App(
        unique("app"), bootstrap_servers=cluster.bootstrap_servers, console=True, console_commands="pause,resume"
    )

    @app.on(name)
    def handle(message: awoke.Message[bytes]) -> None:
        pass

    with running(app) as runner, commander(cluster, app) as console:
        node = node_of(runner)
        with pytest.raises(PermissionDenied, match="stop is not among"):
            console.send(node, "stop", **SENT)
        with pytest.raises(DeadlineExceeded):
            console.send("elsewhere.1", "quiet", **{**SENT, "timeout_s": 1.0})
        with pytest.raises(InvalidArgument, match="reason"):
            console.send(node, "pause", topic=name, partition=0, who="ann", reason=" ")
        with pytest.raises(FailedPrecondition, match="is not assigned"):
            console.send(node, "pause", topic="other", partition=0, **SENT)
    assert [(each.verb, each.result) for each in audit_of(cluster, app)] == [
        ("stop", "permission_denied"),
        ("pause", "failed_precondition"),
    ]


def test_a_durable_pause_outlives_the_process(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, console=True, console_commands=True)
    paused, seen = Collected[object](), Collected[bytes]()
    app.events.subscribe("partition.paused", paused.add)

    @app.on(name, start=0)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    assigned = Collected[object]()
    app.events.subscribe("partitions.assigned", assigned.add)
    with running(app) as runner, commander(cluster, app) as console:
        node = node_of(runner)
        assigned.wait_for(1)
        console.send(node, "pause", topic=name, partition=0, durable=True, **SENT)
        paused.wait_for(1)
    with running(app) as runner, commander(cluster, app) as console:
        node = node_of(runner)
        paused.wait_for(2)
        awoke.wait_all([app.producer.produce(name, b"later", partition=0)], WAIT_S)
        assert seen.items == []
        console.send(node, "resume", topic=name, partition=0, **SENT)
        seen.wait_for(1)
