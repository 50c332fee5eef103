"""The topics of a replay: the operator is asked about each that only the letters name, which may be forged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from awoke.cli import dead_letter
from awoke.cli.dead_letter import FOREIGN_MAX, Targets
from awoke.errors import AppNotFound, ConfigError
from awoke.operate.dead_letters.letters import Letter
from awoke.operate.dead_letters.targets import shortened
from awoke.payloads.dead_letter import LetterOrigin

HOSTILE_TOPICS = ("", "..", "a b", "x" * 900_000, "\x1b[31m", "top\x00ic", "\u202e", "[/x]", "a/b")


def letter_to(topic: str, **more: Any) -> Letter:
    """A dead letter that names a topic."""
    message: Any = None
    return Letter(message, LetterOrigin(topic, 0, 5, None, "group", 3, "ValueError", "no", 1_760_000_000_000, **more))


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
        monkeypatch.setattr(dead_letter, "ask", operator)
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
    with pytest.raises(ConfigError, match=r"foreign topics: 1 to orders; .*--yes-topic TOPIC"):
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


def test_topics_are_granted_together_only_if_each_is_named() -> None:
    named = Targets(None, None, ["orders", "payments"])
    assert named.is_granted([letter_to("orders"), letter_to("payments")])
    assert not named.is_granted([letter_to("orders"), letter_to("refunds")])
    assert not Targets("orders", None, []).is_granted([letter_to("orders")]), (
        "--topic names a target, and grants nothing"
    )


def test_a_question_and_a_refusal_name_the_app_that_reads_none_of_it(
    at_a_terminal: Callable[..., Operator], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = at_a_terminal(False)
    assert Targets(None, "examples.hello:app", []).confirmed([letter_to("payments")]) == []
    assert operator.asked == ["Send 1 to payments? It is a foreign topic: no route of examples.hello:app reads it."]


def test_an_app_that_does_not_exist_is_named_before_anything_is_read() -> None:
    with pytest.raises(AppNotFound, match="there is no module 'nowhere'"):
        Targets(None, "nowhere:app", [])
