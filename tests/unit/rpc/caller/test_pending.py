"""Calls that have their results later: one result, a stream, and the results of several responders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, cast

import pytest

from awoke import _native, rpc
from awoke.rpc.caller.exchange import Part, ReplyReader
from awoke.rpc.caller.pending import Gathered, PendingResult, ScatteredCall, Stop, Stream
from awoke.rpc.errors import KINDS
from awoke.waiting.drive import drive
from tests.support.waiting import Collected
from tests.unit.rpc.caller.fakes import (
    AT_ONCE,
    BUSY,
    END,
    FORMS,
    LATE,
    RESULT,
    WAYS,
    WRONG,
    FakeCall,
    FakeCaller,
    Run,
    attempts_of,
    item,
    planned,
)
from tests.unit.runtime.fakes import wait_for_callbacks


def pending(call: FakeCall) -> PendingResult:
    return PendingResult(ReplyReader("shop", KINDS, FORMS), planned(), cast(_native.Call, call))


def test_a_result_is_there_as_often_as_it_is_asked_for() -> None:
    result = pending(FakeCall(RESULT))
    assert result.done()
    assert result.wait() == result.result() == result.wait(0.0) == 1
    assert result.done()


def test_a_result_that_is_not_there_is_an_error_and_the_call_goes_on() -> None:
    call = FakeCall()
    result = pending(call)
    assert not result.done()
    with pytest.raises(TimeoutError, match="quote: no result yet"):
        result.result()
    with pytest.raises(TimeoutError, match=r"quote: no result within 0\.5 s"):
        result.wait(0.5)
    assert not call.is_cancelled
    call.add(RESULT)
    assert result.wait() == 1


def test_a_call_that_failed_raises_each_time() -> None:
    result = pending(FakeCall(WRONG))
    for _ in range(2):
        with pytest.raises(rpc.InvalidArgument, match="wrong"):
            result.wait()


def test_a_wait_that_is_interrupted_cancels_the_call() -> None:
    call = FakeCall()

    def interrupted(timeout_s: float | None) -> bool:
        raise KeyboardInterrupt

    vars(call)["wait"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        pending(call).wait()
    assert call.is_cancelled


def test_a_task_waits_for_the_result() -> None:
    async def run() -> Any:
        call = FakeCall()
        task = asyncio.ensure_future(wait_for(pending(call)))
        await asyncio.sleep(0)
        assert not task.done()
        call.add(RESULT)
        return await asyncio.wait_for(task, 30)

    assert asyncio.run(run()) == 1


async def wait_for(result: PendingResult) -> Any:
    return await result


def test_a_task_that_is_cancelled_cancels_the_call() -> None:
    async def run() -> FakeCall:
        call = FakeCall()
        task = asyncio.ensure_future(wait_for(pending(call)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return call

    assert asyncio.run(run()).is_cancelled


def test_a_call_is_cancelled_once() -> None:
    result = pending(FakeCall())
    assert (result.cancel(), result.cancel()) == (True, False)


def test_a_callback_gets_the_result_when_it_is_there() -> None:
    call, called = FakeCall(), Collected[PendingResult]()
    result = pending(call)
    result.add_done_callback(called.add)
    assert called.items == []
    call.add(RESULT)
    assert called.wait_for(1) == [result]
    wait_for_callbacks()


def test_a_call_has_the_id_of_its_headers() -> None:
    result = pending(FakeCall())
    assert (result.id, result.woken_at_ns) == (b"an id", 7)


Read = Callable[[Stream, list[Any]], None]


def read_blocking(stream: Stream, found: list[Any]) -> None:
    for each in stream:
        found.append(each)
        if each == 9:
            break


def read_on_loop(stream: Stream, found: list[Any]) -> None:
    async def read() -> None:
        async with contextlib.aclosing(cast(Any, aiter(stream))) as results:
            async for each in results:
                found.append(each)
                if each == 9:
                    break

    asyncio.run(read())


READS = pytest.mark.parametrize("read", [read_blocking, read_on_loop], ids=["blocking", "loop"])


def stream_of(native: FakeCaller) -> Stream:
    attempts, call = attempts_of(native, AT_ONCE), planned(returns=int)
    return Stream(attempts, call, drive(attempts.begin_stream(call)))


@READS
def test_a_stream_gives_its_results_in_order_up_to_its_end(read: Read) -> None:
    native, found = FakeCaller([item(1), item(2), item(3), END]), list[int]()
    read(stream_of(native), found)
    assert found == [1, 2, 3]
    assert not native.calls[0].is_cancelled


@READS
def test_leaving_a_stream_cancels_its_call(read: Read) -> None:
    native, found = FakeCaller([item(9), item(10), END]), list[int]()
    read(stream_of(native), found)
    assert found == [9]
    assert native.calls[0].is_cancelled


@READS
def test_a_stream_that_is_rejected_is_begun_again(read: Read) -> None:
    native, found = FakeCaller([BUSY], [BUSY], [item(1), END]), list[int]()
    read(stream_of(native), found)
    assert found == [1]
    assert [options["window"] for _, _, options in native.asked] == [4, 4, 4]


@READS
def test_a_stream_that_fails_gives_what_came_before(read: Read) -> None:
    native, found = FakeCaller([item(1), WRONG], [item(1), END]), list[int]()
    with pytest.raises(rpc.InvalidArgument):
        read(stream_of(native), found)
    assert found == [1]
    assert native.left() == 1, "it is not begun again"


def gathered(run: Run, native: FakeCaller, replies: int, is_enough: Stop | None = None) -> Gathered:
    found: Gathered = run(
        ScatteredCall(attempts_of(native, AT_ONCE), planned(returns=int), replies, is_enough).gather()
    )
    return found


def reply(number: int) -> Part:
    return ("reply", b"%d" % number, None)


@WAYS
def test_all_responders_have_answered(run: Run) -> None:
    native = FakeCaller([reply(1), WRONG, reply(3)])
    found = gathered(run, native, 3)
    assert (found.results, [type(error) for error in found.errors]) == ([1, 3], [rpc.InvalidArgument])
    assert not found.is_partial
    assert native.asked[0][2]["replies"] == 3


@WAYS
@pytest.mark.parametrize("last", [LATE, END])
def test_when_the_time_is_up_the_replies_until_then_are_enough(run: Run, last: Part) -> None:
    assert gathered(run, FakeCaller([reply(1), last]), 3) == ([1], [], True)


@WAYS
def test_the_user_may_have_enough_earlier(run: Run) -> None:
    native = FakeCaller([reply(1), reply(2), reply(3)])
    assert gathered(run, native, 3, lambda results: sum(results) > 2) == ([1, 2], [], True)
    assert native.calls[0].is_cancelled


@WAYS
def test_a_call_that_could_not_be_made_raises(run: Run) -> None:
    with pytest.raises(rpc.Unavailable):
        gathered(run, FakeCaller([reply(1), ("failed", "unavailable", "no broker")]), 3)
