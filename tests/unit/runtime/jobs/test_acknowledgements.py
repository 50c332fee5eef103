"""Acknowledgements of what a job has sent: the first refusal is found, whatever else was acknowledged."""

from __future__ import annotations

from typing import Any, cast

import pytest

import awoke
from awoke._native import Job
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.runtime.jobs.acknowledgements import Acknowledgements
from awoke.waiting.drive import drive
from tests.unit.runtime.fakes import FakeContext, FakeHandle, FakeJob, FakeResults

TOO_LARGE = awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE")
REFUSED = awoke.DeliveryFailed("refused", 87, "INVALID_RECORD")


def handle(message: awoke.Message[bytes]) -> bytes:
    return message.value


def sent(*handles: FakeHandle) -> Any:
    results = FakeResults()
    for offset, each in enumerate(handles):
        results.keep(offset, each, (b"%d" % offset, b"key", None, None, None))
    return results


def sent_to(topic: str, *handles: FakeHandle) -> Any:
    """As `sent`, but each result names a topic of its own."""
    results = FakeResults()
    for offset, each in enumerate(handles):
        results.keep(offset, each, awoke.Outgoing(topic, b"%d" % offset, b"key"))
    return results


def check(job: FakeJob, results: Any, context: FakeContext) -> None:
    route = Route("orders", handle, {}, KindOptions(output="out"))
    drive(Acknowledgements(route, cast(Any, context)).check(cast(Job, job), results))


def test_all_that_is_acknowledged_is_forgotten() -> None:
    job, results = FakeJob(), sent(FakeHandle(), FakeHandle())
    check(job, results, FakeContext())
    assert (job.said, len(results)) == ([], 0)


def test_the_first_refusal_is_raised_and_those_before_it_are_done() -> None:
    job, results = FakeJob(), sent(FakeHandle(), FakeHandle(REFUSED), FakeHandle(REFUSED))
    with pytest.raises(awoke.DeliveryFailed, match="refused"):
        check(job, results, FakeContext())
    assert (job.said, len(results)) == ([("done_before", 1)], 0)


def test_one_that_was_refused_in_company_is_sent_alone_with_those_behind_it() -> None:
    context = FakeContext()
    check(FakeJob(), sent(FakeHandle(), FakeHandle(TOO_LARGE), FakeHandle()), context)
    assert context.alone.sent == [("out", b"1"), ("out", b"2")]


def test_one_with_a_topic_of_its_own_is_sent_alone_to_that() -> None:
    context = FakeContext()
    check(FakeJob(), sent_to("other", FakeHandle(TOO_LARGE), FakeHandle()), context)
    assert context.alone.sent == [("other", b"0"), ("other", b"1")]


def test_a_refusal_of_a_partition_that_was_given_back_changes_nothing() -> None:
    class Fenced(FakeJob):
        def done_before(self, offset: int) -> None:
            raise awoke.FencedError("gone")

    with pytest.raises(awoke.DeliveryFailed, match="refused"):
        check(Fenced(), sent(FakeHandle(REFUSED)), FakeContext())


def test_all_refusals_are_found_and_the_handles_forgotten() -> None:
    route = Route("orders", handle, {}, KindOptions(output="out"))
    results = sent(FakeHandle(REFUSED), FakeHandle(), FakeHandle(REFUSED))
    refused = drive(Acknowledgements(route, cast(Any, FakeContext())).refused(results))
    assert refused == [(0, REFUSED), (2, REFUSED)]
    assert len(results) == 0
