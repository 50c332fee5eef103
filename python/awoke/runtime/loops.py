"""Names the functions whose frames tell what a job is doing: the log and the stop look for them on stacks.

Nothing is recorded for each message, so that handlers pay nothing. A function that is marked here keeps certain local
variables, under these names, while it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

MESSAGE_LOOPS: set[CodeType] = set()
"""Call a handler once for each message, which `message` holds."""

PROGRESS_LOOPS: set[CodeType] = set()
"""Call a handler once for each message of `job`; `done` holds the last message that is done, and nothing else is
needed."""

JOB_RUNS: set[CodeType] = set()
"""Run `job` to its end."""

HOOK_RUNS: set[CodeType] = set()
"""Run `hook` to its end."""


def marked(*kinds: set[CodeType]) -> Callable[[Function], Function]:
    """Adds the decorated function to these kinds."""

    def mark(function: Function) -> Function:
        for kind in kinds:
            kind.add(function.__code__)
        return function

    return mark
