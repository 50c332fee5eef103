"""A function without an output: each message is one call."""

from __future__ import annotations

from typing import Any

from tests.unit.runtime.fakes import KINDS, FakeContext, FakeJob, executor, fails_at, handler, process


@KINDS
def test_a_function_gets_each_message(is_async: bool) -> None:
    seen: list[int] = []
    ran = executor(handler(lambda message: seen.append(message.offset), is_async), FakeContext())
    job = process(ran, FakeJob(), on_loop=is_async)
    assert seen == [0, 1, 2]
    assert (job.said, job.detached) == (["complete"], 0)


@KINDS
def test_a_job_that_fails_stores_what_is_done_and_copies_its_messages(is_async: bool) -> None:
    context = FakeContext()
    function = handler(lambda message: None if message.offset < 2 else fails_at(2)(message), is_async)
    job = process(executor(function, context), FakeJob(), on_loop=is_async)
    assert (job.said, job.detached) == ([("done", 1), "retry"], 1)
    assert context.heard == ["job.failed"]


@KINDS
def test_a_message_that_a_handler_keeps_is_copied(is_async: bool) -> None:
    kept: list[Any] = []
    ran = executor(handler(lambda message: kept.append(message), is_async), FakeContext())
    job = process(ran, FakeJob(), on_loop=is_async)
    assert (job.said, job.detached) == (["complete"], 1)


@KINDS
def test_a_call_whose_body_has_not_run_fails_its_message(is_async: bool) -> None:
    context = FakeContext()
    job = process(
        executor(handler(lambda message: (each for each in ""), is_async), context), FakeJob(), on_loop=is_async
    )
    assert job.said == ["retry"]
    assert context.heard == ["job.failed"]
