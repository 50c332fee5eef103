"""Scripts of faults: the seed decides on them, and they happen after the messages that they were drawn for."""

from __future__ import annotations

import random
import threading

import pytest

from awoke.testing.fault_script import Script, planned


def script(*steps: object, count: int = 3, every: tuple[int, int] = (2, 2)) -> Script:
    return Script(random.Random(1), steps, count, every)  # type: ignore[arg-type]


def test_a_plan_is_that_of_its_seed() -> None:
    plans = [planned(random.Random(seed), 3, 20, (1, 10)) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    gaps = [after.at - before.at for before, after in zip(plans[0], plans[0][1:], strict=False)]
    assert set(gaps) <= set(range(1, 11))
    assert {each.step for each in plans[0]} == {0, 1, 2}


def test_faults_happen_on_a_thread_after_their_messages() -> None:
    happened: list[str] = []
    with script(lambda: happened.append(threading.current_thread().name)) as running:
        for _ in range(6):
            running.count()
    assert happened == ["awoke-faults"] * 3


def test_messages_that_are_counted_together_bring_all_their_faults() -> None:
    happened: list[int] = []
    with script(lambda: happened.append(1)) as running:
        running.count(6)
    assert happened == [1, 1, 1]


def test_a_script_that_had_too_few_messages_fails() -> None:
    text = "2 of 3 faults have not happened: the last comes after 6 messages, and 3 were counted"
    with pytest.raises(AssertionError, match=text), script(lambda: None) as running:
        running.count(3)


def test_a_fault_that_fails_fails_the_block() -> None:
    with pytest.raises(ZeroDivisionError), script(lambda: 1 / 0) as running:
        running.count(6)


def test_the_error_of_the_block_comes_before_that_of_the_script() -> None:
    with pytest.raises(KeyError), script(lambda: 1 / 0) as running:
        running.count(6)
        raise KeyError
