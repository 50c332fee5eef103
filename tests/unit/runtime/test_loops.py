"""The functions that are looked for on stacks, and the local variables that are read there."""

from __future__ import annotations

from types import CodeType

import pytest

from awoke.runtime.executor import Executor
from awoke.runtime.loops import HOOK_RUNS, JOB_RUNS, MESSAGE_LOOPS, PROGRESS_LOOPS, marked

KINDS = {"messages": MESSAGE_LOOPS, "progress": PROGRESS_LOOPS, "jobs": JOB_RUNS, "hooks": HOOK_RUNS}


def variables_of(code: CodeType) -> set[str]:
    return {*code.co_varnames, *code.co_cellvars}


@pytest.mark.parametrize(
    ("kind", "read"),
    [("messages", {"message"}), ("progress", {"job", "done"}), ("jobs", {"job"}), ("hooks", {"hook"})],
)
def test_each_function_has_the_variables_that_are_read(kind: str, read: set[str]) -> None:
    assert KINDS[kind]
    assert [code.co_qualname for code in KINDS[kind] if not read <= variables_of(code)] == []


def test_jobs_and_hooks_are_run_by_marked_functions() -> None:
    assert {Executor.run_job.__code__, Executor.process.__code__} <= JOB_RUNS
    assert {Executor.run_hook.__code__, Executor.call_hook.__code__} <= HOOK_RUNS


def test_a_function_is_marked_with_each_kind_and_else_unchanged() -> None:
    one, two = set[CodeType](), set[CodeType]()

    def function() -> str:
        return "result"

    assert marked(one, two)(function) is function
    assert one == two == {function.__code__}
