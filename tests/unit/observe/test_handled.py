"""The message that the running code handles, found on the stack when a log line asks for it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace

import awoke
from awoke.observe import handled as module
from awoke.observe.handled import CONTEXT, Handled, WithContext, context, handled
from awoke.observe.ledger import Ledger
from awoke.observe.process import ThisProcess
from tests.unit.runtime.fakes import KINDS, FakeContext, FakeJob, executor, handler, process

KEY = hashlib.blake2b(b"key", digest_size=8).hexdigest()


def test_outside_of_handlers_no_message_is_handled() -> None:
    assert handled() is None


@KINDS
def test_a_handler_and_what_it_calls_find_their_message(is_async: bool) -> None:
    found: list[Handled | None] = []

    def deeper() -> None:
        found.append(handled())

    ran = executor(handler(lambda message: deeper(), is_async), FakeContext())
    process(ran, FakeJob(2, attempt=3), on_loop=is_async)
    assert found == [Handled("orders", 0, 0, 1, KEY), Handled("orders", 0, 1, 1, KEY)]


def test_a_message_that_was_asked_for_is_not_kept() -> None:
    job = process(executor(lambda message: handled() and None, FakeContext()), FakeJob(), on_loop=False)
    assert (job.detached, job.said) == (0, ["complete"]), "a batch that is kept would be copied"


def test_a_batch_is_handled_from_its_first_message() -> None:
    found: list[Handled | None] = []

    class Handler(awoke.Consumer):
        def consume(self, batch: Any) -> None:
            found.append(handled())

    process(executor(Handler, FakeContext()), FakeJob(3, attempt=2), on_loop=False)
    assert found == [Handled("orders", 0, 0, 2)]


def test_a_thread_that_a_handler_waits_for_knows_its_job() -> None:
    found: list[Handled | None] = []

    async def handle(message: Any) -> None:
        found.append(await asyncio.to_thread(handled))

    process(executor(handle, FakeContext()), FakeJob(1, attempt=2), on_loop=True)
    assert found == [Handled("orders", 0, 0, 2)]


def test_a_handler_that_is_too_deep_on_the_stack_names_its_job_only(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Handled | None] = []
    monkeypatch.setattr(module, "DEPTH_MAX", 1)
    process(executor(lambda message: found.append(handled()), FakeContext()), FakeJob(2, attempt=5), on_loop=False)
    assert found == [Handled("orders", 0, 0, 5)] * 2


class Ended:
    """A job that has ended, and knows its messages no more."""

    topic, partition = "orders", 4

    @property
    def first_offset(self) -> int:
        raise awoke.ClosedError("the job has ended")


@pytest.mark.parametrize("work", [SimpleNamespace(topic="orders", partition=4), Ended()], ids=["hook", "ended"])
def test_a_hook_and_a_job_that_has_ended_have_no_message(work: Any) -> None:
    with Ledger().acting_for("Handler[orders-4]", 1, work):
        assert handled() == Handled("orders", 4)
    assert handled() is None


def test_the_context_has_process_message_and_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(ThisProcess, "node", 2)
    span = trace.NonRecordingSpan(trace.SpanContext(0xA1, 0xB2, is_remote=False))

    def handle(message: Any) -> None:
        with trace.use_span(span):
            found.append(context())

    fake = FakeContext(ledger=Ledger("shop"))
    process(executor(handle, fake), FakeJob(1), on_loop=False)
    place = {"topic": "orders", "partition": 0, "offset": 0, "attempt": 1, "key_hash": KEY}
    assert found == [{"app": "shop", "node": 2, **place, "trace_id": f"{0xA1:032x}", "span_id": f"{0xB2:016x}"}]
    assert context() == {"node": 2}


def test_a_record_has_all_attributes_of_the_context_whether_known_or_not() -> None:
    record = logging.makeLogRecord({})
    assert WithContext().filter(record)
    assert {name: getattr(record, name) for name in CONTEXT} == dict.fromkeys(CONTEXT)
