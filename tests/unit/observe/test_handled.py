"""The message that the running code handles, as log lines name it; what outlives a message does not know the next."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace

import awoke
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


@KINDS
def test_a_context_that_outlives_its_job_keeps_no_message(is_async: bool) -> None:
    kept: list[contextvars.Context] = []

    def handle(message: Any) -> None:
        kept.append(contextvars.copy_context())
        if message.offset == 1:
            raise ValueError

    job = process(executor(handler(handle, is_async), FakeContext()), FakeJob(), on_loop=is_async)
    assert (job.detached, job.said) == (1, [("done", 0), "retry"]), "detached, because the handler raised"
    kept.clear()
    process(
        executor(handler(lambda message: handle(message) if not message.offset else None, is_async), FakeContext()),
        job := FakeJob(),
        on_loop=is_async,
    )
    assert (job.detached, job.said) == (0, ["complete"])
    assert kept[0].run(handled) is None


def test_what_an_async_handler_starts_knows_its_job() -> None:
    found: list[Handled | None] = []

    async def note() -> None:
        found.append(handled())

    async def handle(message: Any) -> None:
        found.append(await asyncio.to_thread(handled))
        await asyncio.create_task(note())

    process(executor(handle, FakeContext()), FakeJob(1, attempt=2), on_loop=True)
    assert found == [Handled("orders", 0)] * 2


def test_a_task_that_outlives_its_message_does_not_take_the_next_one_for_its_own() -> None:
    found: list[Handled | None] = []
    is_next = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def outlive() -> None:
        await is_next.wait()
        found.extend([handled(), await asyncio.to_thread(handled)])

    async def handle(message: Any) -> None:
        if message.offset == 0:
            tasks.append(asyncio.create_task(outlive()))
        else:
            is_next.set()
            await tasks[0]
            found.append(handled())

    process(executor(handle, FakeContext()), FakeJob(2), on_loop=True)
    assert found == [Handled("orders", 0), Handled("orders", 0), Handled("orders", 0, 1, 1, KEY)]


def test_an_event_loop_within_a_handler_knows_its_message() -> None:
    found: list[Handled | None] = []

    async def note() -> None:
        found.append(handled())

    process(executor(lambda message: asyncio.run(note()), FakeContext()), FakeJob(2), on_loop=False)
    assert found == [Handled("orders", 0, 0, 1, KEY), Handled("orders", 0, 1, 1, KEY)]


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
