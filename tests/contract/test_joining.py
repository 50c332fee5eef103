"""A process that waits for its group says so, and one with a name of its own need not wait."""

from __future__ import annotations

import signal
import threading

import pytest

import awoke
from awoke.runtime.process import joining
from awoke.settings import Settings
from awoke.testing import running
from tests.support.clusters import MockCluster, RealCluster, unique
from tests.support.processes import Process
from tests.support.waiting import Collected

FENCING = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}


def app_of(cluster: MockCluster | RealCluster, topic: str, **settings: object) -> tuple[awoke.App, Collected[bytes]]:
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers)
    app.use(**settings)
    seen: Collected[bytes] = Collected()

    @app.on(topic)
    def see(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    return app, seen


def test_a_process_that_waits_for_its_group_says_so_once(
    mock_cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a member that holds up the rebalance, as its job runs
    topic, group = unique("waiting"), unique("group")
    mock_cluster.create_topic(topic, 2)
    monkeypatch.setattr(joining, "JOIN_WARNING_S", 60.0)  # The first one may need long on a busy machine.
    busy = awoke.App(unique("app"), bootstrap_servers=mock_cluster.bootstrap_servers, group=group, kafka=FENCING)
    said, began, release = Collected[awoke.Event](), threading.Event(), threading.Event()
    busy.events.subscribe("group.waiting", said.add)

    @busy.on(topic)
    def wait(message: awoke.Message[bytes]) -> None:
        began.set()
        release.wait(30)

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, b"value", partition=partition) for partition in range(2)])
    with running(busy):
        assert began.wait(30)
        assert said.items == []

        # When another one joins
        monkeypatch.setattr(joining, "JOIN_WARNING_S", 0.2)
        app, _ = app_of(mock_cluster, topic, group=group, kafka=FENCING)
        assigned: Collected[awoke.Event] = Collected()
        app.events.subscribe("partitions.assigned", assigned.add)
        app.events.subscribe("group.waiting", said.add)
        with running(app):
            # Then that one says that it waits
            said.wait_for(1)
            release.set()
            assigned.wait_for(1)
    (event,) = said.items
    assert event.fields["group"] == group
    assert "session.timeout.ms, 6 s" in event.fields["text"]
    assert "instance_id" in event.fields["text"]


def test_a_process_that_stops_while_it_waits_says_nothing(mock_cluster: MockCluster) -> None:
    topic = unique("stopped")
    mock_cluster.create_topic(topic)
    app, _ = app_of(mock_cluster, topic)
    said: list[awoke.Event] = []
    app.events.subscribe("group.waiting", said.append)
    with running(app):
        pass
    assert said == []


def test_a_killed_process_with_a_name_has_its_partitions_back_before_its_session_ends(
    real_cluster: RealCluster,
) -> None:
    topic, group = unique("named"), unique("group")
    real_cluster.create_topic(topic, 2)
    env = {"COUNTING_TOPIC": topic, "COUNTING_LOG": "/dev/null", "AWOKE_GROUP": group, "AWOKE_INSTANCE_ID": "one"}
    arguments = ["run", "tests.scenarios.counting_app:app", "-b", real_cluster.bootstrap_servers]
    arguments += ["--kafka", "session.timeout.ms=300000"]
    with Process(*arguments, env=env) as process:
        process.wait_for("partitions.assigned")
        process.signal(signal.SIGKILL)
        process.wait()
    with Process(*arguments, env=env) as process:
        process.wait_for("partitions.assigned", within_s=120)  # The session goes on for minutes.
        process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.output


def test_a_named_process_reads_a_topic_that_was_added(real_cluster: RealCluster) -> None:
    first, second = unique("first"), unique("second")
    for each in (first, second):
        real_cluster.create_topic(each)
    group = unique("group")
    app, _ = app_of(real_cluster, first, group=group, instance_id="one", kafka=FENCING)
    assigned: Collected[awoke.Event] = Collected()
    app.events.subscribe("partitions.assigned", assigned.add)
    with running(app):
        assigned.wait_for(1)
    with_more, _ = app_of(real_cluster, first, group=group, instance_id="one", kafka=FENCING)
    seen: Collected[bytes] = Collected()

    @with_more.on(second)
    def see(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    with running(with_more):
        with_more.producer.produce(second, b"added").wait()
        assert seen.wait_for(1) == [b"added"]


def test_two_processes_of_one_name_get_a_clear_fatal_error(real_cluster: RealCluster) -> None:
    topic, group = unique("twice"), unique("group")
    real_cluster.create_topic(topic)
    (first, _), (second, _) = (
        app_of(real_cluster, topic, group=group, instance_id="one", kafka=FENCING) for _ in range(2)
    )
    errors: Collected[BaseException] = Collected()
    assigned: Collected[awoke.Event] = Collected()
    first.events.subscribe("partitions.assigned", assigned.add)
    runner = awoke.AppRunner(first, on_fatal_error=errors.add)
    runner.start()
    try:
        assigned.wait_for(1)
        with running(second):
            (error,) = errors.wait_for(1)
    finally:
        runner.stop()
    assert isinstance(error, awoke.KafkaError)
    assert "same instance_id, 'one': give each process its own" in str(error)


def test_a_name_needs_the_classic_protocol() -> None:
    app = awoke.App("shop", instance_id="one", kafka={"group.protocol": "consumer"})
    with pytest.raises(awoke.ConfigError, match=r"'instance_id' \(argument\): needs group\.protocol=classic"):
        app.load_settings().check_member()
    with pytest.raises(awoke.ConfigError, match="'instance_id': is empty"):
        _ = awoke.App("shop", instance_id=" ").settings


def test_the_name_in_the_group_holds_the_topics() -> None:
    settings = Settings(instance_id="one")
    names = [joining.instance_properties(settings, topics) for topics in (["a", "b"], ["b", "a"], ["a"])]
    assert names[0] == names[1] != names[2]
    assert names[0]["group.instance.id"].startswith("one.")
    assert joining.instance_properties(Settings(), ["a"]) == {}
