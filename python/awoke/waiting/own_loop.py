"""Runs an event loop of awoke's own, which user code can't end. Jobs and remote calls each have such a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def run_loop(
    loop: asyncio.AbstractEventLoop, has_ended: Callable[[], bool], on_end: Callable[[BaseException], object]
) -> None:
    """Runs a loop until awoke stops it, when `has_ended` is true, then ends what is left on it, and closes it. Blocks.

    A `SystemExit` or `KeyboardInterrupt` in a task of user code's ends any loop, and so does `loop.stop()`. `on_end` is
    called with it, and the loop goes on: the jobs and hooks on it end in order, as those on threads do. The same holds
    while the loop closes, when tasks are cancelled and threads of its executor end.
    """
    asyncio.set_event_loop(loop)
    try:
        while not has_ended():
            error = _run(loop)
            if error is not None or not has_ended():
                on_end(error or RuntimeError("user code has stopped the event loop on which async functions run"))
            if loop.is_closed():  # Between two runs, by another thread: nothing can go on.
                return
        for end in (_cancel_tasks, loop.shutdown_asyncgens, loop.shutdown_default_executor):
            task = loop.create_task(end())
            task.add_done_callback(lambda _: loop.stop())
            while not task.done() and not loop.is_closed():
                if (error := _run(loop)) is not None:
                    on_end(error)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> BaseException | None:
    """Runs a loop until it is stopped; returns the error that has ended it, if there is one."""
    try:
        loop.run_forever()
    except BaseException as error:
        return error
    return None


async def _cancel_tasks() -> None:
    """Cancels the tasks that user code has left, waits for them, and reports what they raise, as `asyncio.run` does."""
    loop, tasks = asyncio.get_running_loop(), asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            text = "a task that user code had left has failed at the end of its event loop"
            loop.call_exception_handler({"message": text, "exception": error, "task": task})
