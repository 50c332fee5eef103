"""A client with the right to write to a dead letter topic can forge a letter. It reaches no topic but those that the
operator has named."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from awoke.cli import dead_letter as commands
from awoke.payloads import dead_letter
from tests.contract.test_dead_letter_commands import headers_of, put
from tests.contract.test_recovery import letters as letters_in
from tests.scenarios.test_command_line import awoke_says
from tests.support.clusters import MockCluster, unique

FORGED: tuple[list[tuple[str, bytes | str | None]], ...] = (
    [(dead_letter.TOPIC, b"\xff\xfe")],
    [(dead_letter.TOPIC, None)],
    [(name, b"9" * 5_000) for name in dead_letter.HEADERS],
    [(name, b"\xff" * 100) for name in dead_letter.HEADERS],
    [(name, None) for name in dead_letter.HEADERS],
    [*headers_of("\x00\x1b[31m"), (dead_letter.OFFSET, b"-9" * 1)],
    [*headers_of("x" * 200_000, "e" * 200_000), (dead_letter.FAILED_AT, b"9" * 4_000)],
    [*headers_of("orders"), (dead_letter.VALUE_BYTES, b"9" * 4_000)],
    [*headers_of("orders"), (dead_letter.PARTITION, "\u0663"), (dead_letter.ATTEMPTS, "1_000")],
    [*headers_of("orders"), (dead_letter.HANDLER, b"\xed\xa0\x80"), ("n\u202e", b"\x9b")],
)


@pytest.fixture
def forged(mock_cluster: MockCluster) -> str:
    """A dead letter topic with nothing but forged letters."""
    dead = unique("dead")
    mock_cluster.create_topic(dead)
    put(mock_cluster, dead, *((b"key", b"value", headers) for headers in FORGED))
    return dead


def test_no_forged_header_breaks_a_command(
    mock_cluster: MockCluster, forged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = mock_cluster.bootstrap_servers
    commands.list_letters(forged, bootstrap_servers=at)
    commands.list_letters(forged, full=True, as_json=True, bootstrap_servers=at)
    commands.summarize(forged, bootstrap_servers=at)
    commands.show(forged, "0:8", bootstrap_servers=at)
    capsys.readouterr()
    dry = awoke_says("dead-letter", "replay", forged, "--dry-run", "-b", at)
    assert "it would ask about foreign topics: " in dry
    assert len(dry) < 10_000


def test_a_replay_sends_no_forged_letter_without_being_told(mock_cluster: MockCluster, forged: str) -> None:
    at = ("--bootstrap-servers", mock_cluster.bootstrap_servers)
    refused = awoke_says("dead-letter", "replay", forged, "--yes", *at, code=2)
    assert "foreign topics: " in refused
    assert "--yes-topic TOPIC" in refused
    # All to one topic: what is no letter is left out, and one without a value is refused.
    target = unique("target")
    mock_cluster.create_topic(target)
    group = ("--group", unique("replay"))
    said = awoke_says("dead-letter", "replay", forged, "--yes", "--topic", target, *group, *at, code=1)
    assert "Traceback" not in said
    assert "the letter has no value" in said
    assert {message.value for message in letters_in(mock_cluster, target)} == {b"value"}


def test_a_replay_asks_at_a_terminal(mock_cluster: MockCluster) -> None:
    name, other, dead = unique("in"), unique("other"), unique("dead")
    for each in (name, other, dead):
        mock_cluster.create_topic(each)
    put(
        mock_cluster,
        dead,
        (b"k", b"1", headers_of(name)),
        (b"k", b"2", headers_of(name)),
        (b"k", b"3", headers_of(other)),
    )
    said = typed(f"dead-letter replay {dead} -b {mock_cluster.bootstrap_servers}".split(), "y\nn\n")
    assert f"Send 2 to {name}? It is a foreign topic: only the letters name it. [y/N]: " in said
    assert f"Send 1 to {other}? It is a foreign topic: only the letters name it. [y/N]: " in said
    assert f"sent 2 to {name}" in said
    assert [message.value for message in letters_in(mock_cluster, name)] == [b"1", b"2"]
    assert letters_in(mock_cluster, other) == []


def typed(arguments: list[str], keys: str) -> str:
    """Returns the output of a command at a terminal with typed input."""
    ours, its = pty.openpty()
    try:
        os.write(ours, keys.encode())
        command = [sys.executable, "-c", "from awoke.cli import main; main()", *arguments]
        done = subprocess.run(command, stdin=its, capture_output=True, text=True, timeout=100, check=False)
    finally:
        os.close(ours)
        os.close(its)
    return done.stdout + done.stderr
