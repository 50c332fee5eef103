"""Options that several commands share: `name=value` words, and questions to the operator."""

from __future__ import annotations

import pytest
import typer

from awoke.cli import options
from awoke.cli.options import confirm, pairs
from awoke.errors import ConfigError


def test_words_become_a_dictionary_and_the_last_of_a_name_wins() -> None:
    assert pairs(None, "--kafka") == pairs([], "--kafka") == {}
    assert pairs(["acks=1", "a==b=", "empty=", "acks=all"], "--kafka") == {"acks": "all", "a": "=b=", "empty": ""}


@pytest.mark.parametrize("word", ["canary", "=canary", ""])
def test_a_word_without_a_name_or_an_equals_sign_is_refused_and_not_quoted(word: str) -> None:
    with pytest.raises(ConfigError, match="--kafka takes name=value") as refused:
        pairs(["acks=1", word], "--kafka")
    assert refused.value.property == "--kafka"
    assert "canary" not in str(refused.value)


def test_secrets_among_the_words_are_hidden_from_other_users(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[dict[str, str]] = []
    monkeypatch.setattr("awoke.cli.options.arguments.hide_secrets", hidden.append)
    pairs(["sasl.password=canary"], "--kafka")
    assert hidden == [{"sasl.password": "canary"}]


class Terminal:
    """Standard input; `asked` has the questions."""

    def __init__(self, answer: bool | None) -> None:
        self._answer, self.asked = answer, list[str]()

    def isatty(self) -> bool:
        return self._answer is not None

    def ask(self, question: str) -> bool:
        self.asked.append(question)
        return bool(self._answer)


def at(monkeypatch: pytest.MonkeyPatch, answer: bool | None) -> Terminal:
    terminal = Terminal(answer)
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr(options, "ask", terminal.ask)
    return terminal


def test_a_question_is_asked_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at(monkeypatch, True)
    confirm("Delete all?", yes=False)
    assert terminal.asked == ["Delete all?"]


def test_no_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, False)
    with pytest.raises(typer.Abort):
        confirm("Delete all?", yes=False)


def test_yes_needs_neither_a_question_nor_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at(monkeypatch, None)
    confirm("Delete all?", yes=True)
    assert terminal.asked == []


def test_without_a_terminal_yes_must_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at(monkeypatch, None)
    with pytest.raises(ConfigError, match="no terminal to ask at: say --yes"):
        confirm("Delete all?", yes=False)
    assert terminal.asked == []
