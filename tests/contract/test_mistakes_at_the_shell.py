"""Mistakes at the shell, and the habits of other tools: each ends in one message with fault, place and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from awoke.testing import EmbeddedCluster
from tests.support.command_line import awoke_says

APP = """
import awoke
app = awoke.App("mistaken_shop", startup_timeout_s=5)


@app.on("orders", output="receipts", dead_letter="orders.dead")
def charge(message: awoke.Message[bytes]) -> bytes:
    return message.value
"""


class Mistake(NamedTuple):
    """Words at the shell, and those that the message must have."""

    name: str
    words: tuple[str, ...]
    said: tuple[str, ...]
    code: int = 2


OF_AWOKE = [
    Mistake(
        "deletes a topic in a script", ("topics", "delete", "orders"), ("delete topic orders with 1 message", "--yes")
    ),
    Mistake(
        "changes a topic in a script", ("topics", "alter", "orders", "--partitions", "9"), ("9 partitions", "--yes")
    ),
    Mistake(
        "deletes several, one misspelt", ("topics", "delete", "orders", "ordres", "-y"), ("ordres", "not exist"), 1
    ),
    Mistake("describes two that are not there", ("topics", "describe", "a", "b"), ("'a'", "'b'", "not exist"), 1),
    Mistake(
        "plans with a dead letter topic missing",
        ("topics", "plan", "mistaken_shop:app"),
        ("orders.dead", "receipts"),
        1,
    ),
    Mistake(
        "starts with several topics missing", ("run", "mistaken_shop:app"), ("topics create orders.dead receipts",), 78
    ),
    Mistake(
        "names the topic's file as a message", ("produce", "orders", __file__), ("is a file", f"--file {__file__}")
    ),
    Mistake(
        "gives two keys", ("produce", "orders", "x", "-k", "a", "--key-separator", ":"), ("--key-separator", "--key")
    ),
    Mistake("sends what is not JSON", ("produce", "orders", "{", "--format", "json"), ("message 1", "JSON"), 1),
    Mistake("begins at no place", ("tail", "orders", "--from", "start"), ("--from", "earliest", "'start'")),
    Mistake("ends at no place", ("tail", "orders", "--to", "latest"), ("--to", "offset", "'latest'")),
    Mistake("asks for the JSON of lines", ("produce", "orders", "--json"), ("No such option", "--json")),
    Mistake("asks for help of what is not there", ("help", "topcis"), ("topcis", "topics")),
]
URLS = [
    Mistake(
        "gives a URL of the web", ("topics", "list", "-b", "http://kafka:9092/"), ("URL", "HOST:PORT", "kafka:9092")
    ),
    Mistake(
        "gives a URL of kafka", ("run", "mistaken_shop:app", "-b", "kafka://kafka:9092"), ("URL", "kafka:9092"), 78
    ),
]
HABITS = [
    Mistake("kafka-console-consumer", ("tail", "orders", "--from-beginning"), ("--from-beginning", "--from earliest")),
    Mistake("kafka-console-consumer's topic", ("tail", "--topic", "orders"), ("--topic", "awoke tail TOPIC")),
    Mistake(
        "kafka-console-consumer's count", ("tail", "orders", "--max-messages", "1"), ("--max-messages", "--count N")
    ),
    Mistake("kafka-topics", ("topics", "--list"), ("--list", "awoke topics list")),
    Mistake(
        "kafka-topics of the past", ("topics", "list", "--zookeeper", "z:2181"), ("ZooKeeper", "--bootstrap-servers")
    ),
    Mistake(
        "kafka-topics' brokers", ("topics", "list", "--bootstrap-server", "a:1"), ("--bootstrap-servers HOST:PORT",)
    ),
    Mistake("kafka-topics' replicas", ("topics", "create", "a", "--replication-factor", "1"), ("--replicas N",)),
    Mistake("kafka-consumer-groups", ("groups", "--describe", "--group", "a"), ("--describe", "awoke groups describe")),
    Mistake(
        "kafka-consumer-groups' reset", ("groups", "reset", "a", "--to-latest", "--execute"), ("--execute", "--yes")
    ),
    Mistake("kcat", ("tail", "-t", "orders", "-o", "beginning"), ("-t", "awoke tail TOPIC")),
    Mistake("kcat's offset", ("tail", "orders", "-o", "beginning"), ("-o", "--from", "earliest")),
    Mistake("kcat's end", ("tail", "orders", "-e"), ("-e", "--until-end")),
    Mistake("kcat's properties", ("tail", "orders", "-X", "a=b"), ("-X", "--kafka NAME=VALUE")),
    Mistake("celery", ("-A", "shop", "worker"), ("-A", "awoke run MODULE:APP")),
    Mistake("celery's level", ("run", "shop:app", "-l", "info"), ("-l", "--log-level")),
    Mistake("faust", ("worker", "-l", "info"), ("'worker'", "awoke run MODULE:APP")),
    Mistake("faust's send", ("send", "orders", "{}"), ("'send'", "awoke produce TOPIC MESSAGE")),
    Mistake("faststream", ("run", "shop:app", "--reload"), ("--reload", "--watch")),
    Mistake("faststream's publish", ("publish", "shop:app", "{}"), ("'publish'", "awoke produce")),
    Mistake("rpk", ("consume", "orders"), ("'consume'", "awoke tail TOPIC")),
]


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """Brokers with one topic of two that the app needs, and a message."""
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", 1)
        awoke_says("produce", "orders", "one", "-b", cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


@pytest.mark.parametrize("mistake", [*OF_AWOKE, *URLS, *HABITS], ids=lambda mistake: mistake.name)
def test_a_mistake_at_the_shell_is_one_message(
    mistake: Mistake, brokers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mistaken_shop.py").write_text(APP)
    monkeypatch.syspath_prepend(tmp_path)
    env = {"AWOKE_BOOTSTRAP_SERVERS": brokers, "XDG_RUNTIME_DIR": str(tmp_path), "COLUMNS": "200"}
    output = awoke_says(*mistake.words, code=mistake.code, env=env)
    assert "Traceback" not in output
    assert [word for word in mistake.said if word not in output] == [], output
    assert output.count("rror: ") <= 1, output
