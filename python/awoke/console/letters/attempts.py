"""Compares the attempts at a dead letter's message: its error records, and the letters that it has become before."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from awoke.console.explorer.parts import Parts
from awoke.console.letters.fingerprints import fingerprint_of
from awoke.console.letters.listing import row_of
from awoke.console.letters.views import AttemptView, LetterView
from awoke.console.views import ErrorRecord
from awoke.operate.dead_letters.letters import Letter, Place

COMPARED = ("error_type", "error_text", "traceback", "node")


def show_letter(letter: Letter, letters: Iterable[Letter], errors: Iterable[ErrorRecord], parts: Parts) -> LetterView:
    """Returns one letter with all attempts that are known. May block for a schema of the registry."""
    return LetterView(
        row=row_of(letter),
        message=parts.message(letter.message),
        attempts=attempts_of(letter, letters, errors),
        lost_value_bytes=letter.origin.value_bytes,
    )


def find(letters: Iterable[Letter], place: Place) -> Letter | None:
    """Returns the letter at a place; None where there is none."""
    return next((each for each in letters if each.place == place), None)


def attempts_of(letter: Letter, letters: Iterable[Letter], errors: Iterable[ErrorRecord]) -> list[AttemptView]:
    """Returns the attempts at the message of a letter, the oldest first, each with what has changed."""
    found = sorted([*_recorded(letter, errors), *_lettered(letter, letters)], key=lambda each: each.at_ms)
    for before, after in itertools.pairwise(found):
        after.changed = [
            name
            for name in COMPARED
            if None not in (old := getattr(before, name), new := getattr(after, name)) and old != new
        ]
    return found


def _recorded(letter: Letter, errors: Iterable[ErrorRecord]) -> Iterator[AttemptView]:
    origin = letter.origin
    for each in errors:
        if (each.topic, each.partition, each.offset) == (origin.topic, origin.partition, origin.offset):
            yield AttemptView(
                at_ms=each.at_ms,
                attempt=each.attempt,
                node=each.node,
                error_type=each.error_type,
                error_text=each.error_text,
                fingerprint=each.fingerprint,
                traceback=each.traceback,
                changed=[],
                place="errors",
            )


def _lettered(letter: Letter, letters: Iterable[Letter]) -> Iterator[AttemptView]:
    """Yields the last attempt of each letter of the same message; a replay gives it another offset."""
    origin = letter.origin
    same = (origin.topic, origin.partition, origin.offset)
    for each in letters:
        if each.place == letter.place or (each.origin.topic, each.origin.partition, each.origin.offset) == same:
            row = row_of(each)
            yield AttemptView(
                at_ms=row.failed_at_ms,
                attempt=row.attempts if isinstance(row.attempts, int) else None,
                node=None,
                error_type=row.error_type,
                error_text=row.error_text,
                fingerprint=fingerprint_of(each),
                traceback=None,
                changed=[],
                place="{}:{}".format(*each.place),
            )
