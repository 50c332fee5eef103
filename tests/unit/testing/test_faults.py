"""Faults as a test asks for them: names, history, and the check that all have happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

import awoke
from awoke.testing import EmbeddedCluster, Faults


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(2) as cluster:
        cluster.create_topic("orders")
        yield cluster


def test_the_history_tells_what_happened_and_what_has_not(cluster: EmbeddedCluster) -> None:
    faults = Faults(cluster, seed=7)
    faults.truncate("orders", 0, 0)
    refused = faults.refuse_produce("orders")
    with faults.slow(5, broker=2):
        faults.broker_down(2)
        faults.broker_up(2)
    assert not refused.has_happened
    assert faults.report().splitlines() == [
        "faults, with seed 7:",
        "1. truncate orders/0 to offset 0",
        "2. refuse 1 × produce to orders: NOT_ENOUGH_REPLICAS (has not happened)",
        "3. broker 2 answers 5 ms later",
        "4. broker 2 down",
        "5. broker 2 up",
    ]


def test_a_fault_that_has_not_happened_fails_the_check(cluster: EmbeddedCluster) -> None:
    with (
        pytest.raises(AssertionError, match="refuse 2 × fetch from orders: UNKNOWN_TOPIC_ID"),
        Faults(cluster) as faults,
    ):
        faults.refuse_fetch("orders", error="UNKNOWN_TOPIC_ID", times=2)


def test_a_test_that_fails_tells_its_faults(cluster: EmbeddedCluster) -> None:
    with pytest.raises(ZeroDivisionError) as raised, Faults(cluster, seed=3) as faults:
        faults.lose_acknowledgement("orders")
        raise ZeroDivisionError
    assert "seed 3" in raised.value.__notes__[0]


def test_a_wait_for_a_fault_that_does_not_happen_ends(cluster: EmbeddedCluster) -> None:
    fault = Faults(cluster).abort_transaction("shop")
    with pytest.raises(awoke.OperationTimeout, match=r"not happened within 0\.01 s: abort a transaction of shop"):
        fault.wait(0.01)


def test_the_group_and_the_transactions_of_an_app_are_found(cluster: EmbeddedCluster) -> None:
    faults = Faults(cluster)
    faults.refuse_commit(awoke.App("shop"))
    faults.refuse_commit(awoke.App("shop", group="till"))
    faults.abort_transaction(awoke.App("shop", group="till"))
    faults.abort_transaction(awoke.App("shop", transactional_id="mine"))
    assert [str(fault).split(" (")[0] for fault in faults.history] == [
        "refuse 1 × commit of group shop: REQUEST_TIMED_OUT",
        "refuse 1 × commit of group till: REQUEST_TIMED_OUT",
        "abort a transaction of till.",
        "abort a transaction of mine",
    ]


def test_what_does_not_exist_is_refused(cluster: EmbeddedCluster) -> None:
    faults = Faults(cluster)
    with pytest.raises(ValueError, match='there is no topic "refunds"'):
        faults.refuse_produce("refunds")
    with pytest.raises(ValueError, match='Kafka has no error "LATE"'):
        faults.refuse_produce("orders", error="LATE")
    with pytest.raises(ValueError, match='there is no group "shop"'):
        faults.revoke("shop", "orders")
    with pytest.raises(ValueError, match="there is no broker 3"):
        faults.broker_down(3)
    assert faults.history == []


def test_brokers_that_are_not_embedded_are_refused() -> None:
    with pytest.raises(awoke.ConfigError, match="faults need an EmbeddedCluster, not 'kafka:9092'"):
        Faults(cast("Any", "kafka:9092"))
