"""Reads the dead letters of a topic, picks some of them, groups them by fingerprint, and compares their attempts."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from awoke.console.access import READ_TIMEOUT_S, Brokers
from awoke.console.explorer.parts import DecodedParts
from awoke.console.letters.views import AttemptView, LetterGroup, LetterRow, LettersView, LetterView
from awoke.console.views import ErrorRecord
from awoke.operate.dead_letters.letters import Filter, Letter, Place
from awoke.payloads import dead_letter
from awoke.text.secrets import key_hash

READ_MAX = 20_000
"""The most messages of a topic that are read: its last ones."""
TOPICS_MAX = 10
INTEGER_MAX = 1 << 53
"""A larger number is shown as text: a header may hold any number, and JSON's readers round it."""
COMPARED = ("error_type", "error_text", "traceback", "node")
DETAILS = re.compile(r"""'[^']{0,200}'|"[^"]{0,200}"|0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}|[0-9]+""")
"""Parts of an error's text that differ from message to message: quotations, addresses, ids and numbers."""
TEXT_MAX = 200
"""The characters of a text that count: behind them, texts often quote the message."""


class Read(NamedTuple):
    """The dead letters that were read."""

    letters: list[Letter]
    others: int
    """Messages that are no dead letters."""
    is_partial: bool


def read_letters(brokers: Brokers, topic: str, read_max: int = READ_MAX) -> Read:
    """Returns the last dead letters of a topic, in the order of each partition. Blocks.

    Raises:
        UnknownTopic; AuthorizationFailed; OperationTimeout; BrokerUnreachable.
    """
    with brokers.admin() as admin:
        starts, ends = admin.start_offsets(topic), admin.end_offsets(topic)
    filled = [each for each in ends if ends[each] > starts.get(each, 0)]
    if not filled:
        return Read([], 0, is_partial=False)
    count = max(1, read_max // len(filled))
    first = {each: max(starts[each], ends[each] - count) for each in filled}
    letters, others = list[Letter](), 0
    with brokers.reader(topic, first) as reader:
        for message in reader.read_until_end(READ_TIMEOUT_S):
            origin = dead_letter.origin(message)
            others += origin is None
            if origin is not None:
                letters.append(Letter(message, origin))
    return Read(letters, others, is_partial=any(first[each] > starts[each] for each in filled))


def list_letters(topic: str, read: Read, wanted: Filter = Filter(), fingerprint: str = "") -> LettersView:  # noqa: B008
    """Returns the letters that a filter selects, of one fingerprint if one is named. Does not block."""
    chosen = pick(read.letters, wanted, fingerprint)
    rows = [row_of(each) for each in chosen]
    rows.sort(key=lambda each: (-each.failed_at_ms, each.partition, each.offset))
    return LettersView(topic=topic, letters=rows, groups=group(rows), others=read.others, is_partial=read.is_partial)


def pick(letters: Iterable[Letter], wanted: Filter, fingerprint: str = "") -> list[Letter]:
    """Returns the letters that a filter selects, of one fingerprint if one is named."""
    return [each for each in letters if wanted.wants(each) and (not fingerprint or fingerprint_of(each) == fingerprint)]


def group(rows: Iterable[LetterRow]) -> list[LetterGroup]:
    """Returns letters by their fingerprints, the most frequent first; `rows` begin with the last to fail."""
    found: dict[str, LetterGroup] = {}
    for row in rows:
        known = found.get(row.fingerprint)
        if known is None:
            found[row.fingerprint] = LetterGroup(
                fingerprint=row.fingerprint,
                count=1,
                error_type=row.error_type,
                handler=row.handler,
                topics=[row.topic],
                first_ms=row.failed_at_ms,
                last_ms=row.failed_at_ms,
                example=row,
            )
            continue
        known.count += 1
        known.first_ms = min(known.first_ms, row.failed_at_ms)
        if row.topic not in known.topics and len(known.topics) < TOPICS_MAX:
            known.topics.append(row.topic)
    return sorted(found.values(), key=lambda each: (-each.count, each.fingerprint))


def row_of(letter: Letter) -> LetterRow:
    """Returns a dead letter for a list."""
    origin = letter.origin
    return LetterRow(
        partition=letter.message.partition,
        offset=letter.message.offset,
        fingerprint=fingerprint_of(letter),
        topic=origin.topic,
        original_partition=_in_range(origin.partition),
        original_offset=_in_range(origin.offset),
        group=origin.group,
        handler=origin.handler,
        attempts=_in_range(origin.attempts),
        failed_at_ms=min(max(origin.failed_at_ms, 0), INTEGER_MAX),
        error_type=origin.error_type,
        error_text=origin.error_text,
        key_hash=key_hash(letter.message.raw_key),
    )


def _in_range(value: int) -> int | str:
    return value if -INTEGER_MAX < value < INTEGER_MAX else str(value)


def show_letter(
    letter: Letter, letters: Iterable[Letter], errors: Iterable[ErrorRecord], parts: DecodedParts
) -> LetterView:
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


def fingerprint_of(letter: Letter) -> str:
    """Returns the fingerprint of a dead letter. Does not block."""
    origin = letter.origin
    parts = [origin.error_type, origin.handler, without_details(origin.error_text)]
    return hashlib.blake2b("\n".join(parts).encode(errors="replace"), digest_size=8).hexdigest()


def without_details(text: str) -> str:
    """Returns the text of an error without what differs from message to message."""
    return DETAILS.sub("…", text[: 5 * TEXT_MAX])[:TEXT_MAX]
