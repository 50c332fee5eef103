"""A loop: descriptors and deadlines, and a process that did not run for a while."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from enum import Enum, auto

import pytest

from awoke.observe.web.deadlines import OVERSLEPT_S, Deadline
from awoke.observe.web.loop import Client, Loop


class Timer(Enum):
    """The deadline of a test."""

    TEST = auto()


DEADLINE = Deadline(Timer.TEST)


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def test_a_readable_descriptor_runs_its_action(loop: Loop, pair: tuple[socket.socket, socket.socket]) -> None:
    done: list[str] = []
    loop.watch(pair[0], lambda: done.append("readable"))
    pair[1].send(b"x")
    loop.turn()
    loop.forget(pair[0])
    loop.forget(pair[0])
    loop.deadlines.set(DEADLINE, 0.0, lambda: done.append("due"))
    loop.turn()
    assert done == ["readable", "due"]
    assert loop.wakes == 2


def test_an_action_may_forget_another_descriptor_of_the_same_turn(loop: Loop) -> None:
    done: list[int] = []
    ends = [socket.socketpair() for _ in range(2)]

    def first_come(number: int) -> None:
        done.append(number)
        for reading, _ in ends:
            loop.forget(reading)

    for number, (reading, writing) in enumerate(ends):
        loop.watch(reading, lambda number=number: first_come(number))  # type: ignore[misc]
        writing.send(b"x")
    loop.turn()
    assert len(done) == 1
    for reading, writing in ends:
        reading.close()
        writing.close()


def test_deadlines_are_moved_if_the_process_did_not_run(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []
    loop.deadlines.set(DEADLINE, 0.0, lambda: done.append("due"))
    now_s = time.monotonic() + OVERSLEPT_S * 10
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    loop.turn()
    assert done == []
    assert "deadlines are moved" in caplog.text
    assert DEADLINE in loop.deadlines


def test_the_oldest_client_is_closed_first(loop: Loop) -> None:
    closed: list[int] = []

    def close(number: int) -> None:
        closed.append(number)
        del loop.clients[number]

    for number in range(3):
        loop.clients[number] = Client(lambda number=number: close(number))  # type: ignore[misc]
    assert loop.close_oldest_client()
    assert closed == [0]
    loop.close_clients()
    assert closed == [0, 1, 2]
    assert not loop.close_oldest_client()
