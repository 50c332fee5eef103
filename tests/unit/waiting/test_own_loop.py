"""An event loop of awoke's own goes on, and closes, whatever user code or a late call does to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from awoke.waiting.own_loop import run_loop

WITHIN_S = 30.0


class Case:
    """A loop on a thread of its own, and the errors that ended it."""

    def __init__(self) -> None:
        self.loop, self.ends = asyncio.new_event_loop(), list[BaseException]()
        self.has_ended = False
        self.on_end: Callable[[], object] = lambda: None
        arguments = (self.loop, lambda: self.has_ended, self._end)
        self.thread = threading.Thread(target=run_loop, args=arguments, daemon=True)
        self.thread.start()

    def _end(self, error: BaseException) -> None:
        self.ends.append(error)
        self.on_end()

    def leave(self, task: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Leaves a task on the loop, which has taken its first step."""

        async def begin() -> None:
            self.left = asyncio.create_task(task())
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(begin(), self.loop).result(WITHIN_S)

    def end(self) -> None:
        def stop() -> None:
            self.has_ended = True
            self.loop.stop()

        self.loop.call_soon_threadsafe(stop)
        self.thread.join(WITHIN_S)
        assert not self.thread.is_alive()
        assert self.loop.is_closed()


def test_a_loop_ends_what_is_left_on_it() -> None:
    case, told, kept, gate = Case(), list[str](), list[Any](), threading.Event()

    def end_thread() -> None:
        gate.wait(WITHIN_S)
        told.append("thread")

    async def generate() -> Any:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            told.append("generator")

    async def left() -> None:
        generator = generate()
        kept.append(generator)
        await anext(generator)
        asyncio.get_running_loop().run_in_executor(None, end_thread)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            told.append("task")
            gate.set()

    case.leave(left)
    case.end()
    assert sorted(told) == ["generator", "task", "thread"]
    assert case.ends == []


def test_a_loop_closes_although_it_is_stopped_meanwhile() -> None:
    case, told = Case(), list[str]()

    async def left() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(3):
                asyncio.get_running_loop().stop()
                await asyncio.sleep(0)
            told.append("ended")

    case.leave(left)
    case.end()
    assert told == ["ended"]
    assert case.ends == [], "it was to end"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_end_while_the_loop_closes_is_told_and_it_closes(kind: type[BaseException]) -> None:
    case = Case()

    async def left() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise kind(3)

    case.leave(left)
    case.end()
    assert [type(end) for end in case.ends] == [kind]


def test_an_error_of_a_task_that_was_left_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()

    async def left() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise RuntimeError("at its end")

    case.leave(left)
    case.end()
    assert "a task that user code had left has failed at the end of its event loop" in caplog.text
    assert "at its end" in caplog.text
    assert case.ends == []


def test_the_end_of_a_loop_that_another_thread_has_closed_is_told() -> None:
    case = Case()
    case.on_end = case.loop.close  # Between two runs.

    case.loop.call_soon_threadsafe(case.loop.stop)
    case.thread.join(WITHIN_S)
    assert not case.thread.is_alive()
    assert [str(end) for end in case.ends] == ["user code has stopped the event loop on which async functions run"], (
        "the app is to end: nothing runs its async functions any more"
    )
