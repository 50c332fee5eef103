"""Waiting for the engine: on an event loop without blocking it, and by callbacks on a thread that lives no longer."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, cast

import pytest

from awoke._native import Mailbox
from awoke.waiting import handles as _waiting
from awoke.waiting.handles import call_back, resolve
from awoke.waiting.lone_step import is_idle, run_lone_step
from tests.support.waiting import Collected


class Answer:
    """Something of the engine's that has a result when `give` is called; any thread may do that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._result: list[object] = []
        self._waiting: list[tuple[Mailbox, int]] = []

    def give(self, result: object) -> None:
        with self._lock:
            self._result.append(result)
        for mailbox, token in self._waiting:
            mailbox.post(token)

    def done(self) -> bool:
        return bool(self._result)

    def result(self) -> object:
        (result,) = self._result
        if isinstance(result, BaseException):
            raise result
        return result

    def notify(self, mailbox: Mailbox, token: int) -> bool:
        with self._lock:
            if not self._result:
                self._waiting.append((mailbox, token))
            return not self._result


def answered(result: object) -> Answer:
    answer = Answer()
    answer.give(result)
    return answer


async def test_a_result_that_is_there_is_returned_without_a_turn_of_the_loop() -> None:
    waiting = resolve(answered(7))
    with pytest.raises(StopIteration) as ended:
        waiting.send(None)
    assert ended.value.value == 7


async def test_a_result_of_another_thread_wakes_the_task_that_waits_for_it() -> None:
    answers = [Answer() for _ in range(3)]
    tasks = [asyncio.ensure_future(resolve(each)) for each in answers]

    def give_all() -> None:
        for number, each in enumerate(answers):
            each.give(number)

    thread = threading.Thread(target=give_all)
    await asyncio.sleep(0)
    thread.start()
    assert await asyncio.wait_for(asyncio.gather(*tasks), 10) == [0, 1, 2]
    thread.join()


async def test_the_error_of_a_result_is_raised() -> None:
    answer = Answer()
    task = asyncio.ensure_future(resolve(answer))
    await asyncio.sleep(0)
    answer.give(ValueError("no good"))
    with pytest.raises(ValueError, match="no good"):
        await asyncio.wait_for(task, 10)


async def test_a_result_that_comes_before_the_wait_is_registered_is_not_waited_for() -> None:
    class Late(Answer):
        def notify(self, mailbox: Mailbox, token: int) -> bool:
            self.give(7)
            return super().notify(mailbox, token)

    assert await asyncio.wait_for(resolve(Late()), 10) == 7


async def test_a_wait_that_was_cancelled_disturbs_no_other() -> None:
    cancelled, other = Answer(), Answer()
    tasks = [asyncio.ensure_future(resolve(each)) for each in (cancelled, other)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    cancelled.give(1)
    other.give(2)
    assert await asyncio.wait_for(tasks[1], 10) == 2
    mailbox = _waiting._mailboxes[asyncio.get_running_loop()]
    assert not mailbox._calls
    assert not mailbox._waits


async def turns_until_resolved(answers: Sequence[Answer]) -> list[int]:
    """Gives answers to waiting tasks. Returns the turns between the look at the mailbox and the run of each task."""
    loop, turns, ran = asyncio.get_running_loop(), [0], []

    async def wait(answer: Answer) -> None:
        await resolve(answer)
        ran.append(turns[0])

    def next_turn() -> None:
        turns[0] += 1
        if len(ran) < len(answers):
            loop.call_soon(next_turn)

    tasks = [asyncio.ensure_future(wait(each)) for each in answers]
    await asyncio.sleep(0)
    mailbox = _waiting._mailboxes[loop]
    loop.remove_reader(mailbox._mailbox.fileno())
    for each in answers:
        each.give(7)
    loop.call_soon(mailbox._deliver)
    loop.call_soon(next_turn)
    await asyncio.gather(*tasks)
    loop.add_reader(mailbox._mailbox.fileno(), mailbox._deliver)
    return ran


async def test_a_task_whose_result_comes_alone_runs_in_the_turn_that_finds_it_and_several_in_the_next() -> None:
    assert await turns_until_resolved([Answer()]) == [0]
    assert await turns_until_resolved([Answer(), Answer()]) == [1, 1]


async def test_a_task_that_is_woken_at_once_has_its_context_and_may_be_cancelled_by_another() -> None:
    word: ContextVar[str] = ContextVar("word")
    first, second = Answer(), Answer()

    async def wait_for_first() -> str:
        word.set("first")
        await resolve(first)
        assert asyncio.current_task() is tasks[0]
        tasks[1].cancel()
        return word.get()

    async def wait_for_second() -> None:
        word.set("second")
        await resolve(second)

    tasks: list[asyncio.Task[Any]] = [asyncio.ensure_future(each()) for each in (wait_for_first, wait_for_second)]
    await asyncio.sleep(0)
    first.give(7)
    assert await asyncio.wait_for(tasks[0], 10) == "first"
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    assert word.get("none") == "none"


async def test_a_lone_callback_that_is_ready_runs_at_once_and_one_of_several_in_its_turn() -> None:
    loop, ran, done = asyncio.get_running_loop(), list[str](), asyncio.Event()

    def begin(names: Sequence[str]) -> None:
        for name in names:
            loop.call_soon(ran.append, name)
        run_lone_step(loop)
        ran.append("end of the callback")
        loop.call_soon(done.set)

    for names, expected in (
        (["a"], ["a", "end of the callback"]),
        (["a", "b"], ["end of the callback", "a", "b"]),
        ([], ["end of the callback"]),
    ):
        ran.clear()
        done.clear()
        loop.call_soon(begin, names)
        await done.wait()
        assert ran == expected


async def test_a_lone_callback_that_was_cancelled_is_not_run() -> None:
    loop, ran, done = asyncio.get_running_loop(), list[str](), asyncio.Event()

    def begin() -> None:
        loop.call_soon(ran.append, "cancelled").cancel()
        run_lone_step(loop)
        loop.call_soon(done.set)

    loop.call_soon(begin)
    await done.wait()
    assert ran == []


@pytest.mark.parametrize(("count", "expected"), [(1, [True]), (3, [False, False, True])])
async def test_a_loop_is_idle_in_the_last_callback_of_its_turn(count: int, expected: list[bool]) -> None:
    loop, told, done = asyncio.get_running_loop(), list[bool](), asyncio.Event()
    for _ in range(count):
        loop.call_soon(lambda: told.append(is_idle(loop)))
    loop.call_later(0.01, done.set)
    await done.wait()
    assert told == expected


async def test_of_a_loop_that_is_not_asyncio_s_own_no_callback_is_run() -> None:
    loop = cast(asyncio.AbstractEventLoop, object())
    assert not is_idle(loop)
    run_lone_step(loop)


async def test_a_wait_that_two_look_at_wakes_both_and_no_longer_one_that_has_left() -> None:
    loop, told = asyncio.get_running_loop(), list[str]()
    for end in (_waiting.Wait.end, _waiting.Wait.end_now, _waiting.Wait.cancel):
        wait = _waiting.Wait(loop=loop)
        callbacks = [lambda _, name=name: told.append(name) for name in ("left", "a", "b")]
        for each in callbacks:
            wait.add_done_callback(each)
        assert wait.remove_done_callback(callbacks[0]) == 1
        end(wait)
        end(wait)
        wait.end_now()  # It has ended.
        await asyncio.sleep(0)
        assert sorted(told) == ["a", "b"]
        told.clear()


async def test_messages_that_tasks_wait_for_in_one_turn_of_the_loop_are_sent_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flushed: list[Sequence[Any]] = []
    monkeypatch.setattr(_waiting, "DeliveryHandle", Answer)
    monkeypatch.setattr(_waiting, "flush_now", flushed.append)
    first, second, third = Answer(), Answer(), Answer()
    tasks = [asyncio.ensure_future(resolve(each)) for each in (first, second)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks.append(asyncio.ensure_future(resolve(third)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert flushed == [[first, second], [third]]
    for each in (first, second, third):
        each.give(7)
    assert await asyncio.gather(*tasks) == [7, 7, 7]


async def test_a_message_that_a_lone_task_waits_for_is_sent_in_the_same_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(handles: Sequence[Answer]) -> None:
        for each in handles:
            each.give(7)

    def wait_for_another_turn(mailbox: object) -> None:
        raise AssertionError("the message waits for the next turn")

    monkeypatch.setattr(_waiting, "DeliveryHandle", Answer)
    monkeypatch.setattr(_waiting, "flush_now", answer)
    monkeypatch.setattr(_waiting.LoopMailbox, "_flush", wait_for_another_turn)
    assert await asyncio.wait_for(resolve(Answer()), 10) == 7


def test_a_loop_that_has_ended_is_kept_by_nothing() -> None:
    async def wait() -> weakref.ref[asyncio.AbstractEventLoop]:
        answer = Answer()
        asyncio.get_running_loop().call_soon(answer.give, 7)
        await resolve(answer)
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(wait())
    gc.collect()
    assert loop() is None


@pytest.fixture
def called() -> Iterator[Collected[object]]:
    """Collects what callbacks say; waits for the end of their thread."""
    yield Collected()
    for thread in threading.enumerate():
        if thread.name == "awoke-callbacks":
            thread.join(10)


def test_a_callback_runs_with_its_handle_on_a_thread_of_awokes(called: Collected[object]) -> None:
    answer = Answer()
    call_back(answer, lambda handle: called.add((handle.result(), threading.current_thread().name)))
    assert called.items == []
    answer.give(7)
    assert called.wait_for(1) == [(7, "awoke-callbacks")]


def test_a_callback_of_a_result_that_is_there_runs_too(called: Collected[object]) -> None:
    call_back(answered(7), lambda handle: called.add(handle.result()))
    assert called.wait_for(1) == [7]


def test_a_callback_that_raises_is_logged_and_ends_no_other(
    called: Collected[object], caplog: pytest.LogCaptureFixture
) -> None:
    answers = [Answer(), Answer()]
    call_back(answers[0], lambda handle: 1 / 0)
    call_back(answers[1], lambda handle: called.add(handle.result()))
    answers[0].give(1)
    answers[1].give(2)
    assert called.wait_for(1) == [2]
    (record,) = caplog.records
    assert record.getMessage().startswith("a callback of ")
    assert record.exc_info is not None


def test_the_thread_ends_with_its_last_callback_and_a_later_one_has_another(called: Collected[object]) -> None:
    for number in range(2):
        call_back(answered(number), lambda handle: called.add(threading.current_thread()))
        thread = called.wait_for(number + 1)[number]
        assert isinstance(thread, threading.Thread)
        thread.join(10)
        assert not thread.is_alive()


def test_a_callback_may_ask_for_another(called: Collected[object]) -> None:
    call_back(answered(1), lambda _: call_back(answered(2), lambda handle: called.add(handle.result())))
    assert called.wait_for(1) == [2]
