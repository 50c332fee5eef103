"""Fingerprints of dead letters."""

from __future__ import annotations

import pytest

from awoke.console.letters.fingerprints import TEXT_MAX, fingerprint_of, without_details
from tests.unit.cli.fakes import letter


def test_letters_that_differ_in_details_have_one_fingerprint() -> None:
    first = fingerprint_of(letter(0, error_text="no card 'a1' for order 7"))
    assert first == fingerprint_of(letter(1, error_text="no card 'b2' for order 99"))
    assert first != fingerprint_of(letter(2, error_text="no bank 'a1' for order 7"))
    assert first != fingerprint_of(letter(3, error_text="no card 'a1' for order 7", handler="book"))
    assert first != fingerprint_of(letter(4, error_text="no card 'a1' for order 7", error_type="KeyError"))


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("id 0x7f3f and 12", "id … and …"),
        ('no "x y" here', "no … here"),
        ("uuid 550e8400-e29b", "uuid …-e…b"),
        ("x" * 5_000, "x" * TEXT_MAX),
        ("'" + "y" * 5_000, "'" + "y" * (TEXT_MAX - 1)),
    ],
)
def test_details_are_left_out(text: str, rest: str) -> None:
    assert without_details(text) == rest
