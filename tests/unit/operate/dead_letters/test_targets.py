"""The topics to which dead letters are sent again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from awoke.errors import AwokeError
from awoke.operate.dead_letters.letters import Letter
from awoke.operate.dead_letters.targets import TOPIC_BYTES_MAX, ReplayTargets, shortened, summary
from awoke.payloads.dead_letter import LetterOrigin


def never(topic: str) -> bool:
    return False


def letter_to(topic: str, **more: Any) -> Letter:
    """A dead letter that names a topic."""
    message: Any = None
    return Letter(message, LetterOrigin(topic, 0, 5, None, "group", 3, "ValueError", "no", 1_760_000_000_000, **more))


def test_a_topic_is_foreign_unless_the_operator_or_the_app_names_it() -> None:
    targets = ReplayTargets(None, lambda topic: topic == "orders", ["payments"])
    chosen = [letter_to("orders"), letter_to("payments"), letter_to("refunds"), letter_to("refunds")]
    assert targets.foreign(chosen) == {"refunds": 2}
    assert ReplayTargets("repaired", never).foreign(chosen) == {}


def test_a_letter_without_its_value_is_not_sent_as_an_empty_message() -> None:
    with pytest.raises(AwokeError, match=r"lies at orders\[0\] offset 5 \(7 bytes\)"):
        ReplayTargets("orders", never).check(letter_to("orders", value_bytes=7))


def test_a_letter_goes_where_it_came_from_or_where_the_operator_says() -> None:
    assert ReplayTargets(None, never).of(letter_to("orders")) == "orders"
    assert ReplayTargets("repaired", never).of(letter_to("orders")) == "repaired"


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "none"),
        ({"b": 1, "a": 2}, "2 to a, 1 to b"),
        ({f"t{number:02}": 1 for number in range(12)}, "and others to 2 topics more"),
    ],
)
def test_a_summary_is_sorted_and_bounded(counts: dict[str, int], said: str) -> None:
    assert summary(Counter(counts)).endswith(said)


def test_a_summary_of_many_topics_names_the_most_frequent() -> None:
    counts = {f"t{number:02}": number for number in range(1, 13)}
    found = summary(Counter(counts))
    assert "12 to t12" in found
    assert "to t01" not in found


def test_a_long_name_is_shortened_behind_what_brokers_take() -> None:
    assert shortened("x" * TOPIC_BYTES_MAX) == "x" * TOPIC_BYTES_MAX
    assert shortened("x" * 900).endswith("x…")
    assert len(shortened("x" * 900)) == TOPIC_BYTES_MAX + 2
