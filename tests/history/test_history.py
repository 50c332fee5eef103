"""The checker finds what a history hides, and finds nothing in ten seconds of faults."""

from __future__ import annotations

import itertools

import pytest

from tests.history.checker import History, Source, Verdict, check
from tests.history.feeder import value_of
from tests.history.plan import WEIGHTS, plan
from tests.history.run import run
from tests.history.settings import COPIES, FAULTS, Run
from tests.support.judge import Log, Progress, Record

SECONDS = 10.0
OF_MEMBERS = ("kill", "freeze", "continue", "terminate", "add", "remove")
OF_NODES = ("scale", "reload", "replace", "kill-node")
QUICK = (*OF_MEMBERS, *OF_NODES, "bounce", "cut", "appear")
VALUES = [value_of(key, sequence) for sequence in range(5) for key in range(2)]
OTHERS = [value_of(key, sequence) for sequence in range(5) for key in range(40, 42)]
"""Of another topic."""


def log_of(values: list[bytes]) -> Log:
    return {0: [Record(offset, value.split(b":")[0], value) for offset, value in enumerate(values)]}


def source(values: list[bytes], lost: int = 0, committed: int | None = None, deleted: tuple[bytes, ...] = ()) -> Source:
    """A topic that lost this many of its last messages; it held the deleted ones before it was made again."""
    kept = values[: len(values) - lost]
    progress = {0: Progress(len(kept) if committed is None else committed, len(kept))}
    return Source([set(deleted), set(values)], [log_of(list(deleted)), log_of(kept)], progress)


def verdict_of(output: list[bytes], mode: str = "plain", lost: int = 0, committed: int | None = None) -> Verdict:
    """Of a run whose input lost this many of its last messages, all of which were acknowledged."""
    return check(History(mode, [source(VALUES, lost, committed)], log_of(output)))


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


def test_a_message_of_a_topic_that_appeared_is_found_missing() -> None:
    sources = [source(VALUES), source(OTHERS)]
    assert check(History("plain", sources, log_of(VALUES + OTHERS))).faults == []
    verdict = check(History("plain", sources, log_of(VALUES + OTHERS[1:])))
    assert (verdict.missing, verdict.faults) == (OTHERS[:1], ["messages are missing"])


def test_a_message_of_a_topic_that_was_made_again_is_found_missing_where_it_was_not_deleted() -> None:
    made_again = source(VALUES[4:], deleted=tuple(VALUES[:4]))
    verdict = check(History("plain", [made_again], log_of(VALUES[2:])))
    assert (verdict.lost_by_deletion, verdict.faults) == (2, [])
    assert check(History("plain", [made_again], log_of(VALUES[:9]))).missing == VALUES[9:]


def test_partitions_that_no_member_owns_are_found() -> None:
    verdict = check(History("plain", [source(VALUES)], log_of(VALUES), unowned={("input", 0), ("input", 3)}))
    assert (verdict.unowned, verdict.faults) == (2, ["partitions have no owner"])


def test_each_fault_is_planned_and_concerns_each_group() -> None:
    planned = list(itertools.islice(plan(Run()), 1_000))
    assert {fault.name for fault in planned} == set(FAULTS) > set(WEIGHTS)
    kills = {fault.which % len(COPIES) for fault in planned if fault.name == "kill"}
    assert kills == set(range(len(COPIES)))


def test_the_same_seed_plans_the_same_faults() -> None:
    same, again, other = (list(itertools.islice(plan(Run(seed=seed)), 50)) for seed in (3, 3, 4))
    assert same == again != other


def test_nothing_is_lost_in_ten_seconds_of_faults() -> None:
    outcome = run(Run(mode="plain", protocol="cooperative", seconds=SECONDS, seed=1234, faults=QUICK))
    assert outcome.faults == []
    assert all(verdict.acknowledged > 0 for verdict in outcome.verdicts.values())
    assert sum(outcome.done.values()) >= 1
