"""`awoke dead-letter` and `awoke threads` at the shell."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import awoke
from awoke.app.extensions import ServedMetrics
from awoke.payloads import dead_letter
from awoke.payloads.dead_letter import letter
from awoke.testing import running
from tests.contract.test_consume import new_app
from tests.support.clusters import Cluster, read_all, reading, unique
from tests.support.command_line import awoke_says

CreateTopic = Callable[..., str]


def two_letters(cluster: Cluster, topic: CreateTopic) -> tuple[str, str]:
    """A topic, and a dead letter topic with two of its messages and one that is no dead letter."""
    name, dead = topic(), topic("dead")
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for value in (b"1", b"2"):
            producer.produce(name, value, key=b"key", headers=[("trace", b"a")]).wait(30)
        # Opened now: one that was there before has seen an end that is none any more.
        with reading(cluster, name) as reader:
            for message in reader.read_until_end(30):
                record = letter(message, "group", 3, ValueError("no good"))
                producer.produce(dead, record.value, key=record.key, headers=record.headers).wait(30)
        producer.produce(dead, b"stranger").wait(30)
    return name, dead


def test_dead_letters_are_listed_and_shown(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead = two_letters(cluster, topic)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    listed = awoke_says("dead-letter", "list", dead, *at, env={"COLUMNS": "200"})
    assert "2 dead letters; 1 other message skipped" in listed
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
    dry = ("--only", "0:1", "--dry-run")
    assert f"would send 1 to {name}" in awoke_says("dead-letter", "replay", dead, *dry, *at)
    assert f"sent 1 to {name}; the dead letters are still in {dead}" in awoke_says(
        "dead-letter", "replay", dead, "--only", "0:1", "--yes-topic", name, *at
    )
    messages = [(each.value, each.key, each.headers) for each in read_all(cluster, name)]
    assert messages[2:] == [(b"2", b"key", [("trace", b"a")])]


def put(
    cluster: Cluster, dead: str, *letters: tuple[bytes | None, bytes, list[tuple[str, bytes | str | None]]]
) -> None:
    """Put messages with these keys, values and headers into a dead letter topic, all into its first partition."""
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for key, value, headers in letters:
            producer.produce(dead, value, key=key, headers=headers, partition=0).wait(30)


def headers_of(origin: str, error: str = "no good", **more: str) -> list[tuple[str, bytes | str | None]]:
    """The headers of a dead letter that came from a topic."""
    said = {
        dead_letter.TOPIC: origin,
        dead_letter.PARTITION: "0",
        dead_letter.OFFSET: "5",
        dead_letter.TIMESTAMP: "",
        dead_letter.GROUP: "group",
        dead_letter.ATTEMPTS: "3",
        dead_letter.ERROR_TYPE: "builtins.ValueError",
        dead_letter.ERROR_TEXT: error,
        dead_letter.FAILED_AT: "1760000000000",
        dead_letter.HANDLER: "charge",
    }
    return [*said.items(), *((name.replace("_", "-"), value) for name, value in more.items())]


def test_no_content_breaks_a_list(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead = topic(), topic("dead")
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    huge = [(dead_letter.OFFSET, "9" * 40), (dead_letter.FAILED_AT, "9" * 40)]
    put(
        cluster,
        dead,
        (b"\xff\x00\x1b", b"1", headers_of(name, "closing [/x] tag")),
        (b"[/red]", b"\x1b]0;title\x07", headers_of(name, "\x1b[31mred\x1b[0m\nsecond line\u202e")),
        (None, b"[bold", [*headers_of("[/topic]", "x" * 1_000), *huge]),
    )
    listed = awoke_says("dead-letter", "list", dead, *at)
    assert "closing [/x] tag" in listed
    assert r"\x1b[31mred\x1b[0m\nsecond line\u202e" in listed
    assert "2025-10-0" in listed, "a time is shown as a time"
    assert f"[/topic][0] {'9' * 40}" in listed
    assert "x" * 100 not in listed
    assert "3 dead letters" in listed
    full = awoke_says("dead-letter", "list", dead, "--full", *at)
    assert "x" * 1_000 in full
    assert r"key \xff\x00\x1b" in full
    shown = [awoke_says("dead-letter", "show", dead, f"0:{offset}", *at) for offset in range(3)]
    assert r"value:" + "\n" + r"\x1b]0;title\x07" in shown[1]
    assert all("\x1b" not in each for each in (listed, full, *shown))
    documents = [json.loads(line) for line in awoke_says("dead-letter", "list", dead, "--json", *at).splitlines()[:3]]
    assert [each["origin"]["offset"] for each in documents] == [5, 5, "9" * 40]
    awoke_says("dead-letter", "summary", dead, *at)
    awoke_says("dead-letter", "summary", dead, "--json", *at)
    awoke_says("dead-letter", "replay", dead, "--dry-run", *at)


def test_dead_letters_are_counted_and_picked(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead = topic(), topic("dead")
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    late = {"awoke_failed_at_ms": "1770000000000"}
    put(
        cluster,
        dead,
        (b"a", b"1", headers_of(name, "no card")),
        (b"b", b"2", headers_of(name, "no bank", **late)),
        (b"b", b"3", headers_of(name, "timed out", awoke_error_type="TimeoutError", awoke_handler="book", **late)),
    )

    def picked(*options: str) -> list[str]:
        lines = awoke_says("dead-letter", "list", dead, "--json", *options, *at).splitlines()
        return [json.loads(line)["value"] for line in lines if line.startswith("{")]

    assert picked() == ["1", "2", "3"]
    assert picked("--from", "2026-01-01T00:00") == ["2", "3"]
    assert picked("--error", "valueerror") == ["1", "2"]
    assert picked("--error", "no bank", "--key", "b") == ["2"]
    assert picked("--key", "b", "--handler", "book") == ["3"]
    assert picked("--from", "2099-01-01") == []
    counts = [json.loads(line) for line in awoke_says("dead-letter", "summary", dead, "--json", *at).splitlines()]
    assert [(each["error"], each["count"]) for each in counts] == [("builtins.ValueError", 2), ("TimeoutError", 1)]
    assert (counts[0]["first_ms"], counts[0]["last_ms"], counts[0]["at"]) == (1760000000000, 1770000000000, "0:0")
    shown = awoke_says("dead-letter", "summary", dead, "--by", "handler", *at).splitlines()
    assert [line.split()[:2] for line in shown] == [["count", "handler"], ["2", "charge"], ["1", "book"]]


def test_a_replay_sends_each_dead_letter_once_unless_again(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead = topic(), topic("dead", 2)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    put(cluster, dead, *((b"k", b"%d" % number, headers_of(name, f"error {number}")) for number in range(6)))

    def replay(*options: str, code: int = 0) -> str:
        return awoke_says("dead-letter", "replay", dead, "--yes-topic", name, *options, *at, code=code)

    assert f"sent 2 to {name}" in replay("--only", "0:3", "--only", "0:1")
    assert f"would send 4 to {name} (2 sent before are left out: --again sends them)" in replay("--dry-run")
    assert f"sent 1 to {name}" in replay("--error", "error 2", "--rate", "1000")
    assert f"sent 1 to {name}" in replay("--only", "0:3", "--again")
    assert f"sent 3 to {name}" in replay()
    assert "would send none (6 sent before are left out" in replay()
    put(cluster, dead, (b"k", b"6", headers_of(name)))
    assert f"sent 1 to {name}" in replay()
    assert f"would send 7 to {name}" in replay("--dry-run", "--group", "another")
    assert [each.value for each in read_all(cluster, name)] == [b"1", b"3", b"2", b"3", b"0", b"4", b"5", b"6"]


def test_what_is_refused_is_said_and_sent_the_next_time(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead, small = topic(), topic("dead"), unique("small")
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(small, partitions=1, config={"max.message.bytes": "1000"})
    letters = [(b"k", value, headers_of(name)) for value in (b"1", b"x" * 5_000, b"3")]
    put(cluster, dead, *letters)
    refused = awoke_says("dead-letter", "replay", dead, "--yes", "--topic", small, "--stop-at-failure", *at, code=1)
    assert f"sent 1 to {small}" in refused
    assert "0:1 was not sent: " in refused
    assert "error: 2 of 3 dead letters were not sent" in refused
    assert "error: 1 of 2 dead letters were not sent" in awoke_says(
        "dead-letter", "replay", dead, "--yes", "--topic", small, *at, code=1
    )
    assert f"sent 1 to {name}" in awoke_says("dead-letter", "replay", dead, "--yes-topic", name, *at)
    assert [each.value for each in read_all(cluster, small)] == [b"1", b"3"]


def test_what_is_wrong_with_dead_letters_is_one_line(cluster: Cluster, topic: CreateTopic) -> None:
    name, dead = two_letters(cluster, topic)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    for arguments, said, code in (
        (("show", dead, "zero"), "PARTITION:OFFSET", 2),
        (("show", dead, "0:99"), "no message at offset 99", 1),
        (("show", dead, "0:2"), "is no dead letter", 1),
        (("replay", dead, "--only", "0:2", "--yes"), "is no dead letter", 1),
        (("list", dead, "--from", "soon"), "--from takes a time", 2),
        (("summary", dead, "--by", "colour"), "--by takes one of error, text, topic, handler, key", 2),
        (("replay", dead, "--only", "0:77", "--yes"), "no message at offset 77", 1),
        (("replay", name, "--yes"), f"{name} holds no dead letters", 1),
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
        served = server.extension(ServedMetrics)
        assert served is not None
        assert served.endpoint is not None
        assert started.wait(30)
        port = str(served.endpoint.port)
        entries = [json.loads(line) for line in awoke_says("threads", port, "--json").splitlines()]
        assert f"{name}[0]" in awoke_says("threads", port, env={"COLUMNS": "200"})
    assert [each["name"] for each in entries if each["owner"] == f"{name}[0]"] == [f"{name}[0]-wait"]
    assert "no app answers" in awoke_says("threads", port, code=1)


def test_old_dead_letters_are_deleted(cluster: Cluster) -> None:
    def make_topic(name: str = "topic") -> str:
        made = unique(name)
        cluster.create_topic(made)
        return made

    _, dead = two_letters(cluster, make_topic)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)

    def places() -> list[tuple[int, int]]:
        return [(message.partition, message.offset) for message in read_all(cluster, dead)]

    assert "one of --before, --until and --all" in awoke_says("dead-letter", "purge", dead, *at, code=2)
    assert "no partition 7" in awoke_says("dead-letter", "purge", dead, "--until", "7:0", "--yes", *at, code=2)
    assert "ends before offset 3" in awoke_says("dead-letter", "purge", dead, "--until", "0:3", "--yes", *at, code=2)
    assert "nothing to delete" in awoke_says("dead-letter", "purge", dead, "--before", "1h", "--yes", *at)
    assert places() == [(0, 0), (0, 1), (0, 2)]
    said = awoke_says("dead-letter", "purge", dead, "--until", "0:0", "--yes", *at)
    assert "deleted 1 message " in said
    assert "partition 0 begins at offset 1" in said
    assert places() == [(0, 1), (0, 2)]
    assert "deleted 2 messages" in awoke_says("dead-letter", "purge", dead, "--before", "0s", "--yes", *at)
    assert places() == []
    assert "nothing to delete" in awoke_says("dead-letter", "purge", dead, "--all", "--yes", *at)
