"""A client with the right to write to a dead letter topic can forge a letter. It reaches no topic but those that the
operator has named."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from awoke import dead_letter
from awoke.cli import dead_letter as commands
from awoke.cli import targets
from awoke.cli.letters import Letter
from awoke.cli.targets import FOREIGN_MAX, Targets, shortened
from awoke.dead_letter import Origin
from awoke.errors import AwokeError, ConfigError
from tests.contract.test_dead_letter_commands import headers_of, put
from tests.contract.test_recovery import letters as letters_in
from tests.scenarios.test_command_line import awoke_says
from tests.support.clusters import MockCluster, unique

HOSTILE_TOPICS = ("", "..", "a b", "x" * 900_000, "\x1b[31m", "top\x00ic", "\u202e", "[/x]", "a/b")


def letter_to(topic: str, **more: Any) -> Letter:
    """A dead letter that names a topic."""
    message: Any = None
    return Letter(message, Origin(topic, 0, 5, None, "group", 3, "ValueError", "no", 1_760_000_000_000, **more))


class Operator:
    """Answers each question, and keeps it."""

    def __init__(self, *answers: bool) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, question: str) -> bool:
        self.asked.append(question)
        return self.answers.pop(0)


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Operator]:
    def sits(*answers: bool) -> Operator:
        operator = Operator(*answers)
        monkeypatch.setattr(targets, "ask", operator)
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        return operator

    return sits


def test_each_foreign_topic_is_asked_about_with_its_name_and_count(at_a_terminal: Callable[..., Operator]) -> None:
    operator = at_a_terminal(True, False)
    chosen = [letter_to("orders"), letter_to("orders"), letter_to("payments"), letter_to("known")]
    sent = Targets(None, None, ["known"]).confirmed(chosen)
    assert sent == [chosen[0], chosen[1], chosen[3]]
    assert [question[: question.index("?")] for question in operator.asked] == [
        "Send 2 to orders",
        "Send 1 to payments",
    ]


def test_what_the_operator_or_the_app_names_is_not_asked_about(at_a_terminal: Callable[..., Operator]) -> None:
    operator = at_a_terminal()
    chosen = [letter_to("signups"), letter_to("payments")]
    assert Targets("orders", None, []).confirmed(chosen) == chosen
    assert Targets(None, "examples.hello:app", ["payments"]).confirmed(chosen) == chosen
    assert operator.asked == []
    assert Targets(None, "examples.hello:app", []).foreign(chosen) == {"payments": 1}


def test_without_a_terminal_a_foreign_topic_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(ConfigError, match=r"foreign topics: 1 to orders; .*--yes-to TOPIC"):
        Targets(None, None, []).confirmed([letter_to("orders")])


def test_an_operator_is_not_asked_without_end(at_a_terminal: Callable[..., Operator]) -> None:
    operator = at_a_terminal()
    with pytest.raises(ConfigError, match="others to 990 topics more"):
        Targets(None, None, []).confirmed([letter_to(f"t{number}") for number in range(1_000)])
    assert operator.asked == []
    assert FOREIGN_MAX <= 10


@pytest.mark.parametrize("topic", HOSTILE_TOPICS)
def test_a_letter_that_names_no_topic_is_refused_and_shown(topic: str, at_a_terminal: Callable[..., Operator]) -> None:
    operator = at_a_terminal(True)
    Targets(None, None, []).confirmed([letter_to(topic)])
    assert operator.asked[0].isprintable()
    assert len(operator.asked[0]) < 1_500
    assert shortened(topic).isprintable()
    with pytest.raises(ConfigError, match="a topic's name has"):
        Targets(None, None, []).check(letter_to(topic))


def test_a_letter_without_its_value_is_not_sent_as_an_empty_message() -> None:
    with pytest.raises(AwokeError, match=r"lies at orders\[0\] offset 5 \(7 bytes\)"):
        Targets("orders", None, []).check(letter_to("orders", value_bytes=7))


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
    commands.replay(forged, dry_run=True, bootstrap_servers=at)
    dry = capsys.readouterr().out
    assert "it would ask about foreign topics: " in dry
    assert len(dry) < 10_000


def test_a_replay_sends_no_forged_letter_without_being_told(mock_cluster: MockCluster, forged: str) -> None:
    at = ("--bootstrap-servers", mock_cluster.bootstrap_servers)
    refused = awoke_says("dead-letter", "replay", forged, "--yes", *at, code=2)
    assert "foreign topics: " in refused
    assert "--yes-to TOPIC" in refused
    # All to one topic: what is no letter is left out, and one without a value is refused.
    target = unique("target")
    mock_cluster.create_topic(target)
    group = ("--group", unique("replay"))
    said = awoke_says("dead-letter", "replay", forged, "--yes", "--to", target, *group, *at, code=1)
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
