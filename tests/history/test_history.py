"""The checker finds what a history hides, and finds nothing in ten seconds of faults."""

from __future__ import annotations

import itertools

import pytest

from tests.history.checker import History, Verdict, check
from tests.history.feeder import value_of
from tests.history.plan import plan
from tests.history.run import run
from tests.history.settings import Run
from tests.support.judge import Progress, Record

SECONDS = 10.0
FAULTS = ("kill", "freeze", "continue", "terminate", "add", "remove", "bounce", "cut")
VALUES = [value_of(key, sequence) for sequence in range(5) for key in range(2)]


def log_of(values: list[bytes]) -> dict[int, list[Record]]:
    return {0: [Record(offset, value.split(b":")[0], value) for offset, value in enumerate(values)]}


def verdict_of(output: list[bytes], mode: str = "plain", lost: int = 0, committed: int | None = None) -> Verdict:
    """Of a run whose input lost this many of its last messages, all of which were acknowledged."""
    kept = VALUES[: len(VALUES) - lost]
    progress = {0: Progress(len(kept) if committed is None else committed, len(kept))}
    return check(History(mode, [set(VALUES)], [log_of(kept)], log_of(output), progress, unclean_elections=0))


def test_a_whole_copy_is_found_good() -> None:
    assert verdict_of(VALUES, "exactly-once").faults == []


def test_a_message_that_is_missing_is_found() -> None:
    verdict = verdict_of(VALUES[:-1])
    assert verdict.missing == VALUES[-1:]
    assert verdict.faults == ["messages are missing"]


def test_a_message_that_overtook_another_is_found() -> None:
    first, other, second = VALUES[0], VALUES[1], VALUES[2]
    verdict = verdict_of([second, other, first, *VALUES[3:]])
    assert verdict.out_of_order == 1
    assert verdict.faults == ["messages came out of order"]


def test_messages_of_several_keys_have_no_order() -> None:
    by_key = sorted(VALUES, key=lambda value: value.split(b":")[0])
    assert verdict_of(by_key).faults == []


@pytest.mark.parametrize(("mode", "faults"), [("plain", []), ("exactly-once", ["messages came twice"])])
def test_messages_that_come_again_count(mode: str, faults: list[str]) -> None:
    verdict = verdict_of([*VALUES, *VALUES[:3]], mode)
    assert (verdict.duplicates, verdict.out_of_order) == (3, 0)
    assert verdict.faults == faults


def test_a_message_that_was_never_written_is_found() -> None:
    assert verdict_of([*VALUES, value_of(7, 7)]).faults == ["the output holds what was never written"]


def test_what_the_brokers_lost_is_found_and_is_not_missing() -> None:
    verdict = verdict_of(VALUES[:8], lost=2)
    assert (verdict.lost_by_elections, verdict.missing) == (2, [])
    assert verdict.faults == ["the brokers lost messages without an unclean election"]


@pytest.mark.parametrize("committed", [-1, 9, 12])
def test_a_committed_offset_that_is_not_the_end_is_found(committed: int) -> None:
    assert verdict_of(VALUES, committed=committed).faults == ["the committed offsets are not at the end"]


def test_the_same_seed_plans_the_same_faults() -> None:
    same, again, other = (list(itertools.islice(plan(Run(seed=seed)), 50)) for seed in (3, 3, 4))
    assert same == again != other


def test_nothing_is_lost_in_ten_seconds_of_faults() -> None:
    outcome = run(Run(mode="plain", protocol="cooperative", seconds=SECONDS, seed=10, faults=FAULTS))
    assert outcome.faults == []
    assert outcome.verdict.acknowledged > 0
    assert sum(outcome.done.values()) >= 1
