"""The recorder of metrics: what is counted, and what is read on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

import awoke
from awoke.observe.events import (
    BackgroundFailure,
    ClientStatistics,
    CommitFailed,
    DeadLetterFailed,
    HookFailed,
    JobFailed,
    JobOverdue,
    JobSlow,
    LaneFailed,
    MessageDeadLettered,
    MessagesExpired,
    MessagesFiltered,
    MessageSkipped,
    PartitionsLost,
    PartitionsRevoked,
    ProducerReplaced,
    RpcFailed,
    RpcRefused,
    ShutdownFailed,
    ThreadLeaked,
    TransactionAbort,
)
from awoke.observe.ledger import ThreadEntry
from awoke.observe.metrics.recorder import EndedJob, Health, Recorder
from awoke.observe.partitions import CommitGap, PartitionState

MESSAGE: Any = {"handler": "handle", "topic": "t", "partition": 0, "offset": 7}
ERROR = ValueError("no good")


class FakeGroup:
    """The state of a consumer group."""

    group = "shop"

    def partitions(self) -> list[PartitionState]:
        return [
            PartitionState("t", 0, 7, 5, 7, 10, CommitGap(4, 2, 7, 2.5)),
            PartitionState("t", 1, None, 5, 5, 10, None),
            PartitionState("t", 2, 1, 1, 1, None, None),
        ]

    def stuck(self) -> list[tuple[str, int, str, bool]]:
        return [("t", 3, "no offset", True), ("gone", -1, "no topic", False)]

    def failing(self) -> list[tuple[str, int]]:
        return [("t", 0), ("t", 0)]

    def fetch_queue_bytes(self) -> int | None:
        return 2_000_000


class Other(FakeGroup):
    """The state of a second group, which reads the same topic and has no fetch queue yet."""

    group = "audit"

    def partitions(self) -> list[PartitionState]:
        return [PartitionState("t", 0, 1, 1, 1, 10, None)]

    def stuck(self) -> list[tuple[str, int, str, bool]]:
        return []

    def failing(self) -> list[tuple[str, int]]:
        return [("t", 0)]

    def fetch_queue_bytes(self) -> int | None:
        return None


class Fake:
    """An app's state."""

    def __init__(self, *groups: FakeGroup) -> None:
        self.joining: Sequence[FakeGroup] = groups or [FakeGroup()]

    def counters(self) -> dict[str, dict[str, int]]:
        return {"threads": {"jobs": 5, "job_wakes": 4, "clock_wakes": 1}}

    def threads(self) -> list[ThreadEntry]:
        return [ThreadEntry("t[0]", "flush", "here"), ThreadEntry("t[0]", "watch", "here"), ThreadEntry("", "main", "")]

    def queued(self) -> tuple[int, int]:
        return 3, 300

    def calls(self) -> dict[str, int]:
        return {"running": 1, "waiting": 2, "expired": 3}

    def callers(self) -> dict[str, dict[str, int]]:
        return {"stock": {"begun": 5, "late": 1, "open": 2}}

    def registry(self) -> dict[str, float]:
        counts = {"hits": 9, "misses": 2, "evictions": 1, "entries": 4, "requests": 3, "errors": 1, "wait_s": 0.25}
        return {name: float(count) for name, count in counts.items()}

    def health(self) -> Health:
        return Health(False, ["something"])


def lines(recorder: Recorder) -> set[str]:
    return {line for line in recorder.text().decode().splitlines() if not line.startswith("#")}


def test_a_job_is_counted_by_its_outcome() -> None:
    recorder = Recorder()
    recorder.job_ended("t", "handle", EndedJob(10, 1_000, 0.002, 0.02, "done"))
    recorder.job_ended("t", "handle", EndedJob(5, 500, 0.002, 0.02, "failed"))
    found = lines(recorder)
    assert 'awoke_messages_total{handler="handle",topic="t"} 15.0' in found
    assert 'awoke_message_bytes_total{handler="handle",topic="t"} 1500.0' in found
    assert 'awoke_jobs_total{handler="handle",outcome="failed",topic="t"} 1.0' in found
    assert 'awoke_job_run_seconds_count{handler="handle",topic="t"} 2.0' in found
    assert 'awoke_job_run_seconds_sum{handler="handle",topic="t"} 0.04' in found
    assert 'awoke_job_wait_seconds_sum{topic="t"} 0.004' in found


def test_events_are_counted() -> None:
    recorder, events = Recorder(), awoke.Events()
    events.subscribe("*", recorder.on_event)
    events.emit(JobFailed(**MESSAGE, attempt=1, retry_in_s=0.1, error=ERROR))
    events.emit(JobFailed(**MESSAGE, attempt=2, retry_in_s=None, error=ERROR))
    events.emit(MessageDeadLettered(**MESSAGE, error=ERROR))
    events.emit(MessagesExpired(topic="t", count=4))
    events.emit(PartitionsRevoked(client="shop", partitions=[("t", 0)]))
    events.emit(CommitFailed(client="shop", partitions=[], code=-195, code_name="_TRANSPORT", will_retry=True))
    events.emit("something.else")
    found = lines(recorder)
    assert 'awoke_retries_total{handler="handle",topic="t"} 1.0' in found
    assert 'awoke_dead_letters_total{handler="handle",topic="t"} 1.0' in found
    assert 'awoke_expired_messages_total{topic="t"} 4.0' in found
    assert 'awoke_rebalances_total{change="revoked"} 1.0' in found
    assert 'awoke_commit_failures_total{code="_TRANSPORT"} 1.0' in found


def test_what_went_wrong_is_counted() -> None:
    recorder, events = Recorder(), awoke.Events()
    events.subscribe("*", recorder.on_event)
    events.emit(MessageSkipped(**MESSAGE, error=ERROR))
    events.emit(DeadLetterFailed(**MESSAGE, dead_letter="dead", retry_in_s=None, error=ERROR))
    events.emit(MessagesFiltered(topic="t", count=2))
    events.emit(PartitionsLost(client="shop", partitions=[("t", 0)]))
    events.emit(JobSlow(**MESSAGE, ran_s=2.0, limit_s=1.0))
    events.emit(JobOverdue(client="shop", partitions=[("t", 0)]))
    events.emit(BackgroundFailure(owner="t[0]", function="flush", failures=1, restart_in_s=None, error=ERROR))
    events.emit(ThreadLeaked(owner="t[0]", handler="handle", thread="mine", started_at="here"))
    events.emit(LaneFailed(**MESSAGE, error=ERROR))
    events.emit(HookFailed(handler="handle", topic="t", partition=0, hook="lost", error=ERROR))
    events.emit(ShutdownFailed(function="close", error=ERROR))
    events.emit(RpcFailed(method="find", caller="web", error=ERROR))
    events.emit(RpcRefused(reason="forged", partition=0, offset=7))
    assert lines(recorder) >= {
        'awoke_skipped_messages_total{handler="handle",topic="t"} 1.0',
        'awoke_dead_letter_failures_total{handler="handle",topic="t"} 1.0',
        'awoke_filtered_messages_total{topic="t"} 2.0',
        'awoke_rebalances_total{change="lost"} 1.0',
        'awoke_overdue_jobs_total{reason="slow"} 1.0',
        'awoke_overdue_jobs_total{reason="revoked"} 1.0',
        'awoke_background_failures_total{owner="t[0]"} 1.0',
        'awoke_leaked_threads_total{owner="t[0]"} 1.0',
        'awoke_lane_failures_total{handler="handle",topic="t"} 1.0',
        'awoke_hook_failures_total{handler="handle",hook="lost",topic="t"} 1.0',
        'awoke_shutdown_failures_total{function="close"} 1.0',
        'awoke_rpc_failures_total{method="find"} 1.0',
        'awoke_rpc_refused_total{reason="forged"} 1.0',
    }


def test_what_librdkafka_says_of_its_brokers_is_shown_as_it_was_last() -> None:
    recorder, events = Recorder(), awoke.Events()
    recorder.attach(Fake())
    events.subscribe("*", recorder.on_event)
    for sent in (100, 250):
        broker = {
            "nodeid": 1,
            "nodename": "127.0.0.1:9092",
            "txbytes": sent,
            "rxbytes": 70,
            "txretries": 2,
            "txerrs": 1,
            "rxerrs": 0,
            "req_timeouts": 3,
            "int_latency": {"avg": 1_500},
            "rtt": {"avg": 700},
        }
        bootstrap = {"nodeid": -1, "nodename": "127.0.0.1:9092", "txbytes": 9}
        json = msgspec.json.encode({"type": "producer", "brokers": {"a": broker, "b": bootstrap}}).decode()
        events.emit(ClientStatistics(client="awoke", json=json))
    events.emit(TransactionAbort(client="awoke", code=-185, code_name="_TIMED_OUT", text="late"))
    events.emit(ProducerReplaced(client="awoke", reason="in doubt"))
    labels = '{broker="127.0.0.1:9092",client="producer"}'
    assert lines(recorder) >= {
        f"awoke_broker_queue_seconds{labels} 0.0015",
        f"awoke_broker_round_trip_seconds{labels} 0.0007",
        f"awoke_broker_sent_bytes_total{labels} 250.0",
        f"awoke_broker_received_bytes_total{labels} 70.0",
        f"awoke_broker_retries_total{labels} 2.0",
        f"awoke_broker_errors_total{labels} 4.0",
        'awoke_aborted_transactions_total{code="_TIMED_OUT"} 1.0',
        "awoke_replaced_producers_total 1.0",
    }


def test_the_rest_is_read_when_asked() -> None:
    recorder = Recorder()
    recorder.attach(Fake())
    found = lines(recorder)
    assert {each for each in found if each.startswith("awoke_lag")} == {
        'awoke_lag_messages{group="shop",partition="0",topic="t"} 3.0',
        'awoke_lag_messages{group="shop",partition="1",topic="t"} 5.0',
    }
    assert 'awoke_threads{owner="t[0]"} 2.0' in found
    assert 'awoke_job_wakeups_total{pool="threads"} 4.0' in found
    assert "awoke_producer_queue_bytes 300.0" in found
    assert "awoke_healthy 0.0" in found
    assert 'awoke_stuck_partitions{group="shop",topic="t"} 1.0' in found
    assert 'awoke_fetch_queue_limit_bytes{group="shop"} 2e+06' in found
    assert found >= {
        "awoke_registry_cache_hits_total 9.0",
        "awoke_registry_cache_misses_total 2.0",
        "awoke_registry_cache_evictions_total 1.0",
        "awoke_registry_cache_entries 4.0",
        "awoke_registry_requests_total 3.0",
        "awoke_registry_errors_total 1.0",
        "awoke_registry_wait_seconds_total 0.25",
    }


def test_the_state_of_a_partition_is_made_of_the_engines_tuple() -> None:
    state = PartitionState.of(("t", 0, 7, 5, 7, 10, (4, 2, 7, 2.5)))
    assert state.commit_gap == CommitGap(messages=4, done=2, oldest_offset=7, oldest_s=2.5)
    assert PartitionState.of(("t", 0, 7, 5, 7, 10, None)).commit_gap is None


@pytest.mark.parametrize(
    ("position", "end_offset", "lag"), [(7, 10, 3), (10, 10, 0), (11, 10, 0), (None, 10, None), (7, None, None)]
)
def test_a_lag_is_never_negative_and_unknown_without_both_ends(
    position: int | None, end_offset: int | None, lag: int | None
) -> None:
    assert PartitionState("t", 0, None, None, position, end_offset, None).lag == lag


def test_calls_are_counted_by_their_outcome_and_measured_in_each_phase() -> None:
    recorder = Recorder()
    recorder.call_ended("find", "ok", 0.002, 0.02)
    recorder.call_ended("find", "internal", 0.002, 0.02)
    recorder.reply_acknowledged("find", 2.0)
    assert lines(recorder) >= {
        'awoke_rpc_calls_total{method="find",outcome="ok"} 1.0',
        'awoke_rpc_calls_total{method="find",outcome="internal"} 1.0',
        'awoke_rpc_queue_seconds_count{method="find"} 2.0',
        'awoke_rpc_run_seconds_sum{method="find"} 0.04',
        'awoke_rpc_reply_seconds_sum{method="find"} 2.0',
    }


def test_two_groups_of_one_topic_are_told_apart() -> None:
    recorder = Recorder()
    recorder.attach(Fake(FakeGroup(), Other()))
    found = {line for line in lines(recorder) if "group=" in line}
    assert found == {
        'awoke_lag_messages{group="shop",partition="0",topic="t"} 3.0',
        'awoke_lag_messages{group="shop",partition="1",topic="t"} 5.0',
        'awoke_lag_messages{group="audit",partition="0",topic="t"} 9.0',
        'awoke_commit_gap_messages{group="shop",partition="0",topic="t"} 4.0',
        'awoke_done_beyond_messages{group="shop",partition="0",topic="t"} 2.0',
        'awoke_commit_gap_seconds{group="shop",partition="0",topic="t"} 2.5',
        'awoke_assigned_partitions{group="shop"} 3.0',
        'awoke_assigned_partitions{group="audit"} 1.0',
        'awoke_stuck_partitions{group="shop",topic="t"} 1.0',
        'awoke_stuck_partitions{group="shop",topic="gone"} 1.0',
        'awoke_failing_messages{group="shop",topic="t"} 2.0',
        'awoke_failing_messages{group="audit",topic="t"} 1.0',
        'awoke_fetch_queue_limit_bytes{group="shop"} 2e+06',
    }


class WithoutCalls(Fake):
    """An app that neither answers calls nor makes them, and whose group has no fetch queue yet."""

    def __init__(self) -> None:
        super().__init__(Other())

    def calls(self) -> dict[str, int]:
        return {}

    def callers(self) -> dict[str, dict[str, int]]:
        return {}

    def registry(self) -> dict[str, float]:
        return {}


def test_what_an_app_does_not_have_has_no_value() -> None:
    recorder = Recorder()
    recorder.attach(WithoutCalls())
    absent = ("awoke_rpc_", "awoke_fetch_queue_limit_bytes", "awoke_registry_cache", "awoke_registry_requests")
    assert [line for line in lines(recorder) if line.startswith(absent)] == []


def test_two_recorders_do_not_mix() -> None:
    first, second = Recorder(), Recorder()
    first.job_ended("t", "handle", EndedJob(10, 1_000, 0.002, 0.02, "done"))
    assert 'awoke_messages_total{handler="handle",topic="t"} 10.0' in lines(first)
    assert [line for line in lines(second) if line.startswith("awoke_messages_total")] == []
