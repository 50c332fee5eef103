"""Names the functions whose frames hold the message that a handler processes: the log looks for them on the stack.

Nothing is recorded for each message, so that handlers pay nothing. A function that is marked here keeps the message in
its local variable `message` while it runs. Only the thread that runs a frame may read it: without the GIL, another
thread would read it while it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

MESSAGE_LOOPS: set[CodeType] = set()
"""Call a handler once for each message, which `message` holds."""


def message_loop(function: Function) -> Function:
    """Marks the decorated function as one that calls a handler once for each message."""
    MESSAGE_LOOPS.add(function.__code__)
    return function
