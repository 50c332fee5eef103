"""The page of transactions."""

from __future__ import annotations

from typing import Any

from awoke.console.views import AbortedByCode, GroupPartition, GroupView, Partition
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import HOSTILE, FakeLive, console, report


def partition(**fields: Any) -> Partition:
    return Partition(**{"group": "shop", "topic": "orders", "partition": 0, **fields})


def test_the_oldest_open_transaction_comes_first() -> None:
    opened = [
        partition(partition=number, last_stable_offset=4, end_offset=9, transaction_open_since_ms=wall_ms() - age_ms)
        for number, age_ms in ((0, 2), (1, 99_000))
    ]
    with console(FakeLive([report("a", *opened, partition(partition=2))])) as client:
        rows = client.get("/transactions?format=json").json()["transactions"]["rows"]
        shown = client.get("/transactions").text
        page = client.get("/partitions/orders/1/shop").text
    assert [(each["partition"], each["waiting"]) for each in rows] == [(1, 5), (0, 5)]
    assert rows[0]["state"] == "slow"
    assert "orders<b>[1]</b>" in shown
    assert "A transaction is open" in page


def group(**fields: Any) -> GroupView:
    at = GroupPartition(**{"topic": "orders", "partition": 1, "committed": 4, "end_offset": 9, "lag": 5, **fields})
    return GroupView(group="shop", state="Stable", members=0, partitions=[at])


def test_an_open_transaction_that_the_brokers_tell_is_shown_without_a_process() -> None:
    live = FakeLive([])
    live.groups = [group(last_stable_offset=4, transaction_open_since_ms=wall_ms() - 99_000)]
    with console(live) as client:
        (row,) = client.get("/transactions?format=json").json()["transactions"]["rows"]
        assert "orders<b>[1]</b>" in client.get("/transactions").text
    assert (row["node"], row["state"], row["waiting"], row["last_stable_offset"]) == (None, "slow", 5, 4)


def test_a_transaction_that_has_ended_since_the_report_is_not_shown() -> None:
    live = FakeLive(
        [report("a", partition(partition=1, end_offset=9, last_stable_offset=4, transaction_open_since_ms=1))]
    )
    live.groups = [group(last_stable_offset=9)]
    with console(live) as client:
        assert client.get("/transactions?format=json").json()["transactions"]["rows"] == []


def test_a_transaction_that_is_open_for_longer_than_any_may_be_hangs() -> None:
    live = FakeLive([report("a", partition(partition=1, position=4))])
    live.groups = [group(last_stable_offset=4, transaction_open_since_ms=wall_ms() - 200_000)]
    with console(live) as client:
        assert "is open for 3" in client.get("/stuck").text
        assert "it hangs" not in client.get("/stuck").text
        live.state.transaction_limit_ms = 120_000
        (row,) = client.get("/transactions?format=json").json()["transactions"]["rows"]
        shown, reasons = client.get("/transactions").text, client.get("/stuck").text
    assert row["state"] == "hanging"
    assert "2 min at most" in shown
    assert "it hangs: brokers abort one after 2 min at the latest" in reasons
    assert "kafka-transactions.sh abort" in reasons


def test_aborted_transactions_are_shown_by_error_with_the_last_reason() -> None:
    aborted = [AbortedByCode(code="FENCED", count=2, last_ms=wall_ms() - 9_000, last_text="a newer one")]
    later = [AbortedByCode(code="TIMED_OUT", count=1, last_ms=wall_ms(), last_text=HOSTILE)]
    live = FakeLive([report("a", aborted=aborted), report("b", aborted=later)])
    with console(live) as client:
        page = client.get("/transactions?format=json").json()
        shown = client.get("/transactions").text
    rows = [(each["node"], each["code"], each["count"]) for each in page["aborted"]]
    assert rows == [("b", "TIMED_OUT", 1), ("a", "FENCED", 2)]
    assert "3 transactions of this app were aborted" in shown
    assert "a newer one" in shown
    assert "<script>alert" not in shown
