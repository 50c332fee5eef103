"""The letters of a replay, and its bounds."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.console.letters.listing import fingerprint_of
from awoke.console.letters.replaying import ReplayWanted, check, digest_of, select
from tests.unit.cli.fakes import letter

LETTERS = [letter(0), letter(1, error_text="timed out"), letter(2, handler="book")]


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        ({}, [0, 1, 2]),
        ({"places": [(0, 2), (0, 0)]}, [0, 2]),
        ({"fingerprint": fingerprint_of(LETTERS[1])}, [1]),
        ({"error": "no card"}, [0, 2]),
        ({"handler": "book", "error": "timed"}, []),
    ],
)
def test_letters_are_selected_by_place_or_by_their_failure(wanted: dict[str, Any], offsets: list[int]) -> None:
    found = select(LETTERS, ReplayWanted(topic="dead", **wanted))
    assert [each.message.offset for each in found] == offsets


@pytest.mark.parametrize("changes", [{"count": 0}, {"count": 10_001}, {"rate_per_s": 0.0}, {"to": "a b"}])
def test_a_replay_has_bounds(changes: dict[str, Any]) -> None:
    with pytest.raises(awoke.ConfigError):
        check(ReplayWanted(topic="dead", **changes))


def test_a_digest_is_of_letters_and_targets() -> None:
    first = digest_of([(0, 1), (0, 2)], ["orders"])
    assert first == digest_of([(0, 1), (0, 2)], ["orders"])
    assert first != digest_of([(0, 1)], ["orders"])
    assert first != digest_of([(0, 1), (0, 2)], ["payments"])
