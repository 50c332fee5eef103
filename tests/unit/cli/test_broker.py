"""`awoke broker`: a broker in memory with its topics, which other processes may ask for more."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke.cli import broker as module
from awoke.cli.broker import broker, process_of, socket_of, taking_commands
from awoke.cli.swarm import ask
from awoke.embedded import EmbeddedCluster
from awoke.runtime.inbox import Inbox


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the user's sockets, with a short path: the system bounds the length of a socket's."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def running(folder: Path) -> Iterator[EmbeddedCluster]:
    """A broker in memory that takes commands, and makes topics of 4 partitions unless told otherwise."""
    with EmbeddedCluster() as cluster, taking_commands(cluster, 4):
        yield cluster


def partitions_of(running: EmbeddedCluster, topic: str) -> int:
    with awoke.Admin(running.bootstrap_servers) as admin:
        return len(admin.describe_topic(topic).partitions)


def create(running: EmbeddedCluster, **fields: Any) -> dict[str, Any]:
    return ask("the broker", process_of(running.bootstrap_servers), "create_topic", **fields)


def test_the_process_of_a_broker_is_found_by_its_address_while_it_takes_commands() -> None:
    assert process_of("127.0.0.1:1") is None
    with EmbeddedCluster() as cluster:
        with taking_commands(cluster, 4):
            assert process_of(cluster.bootstrap_servers) == socket_of(cluster.bootstrap_servers)
        assert process_of(cluster.bootstrap_servers) is None


def test_a_topic_is_created_with_the_partitions_that_are_asked_for_or_those_of_the_broker(
    running: EmbeddedCluster,
) -> None:
    assert create(running, topic="receipts", partitions=2) == {"done": "create_topic"}
    assert create(running, topic="refunds", partitions=-1) == {"done": "create_topic"}
    assert (partitions_of(running, "receipts"), partitions_of(running, "refunds")) == (2, 4)


def test_a_topic_that_exists_is_refused(running: EmbeddedCluster) -> None:
    running.create_topic("orders")
    with pytest.raises(awoke.AwokeError, match="create_topic failed: topic 'orders' already exists"):
        create(running, topic="orders", partitions=2)
    assert partitions_of(running, "orders") == 1


@pytest.mark.parametrize(
    ("topic", "partitions", "said"),
    [("a b", 1, "a topic's name has 1 to 249 letters"), ("orders", 0, "a topic has at least one partition")],
)
def test_a_topic_that_kafka_would_refuse_is_refused(
    topic: str, partitions: int, said: str, running: EmbeddedCluster
) -> None:
    with pytest.raises(awoke.ConfigError, match=said):
        create(running, topic=topic, partitions=partitions)
    with awoke.Admin(running.bootstrap_servers) as admin:
        assert admin.topics() == []


@pytest.mark.parametrize(
    "command",
    [
        {"command": "delete_topic", "topic": "orders", "partitions": 1},
        {"command": "create_topic", "topic": 3, "partitions": 1},
        {"command": "create_topic", "topic": "orders", "partitions": "many"},
        {"command": "create_topic"},
    ],
)
def test_another_command_is_refused(command: dict[str, Any], running: EmbeddedCluster) -> None:
    with pytest.raises(awoke.ConfigError, match="knows the command create_topic, with a topic and partitions"):
        ask("the broker", process_of(running.bootstrap_servers), **command)


def test_a_broker_whose_socket_can_not_be_made_runs_without_commands(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc/nowhere")
    with EmbeddedCluster() as cluster, taking_commands(cluster, 4):
        assert process_of(cluster.bootstrap_servers) is None
    assert "awoke topics create can't reach this broker: " in caplog.text


def test_the_command_runs_until_a_signal_and_says_how_to_use_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    get = Inbox.get

    def use(heard: Inbox) -> str:
        """Uses the broker while the command waits, and ends the wait."""
        settings = dict(word.split("=") for word in said[1].split()[1:])
        with awoke.Admin(settings["AWOKE_BOOTSTRAP_SERVERS"]) as admin:
            said.extend(f"{each.name} {len(each.partitions)}" for each in admin.topics())
        os.kill(os.getpid(), signal.SIGTERM)
        return get(heard)

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(module, "say", said.append)
    monkeypatch.setattr(Inbox, "get", use)
    broker(["orders", "payments"], 3)
    assert said[0].startswith("a broker in memory has the topics orders, payments; Ctrl-C stops it")
    assert said[2:] == ["orders 3", "payments 3"]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.mark.parametrize("topic", ["", "my orders"])
def test_a_topic_needs_a_name_that_kafka_takes(topic: str) -> None:
    with pytest.raises(awoke.ConfigError, match=r"awoke broker: topic '.*': a topic's name has"):
        broker(["orders", topic], 1)
