"""`awoke dead-letter` and `awoke threads` at the shell."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import awoke
from awoke.dead_letter import letter
from awoke.testing import running
from tests.contract.test_consume import new_app
from tests.scenarios.test_command_line import awoke_says
from tests.support.clusters import Cluster

CreateTopic = Callable[..., str]


def two_letters(cluster: Cluster, topic: CreateTopic) -> tuple[str, str]:
    """A topic, and a dead letter topic with two of its messages and one that is no dead letter."""
    name, dead = topic(), topic("dead")
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        for value in (b"1", b"2"):
            producer.produce(name, value, key=b"key", headers=[("trace", b"a")]).wait(30)
        # Opened now: one that was there before has seen an end that is none any more.
        with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
            for message in reader.read_until_end(30):
                record = letter(message, "group", 3, ValueError("no good"))
                producer.produce(dead, record.value, key=record.key, headers=record.headers).wait(30)
        producer.produce(dead, b"stranger").wait(30)
    return name, dead


def test_dead_letters_are_listed_and_shown(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead = two_letters(cluster, topic)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    listed = awoke_says("dead-letter", "list", dead, *at, env={"COLUMNS": "200"})
    assert "2 dead letters, 1 messages that are none" in listed
    assert "ValueError: no good" in listed
    first = json.loads(awoke_says("dead-letter", "list", dead, "--json", "--limit", "1", *at).splitlines()[0])
    assert (first["value"], first["origin"]["topic"], first["origin"]["attempts"]) == ("1", name, 3)
    shown = awoke_says("dead-letter", "show", dead, "0:1", *at)
    assert f"topic: {name}" in shown
    assert "trace: a" in shown
    assert shown.endswith("2")


def test_dead_letters_are_sent_again_as_they_were(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead = two_letters(cluster, topic)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    assert f"would send 1 to {name}" in awoke_says("dead-letter", "replay", dead, "--only", "0:1", "--dry-run", *at)
    assert f"sent 1 to {name}; the dead letters are still in {dead}" in awoke_says(
        "dead-letter", "replay", dead, "--only", "0:1", "--yes", *at
    )
    with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
        messages = [(each.value, each.key, each.headers) for each in reader.read_until_end(30)]
    assert messages[2:] == [(b"2", b"key", [("trace", b"a")])]


def test_what_is_wrong_with_dead_letters_is_one_line(cluster: Cluster, topic: CreateTopic) -> None:
    _, dead = two_letters(cluster, topic)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    for arguments, said, code in (
        (("show", dead, "zero"), "PARTITION:OFFSET", 2),
        (("show", dead, "0:99"), "no message at offset 99", 1),
        (("show", dead, "0:2"), "is no dead letter", 1),
        (("replay", dead, "--yes"), "is no dead letter", 1),
        (("replay", dead, "--only", "0:77", "--yes"), "no message at offset 77", 1),
    ):
        output = awoke_says("dead-letter", *arguments, *at, code=code)
        assert said in output
        assert "Traceback" not in output


def test_the_threads_of_a_running_app_are_shown(cluster: Cluster, topic: CreateTopic) -> None:
    name, started = topic(), threading.Event()
    app = new_app(cluster, metrics_port=0)

    @app.consumer(name)
    class Owner(awoke.Consumer):
        def assigned(self) -> None:
            self.background(self.wait)

        def wait(self) -> None:
            started.set()
            self.stopping.wait()

        def consume(self, batch: awoke.Batch[bytes]) -> None:
            pass

    with running(app) as server:
        assert server.endpoint is not None
        assert started.wait(30)
        port = str(server.endpoint.port)
        entries = json.loads(awoke_says("threads", port, "--json"))
        assert f"{name}[0]" in awoke_says("threads", port, env={"COLUMNS": "200"})
    assert [each["name"] for each in entries if each["owner"] == f"{name}[0]"] == [f"{name}[0]-wait"]
    assert "no app answers" in awoke_says("threads", port, code=1)
