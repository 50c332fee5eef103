"""Flows: written once, run blocking or on an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

import awoke
from awoke.waiting.drive import drive, elsewhere, run_now, until


class Later:
    """A result for a flow to wait for; remembers how it was waited for."""

    def __init__(self, result: str | BaseException) -> None:
        self._result = result
        self.waits: list[str] = []

    def wait(self) -> str:
        self.waits.append("blocking")
        return self._outcome()

    def __await__(self) -> Generator[None, None, str]:
        self.waits.append("loop")
        yield  # One turn of the loop.
        return self._outcome()

    def _outcome(self) -> str:
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result


async def both(first: Later, second: Later) -> str:
    return await until(first) + await until(second)


def test_a_driven_flow_blocks_and_an_awaited_one_does_not() -> None:
    first, second = Later("a"), Later("b")
    assert drive(both(first, second)) == "ab"
    assert asyncio.run(both(first, second)) == "ab"
    assert first.waits == second.waits == ["blocking", "loop"]


def test_the_error_of_a_wait_is_raised_within_the_flow() -> None:
    async def recover() -> str:
        try:
            return await until(Later(ValueError("broken")))
        except ValueError as error:
            return f"{error}, repaired: {await until(Later('well'))}"

    assert drive(recover()) == asyncio.run(recover()) == "broken, repaired: well"
    with pytest.raises(ValueError, match="broken"):
        drive(both(Later("a"), Later(ValueError("broken"))))


def test_a_flow_that_is_interrupted_is_closed() -> None:
    ended = []

    async def flow() -> None:
        try:
            await until(Later(KeyboardInterrupt()))
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        drive(flow())
    assert ended == [True]


def test_a_flow_may_be_driven_on_the_thread_of_an_event_loop() -> None:
    async def on_loop() -> tuple[str, str]:
        blocking, awaited = Later("a"), Later("b")
        drive(both(blocking, blocking))
        await until(awaited)
        return blocking.waits[0], awaited.waits[0]

    assert asyncio.run(on_loop()) == ("blocking", "loop")


def test_user_code_of_a_driven_flow_may_run_an_event_loop_and_drive_flows() -> None:
    inner, innermost = Later("inner"), Later("innermost")

    async def method() -> str:
        return await until(inner) + drive(both(innermost, innermost))

    async def flow() -> str:
        result = asyncio.run(method())
        return result + await until(Later(" end"))

    assert drive(flow()) == "innerinnermostinnermost end"
    assert (inner.waits, innermost.waits) == (["loop"], ["blocking"] * 2)


def test_what_blocks_runs_on_another_thread_than_the_loops() -> None:
    async def flow() -> int:
        return await elsewhere(threading.get_ident)

    assert drive(flow()) == threading.get_ident()
    assert asyncio.run(flow()) != threading.get_ident()


def test_a_coroutine_that_waits_for_nothing_runs_on_this_thread() -> None:
    async def result() -> int:
        return 7

    async def raises() -> None:
        raise OSError("no good")

    assert run_now(result(), "test") == 7
    with pytest.raises(OSError, match="no good"):
        run_now(raises(), "test")


def test_a_coroutine_that_waits_has_no_event_loop_here() -> None:
    said: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            said.append("closed")

    with pytest.raises(
        awoke.HandlerDidNotRun, match=r"session: awaits something around a def handler.* make that async"
    ):
        run_now(wait(), "session")
    assert said == ["closed"]


def test_a_function_elsewhere_that_raises_stop_iteration_ends_its_wait() -> None:
    def stop() -> None:
        raise StopIteration

    async def wait() -> None:
        with pytest.raises(RuntimeError, match="raised StopIteration"):
            await asyncio.wait_for(elsewhere(stop), 30)

    asyncio.run(wait())
