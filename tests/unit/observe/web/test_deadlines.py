"""Deadlines: their order, and how they are moved and cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

import pytest

from awoke.observe.web.deadlines import Deadline, Deadlines
from awoke.testing import VirtualClock


class Timer(Enum):
    """The deadlines of these tests."""

    A = auto()
    B = auto()
    LATE = auto()


class Other(Enum):
    """Deadlines of another kind, with the same values."""

    A = auto()


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as taken:
        yield taken


def test_deadlines_come_in_order_and_can_be_replaced_moved_and_cancelled(clock: VirtualClock) -> None:
    deadlines, done = Deadlines(), list[str]()
    assert deadlines.next_in_s() is None
    deadlines.set(Deadline(Timer.B), 2, lambda: done.append("b"))
    deadlines.set(Deadline(Timer.A), 1, lambda: done.append("a"))
    deadlines.set(Deadline(Timer.LATE), 60, lambda: done.append("late"))
    deadlines.set(Deadline(Timer.LATE), 3, lambda: done.append("sooner"))
    clock.advance(5)
    assert deadlines.next_in_s() == 0.0
    deadlines.run_due()
    assert done == ["a", "b", "sooner"]
    deadlines.set(Deadline(Timer.A), 0, lambda: done.append("moved"))
    deadlines.postpone(60)
    deadlines.run_due()
    assert Deadline(Timer.A) in deadlines
    assert deadlines.next_in_s() == 60
    deadlines.cancel(Deadline(Timer.A))
    assert deadlines.next_in_s() is None


def test_the_deadlines_of_one_number_and_kind_are_cancelled_together(clock: VirtualClock) -> None:
    deadlines = Deadlines()
    kept = [Deadline(Timer.A, 2), Deadline(Other.A, 1), Deadline(Timer.A)]
    for each in [Deadline(Timer.A, 1), Deadline(Timer.B, 1), *kept]:
        deadlines.set(each, 1, lambda: None)
    deadlines.cancel_all(Timer, 1)
    assert [each in deadlines for each in kept] == [True] * 3
    assert Deadline(Timer.A, 1) not in deadlines
    assert Deadline(Timer.B, 1) not in deadlines


def test_a_deadline_that_sets_itself_again_comes_once_a_turn(clock: VirtualClock) -> None:
    deadlines, count = Deadlines(), [0]

    def again() -> None:
        count[0] += 1
        deadlines.set(Deadline(Timer.A), 10, again)

    again()
    clock.advance(12)
    deadlines.run_due()
    assert count == [2]
