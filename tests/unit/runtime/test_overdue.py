"""The stack of a job that runs too long, read by another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from awoke.runtime.overdue import dumped_stack, stack_of


@pytest.mark.parametrize("stack", [stack_of, dumped_stack])
def test_a_stack_names_the_functions_of_its_thread_only(stack: Callable[[threading.Thread], str]) -> None:
    begun, end = threading.Event(), threading.Event()

    def long_handler() -> None:
        begun.set()
        end.wait(30)

    thread = threading.Thread(target=long_handler)
    thread.start()
    assert begun.wait(30)
    text = stack(thread)
    end.set()
    thread.join()
    assert "long_handler" in text
    assert "test_a_stack_names" not in text
    assert stack(thread) == "(ended meanwhile)"
