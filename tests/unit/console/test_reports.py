"""Reports: what they tell of groups, partitions, failing messages, calls, memory and the last hour, and bounds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import awoke
from awoke.console import reports
from awoke.console.reported_clients import Stable
from awoke.console.reports import (
    AT_WORK_MAX,
    FAILING_MAX,
    MEMORY_SAMPLES,
    MINUTE,
    PARTITIONS_MAX,
    SAMPLES,
    HistoryRing,
    MemoryReader,
    Origin,
    Reports,
    advanced,
    callers_of,
    calls_of,
    read_memory,
)
from awoke.console.views import Memory, Report, Sample, SecretFields
from awoke.observe.events import OutputBlocked
from awoke.observe.metrics.recorder import Health
from awoke.observe.partitions import CommitGap, PartitionState
from awoke.rpc.responder.call_log import CallLog
from awoke.runtime.watch.health import BlockedOutputs
from awoke.settings import load
from awoke.text.secrets import key_hash
from awoke.waiting.clock import monotonic_s, wall_ms

LOADED = load({"workers": 3, "kafka": {"sasl.password": "hunter2"}})
ROLLUP = """5581-7fff ---p 00000000 00:00 0    [rollup]
Rss:               31000 kB
Pss:               20000 kB
Shared_Clean:       9000 kB
Shared_Dirty:       6000 kB
Private_Clean:      1000 kB
Private_Dirty:     15000 kB
"""


def state(partition: int = 0, position: int = 5, gap: CommitGap | None = None) -> PartitionState:
    return PartitionState("orders", partition, position, 4, position, 10, gap)


def failing(offset: int, since_s: float = 0.0) -> Any:
    return SimpleNamespace(offset=offset, key=b"key", attempts=2, error="no good", since_s=since_s, next_s=since_s + 5)


def group_of(*states: PartitionState, **parts: Any) -> Any:
    found = SimpleNamespace(
        group="shop",
        failures=SimpleNamespace(all=list),
        paused={},
        partitions=lambda: list(states),
        stuck=list,
        unowned=list,
        strangers=lambda: ([], []),
        running=list,
        routes={},
        kept_back=set,
    )
    vars(found).update(parts)
    return found


def shown_of(group: Any, **parts: Any) -> Any:
    found = SimpleNamespace(
        joining=[group],
        connections=SimpleNamespace(why_not_ready=lambda: None),
        blocked_outputs=BlockedOutputs(),
        is_quiet=False,
        health=lambda: Health(True, []),
        why_not_ready=lambda: None,
        queued=lambda: (3, 300),
        threads=lambda: [SimpleNamespace(owner="shop"), SimpleNamespace(owner="shop")],
        call_log=None,
        has_methods=False,
        callers=dict,
    )
    vars(found).update(parts)
    return found


def reports_of(group: Any, **parts: Any) -> Reports:
    return Reports(Origin("shop", 2, LOADED), shown_of(group, **parts))


def test_a_report_tells_the_process() -> None:
    report = reports_of(group_of(), is_quiet=True, why_not_ready=lambda: "it is quiet").make(4, 1)
    assert (report.app, report.number, report.state, report.not_ready_because) == ("shop", 2, "quiet", "it is quiet")
    assert report.node.endswith(f".{report.pid}.2")
    assert (report.queued_messages, report.queued_bytes, report.threads) == (3, 300, {"shop": 2})
    assert (report.failures, report.errors_dropped) == (4, 1)
    assert report.memory_bytes > 0
    assert report.memory is not None
    assert report.memory.own_bytes > 0
    assert report.versions["awoke"] == awoke.__version__


def test_each_report_has_a_number_and_the_last_one_says_that_the_app_stops() -> None:
    made = reports_of(group_of())
    assert [made.make(0, 0).sequence, made.make(0, 0).sequence] == [1, 2]
    assert made.make(0, 0, is_stopping=True).state == "stopping"


def test_settings_are_those_that_were_set_without_secrets() -> None:
    settings = reports_of(group_of()).make(0, 0).settings
    assert settings["workers"] == "3"
    assert "shutdown_timeout_s" not in settings
    assert "hunter2" not in str(settings)


def test_a_partition_tells_its_offsets_and_the_message_that_keeps_the_commit_back() -> None:
    (found,) = reports_of(group_of(state(gap=CommitGap(8, 6, 5, 2.5)))).make(0, 0).partitions
    assert (found.position, found.committed, found.end_offset) == (5, 4, 10)
    assert (found.in_flight, found.oldest_offset) == (2, 5)


def test_a_failing_message_tells_attempts_and_moments_and_hides_its_key() -> None:
    now_s = monotonic_s()
    entry = failing(7, since_s=now_s - 1)
    group = group_of(state(), failures=SimpleNamespace(all=lambda: [(("orders", 0), entry)]))
    (found,) = reports_of(group).make(0, 0).partitions[0].failing
    assert (found.offset, found.attempts, found.key_hash) == (7, 2, key_hash(b"key"))
    assert found.next_ms - found.since_ms == pytest.approx(5_000, abs=2)
    assert b"key" not in msgspec.json.encode(found).replace(b"key_hash", b"")


def test_a_pause_counts_while_its_assignment_lasts() -> None:
    paused = {
        ("orders", 0): (SimpleNamespace(is_current=True), ValueError("no good")),
        ("orders", 1): (SimpleNamespace(is_current=False), ValueError("no good")),
    }
    found = reports_of(group_of(state(0), state(1), paused=paused)).make(0, 0).partitions
    assert [each.paused_because for each in found] == ["no good", None]


def test_partitions_without_an_owner_are_told_by_group() -> None:
    group = group_of(state(), unowned=lambda: [("orders", each) for each in range(12)])
    (found,) = reports_of(group).make(0, 0).unowned
    assert (found.group, found.total) == (group.group, 12)
    assert found.partitions == [("orders", each) for each in range(10)]


def test_a_stuck_partition_says_why() -> None:
    group = group_of(state(), stuck=lambda: [("orders", 0, "no offset", True)])
    assert reports_of(group).make(0, 0).partitions[0].stuck_because == "no offset"


def test_a_running_message_keeps_the_time_at_which_it_was_first_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000])
    monkeypatch.setattr(reports, "wall_ms", lambda: next(times))
    jobs = [SimpleNamespace(topic="orders", partition=0, first_offset=7, attempt=1, remaining=3, is_of_lanes=False)]
    made = Reports(Origin("shop", None, LOADED), shown_of(group_of(state(), running=lambda: jobs)))
    first, second = (made.make(0, 0).partitions[0].running for _ in range(2))
    assert first == second
    assert (first[0].offset, first[0].remaining) == (7, 3)
    jobs[0].first_offset = 8
    (third,) = made.make(0, 0).partitions[0].running
    assert third.since_ms > first[0].since_ms


def test_a_report_is_bounded_and_failing_partitions_come_first() -> None:
    states = [state(number) for number in range(PARTITIONS_MAX + 5)]
    entries = [(("orders", PARTITIONS_MAX + 4), failing(offset)) for offset in range(FAILING_MAX + 5)]
    report = reports_of(group_of(*states, failures=SimpleNamespace(all=lambda: entries))).make(0, 0)
    assert (len(report.partitions), report.partitions_total) == (PARTITIONS_MAX, PARTITIONS_MAX + 5)
    assert report.partitions[0].partition == PARTITIONS_MAX + 4
    assert len(report.partitions[0].failing) == FAILING_MAX


def test_a_sample_tells_the_progress_and_the_failures_since_the_one_before() -> None:
    states = [state(position=5)]
    made = reports_of(group_of(partitions=lambda: list(states)))
    made.sample(1)
    states[0] = state(position=9)
    made.sample(4)
    report = made.make(4, 0)
    assert [(each.offsets, each.failures, each.lag) for each in report.history.of_5_s] == [(0, 1, 5), (4, 3, 1)]
    assert report.partitions[0].offsets_per_s == 4 / 5


def test_settings_have_their_origins_and_no_secrets() -> None:
    explained = {each.name: each for each in reports_of(group_of()).make(0, 0).explained}
    assert (explained["workers"].value, explained["workers"].origin) == ("3", "argument")
    assert explained["kafka.sasl.password"].origin == "argument"
    assert "hunter2" not in str(explained)


def test_a_handler_tells_its_rate_and_its_failures() -> None:
    route = SimpleNamespace(
        name="handle",
        topic="orders",
        is_async=False,
        is_exactly_once=False,
        dead_letter="letters",
        output="bills",
        concurrency=SimpleNamespace(jobs=4, commit_gap=100),
        written_tables=[],
    )
    states = [state(position=5)]
    made = reports_of(group_of(partitions=lambda: list(states), routes={"orders": route}))
    made.failures_by_handler["handle"] += 3
    made.sample(0)
    assert made.make(0, 0).handlers[0].messages_per_s is None
    states[0] = state(position=15)
    made.sample(0)
    (found,) = made.make(0, 0).handlers
    assert (found.name, found.topic, found.concurrency, found.dead_letter) == ("handle", "orders", 4, "letters")
    assert found.output == "bills"
    assert (found.messages_per_s, found.failures) == (2.0, 3)


def test_a_partition_tells_its_last_stable_offset_and_why_it_takes_in_no_more() -> None:
    gap, place = CommitGap(100, 6, 5, 2.5), ("orders", 0)
    route = SimpleNamespace(topic="orders", concurrency=SimpleNamespace(commit_gap=100, jobs=1))
    vars(route).update(
        name="handle", is_async=False, is_exactly_once=False, dead_letter=None, output=None, written_tables=[]
    )
    made = reports_of(group_of(state(gap=gap), routes={"orders": route}, kept_back=lambda: {place}))
    made.stable._known = {place: Stable(7, 1_000)}
    (found,) = made.make(0, 0).partitions
    assert (found.last_stable_offset, found.transaction_open_since_ms) == (7, 1_000)
    assert (found.has_room, found.commit_gap, found.commit_gap_max) == (False, 100, 100)


def test_a_lane_at_work_has_the_hash_of_its_key() -> None:
    batch = [SimpleNamespace(key=b"key")]
    job = SimpleNamespace(topic="orders", partition=0, first_offset=7, attempt=1, remaining=1, is_of_lanes=True)
    vars(job).update(batch=lambda: batch)
    (found,) = reports_of(group_of(state(), running=lambda: [job])).make(0, 0).partitions[0].running
    assert found.key_hash == key_hash(b"key")


def test_a_report_that_is_too_large_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    made = reports_of(group_of(*(state(number) for number in range(400))))
    whole = made.encoded(made.make(0, 0))
    assert not msgspec.json.decode(whole)["is_cut"]
    monkeypatch.setattr(reports, "REPORT_BYTES_MAX", len(whole) // 2)
    cut = msgspec.json.decode(made.encoded(made.make(0, 0)))
    assert (cut["is_cut"], cut["partitions_total"]) == (True, 400)
    assert 0 < len(cut["partitions"]) < 400
    monkeypatch.setattr(reports, "REPORT_BYTES_MAX", 1)
    assert msgspec.json.decode(made.encoded(made.make(0, 0)))["partitions"] == []


def test_a_report_grows_only_by_the_names_of_secret_fields() -> None:
    names = [SecretFields(topic="orders", fields=("/card",))]
    small, none, some = (
        Reports(Origin("shop", 2, LOADED, secrets), shown_of(group_of())).make(0, 0) for secrets in (None, [], names)
    )
    for each in (none, some):
        each.at_ms, each.memory_bytes, each.started_at_ms = small.at_ms, small.memory_bytes, small.started_at_ms
        each.memory = small.memory
    sizes = [len(msgspec.json.encode(each)) for each in (small, none, some)]
    assert sizes[1] < sizes[0]
    assert sizes[2] - sizes[1] == len(b'{"topic":"orders","fields":["/card"]}')


def test_a_report_that_is_cut_has_all_names_of_secret_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [SecretFields(topic="orders", fields=("/card",))]
    made = Reports(Origin("shop", 2, LOADED, names), shown_of(group_of(state())))
    monkeypatch.setattr(reports, "REPORT_BYTES_MAX", 1)
    assert msgspec.json.decode(made.encoded(made.make(0, 0)), type=Report).secrets == names


def call(number: int = 0) -> Any:
    return SimpleNamespace(
        method="quote", caller="shop", place=("calls", 1, number), until_s=0.0, is_cancelled=number == 1
    )


def test_a_report_tells_of_calls_at_work_and_of_rejections() -> None:
    log = CallLog()
    log.count = lambda: {"running": 2, "waiting": 3, "expired": 4}
    at_work = [call(number) for number in range(AT_WORK_MAX + 5)]
    for each in at_work:
        log.began(each)
    log.rejected("queue_full")
    found = calls_of(log)
    assert (found.running, found.waiting, found.expired, found.rejected) == (2, 3, 4, {"queue_full": 1})
    assert [each.offset for each in found.at_work] == list(range(AT_WORK_MAX))
    assert [each.is_cancelled for each in found.at_work[:2]] == [False, True]
    for each in at_work:
        log.left(each)
    assert calls_of(log).at_work == []


def test_callers_are_told_by_service_without_what_never_happened() -> None:
    (found,) = callers_of({"prices": {"open": 2, "begun": 5, "late": 0}})
    assert (found.service, found.open, found.events) == ("prices", 2, {"begun": 5})


def filled(count: int) -> HistoryRing:
    """Returns a ring that got samples with the numbers from 0."""
    ring = HistoryRing()
    for number in range(count):
        ring.add(Sample(number, 1, 2, number, number))
    return ring


def test_the_last_samples_are_kept_the_oldest_first() -> None:
    found = filled(SAMPLES + 5).view()
    assert [each.at_ms for each in found.of_5_s] == list(range(5, SAMPLES + 5))


def test_twelve_samples_make_one_of_a_minute_with_their_sums_and_the_last_state() -> None:
    assert filled(MINUTE - 1).view().of_minutes == []
    assert filled(2 * MINUTE).view().of_minutes == [
        Sample(11, MINUTE, 2 * MINUTE, 11, 11),
        Sample(23, MINUTE, 2 * MINUTE, 23, 23),
    ]


def test_an_hour_of_minutes_is_kept() -> None:
    found = filled((SAMPLES + 3) * MINUTE).view().of_minutes
    assert (len(found), found[-1].at_ms) == (SAMPLES, (SAMPLES + 3) * MINUTE - 1)


def test_a_partition_that_is_new_or_was_sought_back_has_not_advanced() -> None:
    old, new, back = ("shop", "orders", 0), ("shop", "orders", 1), ("shop", "orders", 2)
    assert advanced({old: 5, back: 9}, {old: 8, new: 100, back: 3}) == {old: 3}


@pytest.fixture
def rollup(tmp_path: Path) -> Path:
    file = tmp_path / "smaps_rollup"
    file.write_text(ROLLUP)
    return file


def test_own_and_shared_memory_are_told_apart(rollup: Path) -> None:
    expected = Memory(own_bytes=16_000 << 10, shared_bytes=15_000 << 10, proportional_bytes=20_000 << 10)
    assert read_memory(rollup) == expected


def test_the_memory_of_this_process_is_read() -> None:
    found = read_memory()
    assert found is not None
    assert 1 << 20 < found.own_bytes <= found.proportional_bytes <= found.own_bytes + found.shared_bytes


@pytest.mark.parametrize("text", ["", "Pss: x kB\n", "Pss: 1 kB\n"])
def test_a_system_that_does_not_tell_it_is_no_error(text: str, rollup: Path) -> None:
    rollup.write_text(text)
    assert read_memory(rollup) is None
    assert read_memory(rollup / "missing") is None


def test_it_is_read_once_a_minute(rollup: Path) -> None:
    reader = MemoryReader(rollup)
    first = reader.memory()
    rollup.write_text(ROLLUP.replace("15000", "99000"))
    seen = list[bool]()
    for _ in range(MEMORY_SAMPLES):
        seen.append(reader.memory() == first)
        reader.sample()
    assert (seen, reader.memory() == first) == ([True] * MEMORY_SAMPLES, False)


def test_partitions_that_cannot_be_written_to_are_told() -> None:
    outputs = BlockedOutputs()
    text = "it has no leader"
    outputs.on_blocked(OutputBlocked(client="awoke", topic="results", partition=3, messages=2, for_s=12.0, text=text))
    (found,) = reports_of(group_of(), blocked_outputs=outputs).make(0, 0).blocked
    assert (found.topic, found.partition, found.messages, found.text) == ("results", 3, 2, text)
    assert wall_ms() - found.since_ms >= 12_000


def test_other_apps_in_a_group_are_told_by_group() -> None:
    group = group_of(strangers=lambda: (["mailing"], ["letters"]))
    (found,) = reports_of(group).make(0, 0).shared
    assert (found.group, found.apps, found.topics) == (group.group, ["mailing"], ["letters"])
    assert reports_of(group_of()).make(0, 0).shared == []


def test_each_partition_of_a_table_is_told_those_that_are_restored_last() -> None:
    parts = [(0, 5, 60, 4_096, True), (2, 1, 12, 1_024, False)]
    table = SimpleNamespace(
        name="totals", changelog="shop.table.totals", native=SimpleNamespace(partitions=lambda: parts)
    )
    route = SimpleNamespace(
        name="add",
        topic="payments",
        is_async=False,
        concurrency=SimpleNamespace(jobs=1),
        is_exactly_once=True,
        dead_letter=None,
        output=None,
        written_tables=[table],
    )
    report = reports_of(group_of(routes={"payments": route})).make(0, 0)
    found = [(each.table, each.topic, each.partition, each.rows, each.is_restored) for each in report.tables]
    assert found == [("totals", "shop.table.totals", 2, 1, False), ("totals", "shop.table.totals", 0, 5, True)]
    assert (report.tables[1].size_bytes, report.tables[1].memory_bytes) == (60, 4_096)
    before = msgspec.json.decode(msgspec.json.encode(report))
    del before["tables"]  # As processes before minor 9 report.
    assert msgspec.convert(before, Report).tables == []
