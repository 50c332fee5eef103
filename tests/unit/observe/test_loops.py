"""The functions that are looked for on stacks, and the local variable that is read there."""

from __future__ import annotations

from awoke.observe.loops import MESSAGE_LOOPS, message_loop
from awoke.runtime.jobs.message_loop import MessageLoop


def test_each_loop_keeps_its_message_in_a_variable_of_this_name() -> None:
    assert {code for code in MESSAGE_LOOPS if MessageLoop.__name__ in code.co_qualname}
    assert [code.co_qualname for code in MESSAGE_LOOPS if "message" not in code.co_varnames] == []


def test_a_function_is_marked_and_else_unchanged() -> None:
    def function() -> str:
        return "result"

    try:
        assert message_loop(function) is function
        assert function.__code__ in MESSAGE_LOOPS
    finally:
        MESSAGE_LOOPS.discard(function.__code__)
