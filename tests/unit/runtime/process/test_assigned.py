"""The present assignments of a group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from awoke.runtime.process.assigned import AssignedPartitions


def hook(generation: int, *, is_current: bool = True) -> Any:
    assignment = SimpleNamespace(is_current=is_current, generation=generation)
    return SimpleNamespace(topic="orders", partition=0, generation=generation, assignment=lambda: assignment)


def test_an_assignment_is_found_until_it_ends() -> None:
    told = list[Any]()
    assigned = AssignedPartitions(lambda *place: told.append(place))
    first = hook(1)
    assigned.add(first)
    assert assigned.find("orders", 0) is first.assignment()
    assert told == [("orders", 0)]
    assigned.remove(first)
    assert assigned.find("orders", 0) is None


def test_the_end_of_an_earlier_assignment_does_not_end_the_present_one() -> None:
    assigned = AssignedPartitions()
    first, second = hook(1), hook(2)
    assigned.add(first)
    assigned.add(second)
    assigned.remove(first)
    assert assigned.find("orders", 0) is second.assignment()


def test_a_lost_assignment_is_not_found() -> None:
    assigned = AssignedPartitions()
    assigned.add(hook(1, is_current=False))
    assert assigned.find("orders", 0) is None
