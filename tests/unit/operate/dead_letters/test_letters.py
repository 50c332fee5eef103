"""Dead letters that were written: places, filters, and the times that `--from` takes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import awoke
from awoke.operate.dead_letters.letters import Filter, letter_of, moment_ms, place_of
from tests.support.messages import changed, stored_message
from tests.unit.cli.fakes import FIRST_MS, letter, stored

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
STRANGER: Any = stored_message(None, b"no letter", [])


@pytest.mark.parametrize(
    ("word", "moment"),
    [
        ("90s", datetime(2026, 1, 31, 11, 58, 30, tzinfo=UTC)),
        ("30m", datetime(2026, 1, 31, 11, 30, tzinfo=UTC)),
        ("2h", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("7d", datetime(2026, 1, 24, 12, tzinfo=UTC)),
        ("2026-01-31T11:00:00+00:00", datetime(2026, 1, 31, 11, tzinfo=UTC)),
        ("2026-01-31T11:00", datetime(2026, 1, 31, 11).astimezone()),
    ],
)
def test_a_moment_is_a_time_or_how_long_ago(word: str, moment: datetime) -> None:
    assert moment_ms(word, NOW) == moment.timestamp() * 1_000


@pytest.mark.parametrize("word", ["", "soon", "-5m", "5w", "999999999d", "2026-13-01"])
def test_what_is_no_moment_is_refused(word: str) -> None:
    with pytest.raises(awoke.ConfigError, match="--from takes a time"):
        moment_ms(word, NOW)


@pytest.mark.parametrize(("word", "place"), [("0:42", (0, 42)), ("12:0", (12, 0)), ("007:1", (7, 1))])
def test_a_place_is_a_partition_and_an_offset(word: str, place: tuple[int, int]) -> None:
    assert place_of(word) == place


@pytest.mark.parametrize("word", ["", "42", "0:", ":42", "0:-1", "a:b", "0:42 ", "\u0663:1", "0:" + "9" * 19])
def test_what_is_no_place_is_refused(word: str) -> None:
    with pytest.raises(awoke.ConfigError, match="a place is PARTITION:OFFSET, as in 0:42") as refused:
        place_of(word)
    assert refused.value.property == "place"


def test_a_message_is_a_letter_with_its_place_and_error() -> None:
    found = letter_of(stored(9, partition=2, error_text="no card"))
    assert (found.place, found.error) == ((2, 9), "ValueError: no card")
    with pytest.raises(awoke.AwokeError, match=r"orders\.dead\[0\] offset 7 is no dead letter: it has no header"):
        letter_of(STRANGER)


LETTER = letter(0, error_text="No Card", handler="charge", key=b"k\xff")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), True),
        (Filter(from_ms=FIRST_MS), True),
        (Filter(from_ms=FIRST_MS + 1), False),
        (Filter(to_ms=FIRST_MS), False),
        (Filter(to_ms=FIRST_MS + 1), True),
        (Filter(error="no card"), True),
        (Filter(error="valueerror: no"), True),
        (Filter(error="bank"), False),
        (Filter(handler="charge"), True),
        (Filter(handler="charg"), False),
        (Filter(key=r"k\xff"), True),
        (Filter(key="k"), False),
        (Filter(from_ms=FIRST_MS, error="card", handler="charge", key=r"k\xff"), True),
        (Filter(from_ms=FIRST_MS, error="card", handler="other", key=r"k\xff"), False),
    ],
)
def test_a_filter_selects_by_all_of_its_fields(wanted: Filter, expected: bool) -> None:
    assert wanted.wants(LETTER) is expected
    assert wanted.is_any is (wanted == Filter())


@pytest.mark.parametrize("key", ["a\\tb", "a\tb"])
def test_a_key_is_named_as_it_is_or_as_it_is_shown(key: str) -> None:
    assert Filter(key=key).wants(letter(0, key=b"a\tb"))


def test_a_letter_without_a_key_has_none_of_any_name() -> None:
    keyless: Any = changed(stored(), key=None)
    assert not Filter(key="").wants(letter_of(keyless))


def test_the_options_of_a_command_are_a_filter() -> None:
    assert Filter.of(None, None, None, None, None).is_any
    assert Filter.of("2026-01-31T11:00Z", None, "e", "h", "k") == Filter(
        moment_ms("2026-01-31T11:00Z", NOW), None, "e", "h", "k"
    )
