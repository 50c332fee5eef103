"""Options that several commands share: `name=value` words, and places in a topic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from awoke.cli.options import end_place, pairs, place
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


def test_a_place_is_a_name_an_offset_a_time_or_an_age() -> None:
    assert [place(word) for word in ("earliest", "latest", "0042")] == ["earliest", "latest", 42]
    assert place("2026-01-31T12:00Z") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert place("2026-01-31T12:00") == datetime(2026, 1, 31, 12).astimezone()
    before, found = datetime.now(UTC), place("2h")
    assert isinstance(found, datetime)
    assert abs(before - found - timedelta(hours=2)) < timedelta(minutes=1)


def test_what_is_no_place_is_refused_by_the_name_of_its_option() -> None:
    with pytest.raises(ConfigError, match=r"--from takes earliest, latest, an offset, a time .* not 'soon'"):
        place("soon")
    for word in ("latest", "soon"):
        with pytest.raises(ConfigError, match=f"--to takes .* not '{word}'"):
            end_place(word)
    assert (end_place(None), end_place("7")) == (None, 7)
