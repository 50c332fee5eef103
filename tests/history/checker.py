"""Compares what a group read with what its output holds. Knows no cluster: it is given logs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from tests.history.feeder import key_and_sequence
from tests.support.judge import Log, Progress

REPEATS_MIN = 200
"""The number of messages of a partition that are produced in a few seconds."""


class Source(NamedTuple):
    """A topic that a group read. It may have been made again, several times."""

    acknowledged: Sequence[Set[bytes]]
    """The messages that brokers acknowledged to the producer, by incarnation."""
    logs: Sequence[Log]
    """The log of each incarnation: of the earlier ones when they were deleted, of the last one in the end."""
    progress: dict[int, Progress]
    """The offsets of the group in the last incarnation."""


class History(NamedTuple):
    """The logs, offsets and owners that a group left behind."""

    mode: str
    sources: Sequence[Source]
    output: Log
    """The committed messages, where that makes a difference."""
    unowned: Set[tuple[str, int]] = frozenset()
    """The partitions that no member owned when the nemesis had come to rest."""
    unclean_elections: int = 0


class Verdict(NamedTuple):
    """The findings of the checker. Counts are of messages."""

    acknowledged: int
    lost_by_elections: int
    """Acknowledged, and no longer in the input."""
    lost_by_deletion: int
    """In an input that was deleted before they were processed."""
    missing: list[bytes]
    """In the input, not in the output."""
    out_of_order: int
    """First came after a later message of its key."""
    duplicates: int
    repeats: list[str]
    """The places of the input where many in a row came again: longer than what was not committed before a fault."""
    unknown: int
    """In the output; neither acknowledged nor in the input."""
    lag: int
    unowned: int
    """Partitions without an owner."""
    faults: list[str]
    """The faults; empty when all is well."""


def check(history: History) -> Verdict:
    """Compare."""
    copied = [record.value for records in history.output.values() for record in records]
    times = Counter(copied)
    sources = [(source, [_values(log) for log in source.logs]) for source in history.sources]
    logs = [log for _, logs in sources for log in logs]
    acknowledged = [acks for source in history.sources for acks in source.acknowledged]
    known = set[bytes]().union(*acknowledged, *logs)
    verdict = Verdict(
        acknowledged=len(set[bytes]().union(*acknowledged)),
        lost_by_elections=sum(len(acks - set(log)) for acks, log in zip(acknowledged, logs, strict=True)),
        lost_by_deletion=sum(value not in times for _, logs in sources for log in logs[:-1] for value in log),
        missing=[value for _, logs in sources for value in logs[-1] if value not in times],
        out_of_order=sum(out_of_order(log, copied) for log in logs),
        duplicates=len(copied) - len(times),
        repeats=[text for source in history.sources for text in _repeats(source, times)],
        unknown=sum(value not in known for value in times),
        lag=sum(each.lag for source in history.sources for each in source.progress.values()),
        unowned=len(history.unowned),
        faults=[],
    )
    return verdict._replace(faults=_faults(history, verdict))


def _faults(history: History, verdict: Verdict) -> list[str]:
    progress = [each for source in history.sources for each in source.progress.values()]
    found = {
        "messages are missing": bool(verdict.missing),
        "messages came out of order": verdict.out_of_order > 0,
        "the output holds what was never written": verdict.unknown > 0,
        "the committed offsets are not at the end": any(each.committed != each.end for each in progress),
        "partitions have no owner": verdict.unowned > 0,
        "messages came twice": history.mode == "exactly-once" and verdict.duplicates > 0,
        "the brokers lost messages without an unclean election": (
            verdict.lost_by_elections > 0 and history.unclean_elections == 0
        ),
    }
    return [text for text, is_so in found.items() if is_so]


def out_of_order(log: Sequence[bytes], copied: Sequence[bytes]) -> int:
    """Returns the number of messages of a log that first came after a later one of their key.

    The order is that of the log; `copied` has the messages of a key in the order in which they came.
    """
    place = {value: number for number, value in enumerate(log)}
    last: dict[int, int] = {}
    count = 0
    for value in dict.fromkeys(copied):
        if value in place:
            key, _ = key_and_sequence(value)
            count += place[value] < last.get(key, -1)
            last[key] = max(place[value], last.get(key, -1))
    return count


def _repeats(source: Source, times: Counter[bytes]) -> Iterator[str]:
    """The runs of messages of a partition that came again, from `REPEATS_MIN` messages on."""
    for incarnation, log in enumerate(source.logs):
        for partition, records in sorted(log.items()):
            for is_again, run in itertools.groupby(records, lambda record: times[record.value] > 1):
                places = [record.offset for record in run]
                if is_again and len(places) >= REPEATS_MIN:
                    yield f"incarnation {incarnation}, partition {partition}: {places[0]} to {places[-1]}"


def _values(log: Log) -> list[bytes]:
    return [record.value for _, records in sorted(log.items()) for record in records]
