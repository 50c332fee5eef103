"""Exactly once: a job ends with its transaction, and no worker waits for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from tests.unit.runtime.fakes import (
    KINDS,
    YIELDED,
    FakeContext,
    FakeHandle,
    FakeJob,
    FakeTransactions,
    executor,
    fails_at,
    handler,
    process,
    wait_for_callbacks,
    yields,
)


def transacting(*handles: FakeHandle) -> FakeContext:
    refusals = SimpleNamespace(allow=lambda code: None)
    return FakeContext(transactions=FakeTransactions(*handles), refusals=refusals)


def transactions_of(context: FakeContext) -> Any:
    return context.transactions


@KINDS
def test_results_and_offset_are_one_transaction(is_async: bool) -> None:
    context = transacting()
    ran = executor(handler(lambda message: b"result", is_async), context, output="out", exactly_once=True)
    job = process(ran, FakeJob(), on_loop=is_async)
    wait_for_callbacks()
    assert transactions_of(context).sent == [("out", b"result")] * 3
    assert transactions_of(context).submitted == [None]
    assert job.said == ["complete"]


@KINDS
def test_a_job_that_fails_commits_the_messages_before(is_async: bool) -> None:
    context = transacting()
    job = process(
        executor(handler(fails_at(2), is_async), context, output="out", exactly_once=True), FakeJob(), on_loop=True
    )
    assert transactions_of(context).submitted == [1]
    assert (job.said, job.detached) == (["retry"], 1)


@KINDS
@pytest.mark.parametrize(
    ("error", "events", "ended"),
    [
        (awoke.ClosedError("the process stops"), [], 0),
        (awoke.FencedError("taken away", "orders", 0), [], 0),
        (awoke.TransactionAborted("aborted", 1, "ABORTED"), ["job.failed"], 0),
        (awoke.ProducerFenced("fenced", 90, "PRODUCER_FENCED"), [], 1),
    ],
)
def test_a_transaction_that_failed_gives_its_job_back(
    is_async: bool, error: BaseException, events: list[str], ended: int
) -> None:
    context = transacting(FakeHandle(error))
    ran = executor(handler(lambda message: b"r", is_async), context, output="out", exactly_once=True)
    job = process(ran, FakeJob(), on_loop=is_async)
    wait_for_callbacks()
    assert job.said == ["retry"]
    assert (context.heard, len(context.ended)) == (events, ended)


@KINDS
def test_a_consumer_whose_own_transactions_did_all_needs_no_further_one(is_async: bool) -> None:
    def consume(self: Any, batch: Any) -> None:
        job.done(2)

    async def consume_async(self: Any, batch: Any) -> None:
        consume(self, batch)

    context, job = transacting(), FakeJob()
    consumer = type("Consumer", (awoke.Consumer,), {"consume": consume_async if is_async else consume})
    process(executor(consumer, context, exactly_once=True), job, on_loop=is_async)
    assert transactions_of(context).submitted == []
    assert job.said == [("done", 2), "complete"]


@KINDS
def test_all_that_a_generator_yields_is_in_the_transaction_each_in_its_topic(is_async: bool) -> None:
    context = transacting()
    job = process(executor(yields(is_async), context, output="out", exactly_once=True), FakeJob(), on_loop=is_async)
    wait_for_callbacks()
    assert transactions_of(context).sent == YIELDED
    assert (transactions_of(context).submitted, job.said) == ([None], ["complete"])
