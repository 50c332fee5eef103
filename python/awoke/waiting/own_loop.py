"""Runs an event loop of awoke's own, which user code can't end. Jobs and remote calls each have such a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def run_loop(
    loop: asyncio.AbstractEventLoop, has_ended: Callable[[], bool], on_end: Callable[[BaseException], object]
) -> None:
    """Runs a loop until awoke stops it, when `has_ended` is true. Blocks.

    A `SystemExit` or `KeyboardInterrupt` in a task of user code's ends any loop, and so does `loop.stop()`. `on_end` is
    called with it, and the loop goes on: the jobs and hooks on it end in order, as those on threads do.
    """
    while not has_ended():
        error: BaseException = RuntimeError("user code has stopped the event loop on which async functions run")
        try:
            loop.run_forever()
        except BaseException as raised:
            error = raised
        if loop.is_closed():
            raise error
        if not has_ended():
            on_end(error)
