"""The end of a process that `awoke run` has made: what Python does at its end, but not for ever.

Python joins the threads that are no daemons, calls the functions of `atexit`, which send what is queued (spans, errors,
logs), and joins the processes of `multiprocessing`. Any of these may hang.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from awoke.text.durations import duration
from awoke.text.exit_codes import EXIT_LATE

logger = logging.getLogger(__name__)

LATE_S = 2.0
"""The time for the end of a process whose stop was late, or was not to wait for jobs."""


_has_ended = threading.Event()


class ProcessEnd(NamedTuple):
    """The end of a process: its exit code, and the longest time that the end may take."""

    code: int
    within_s: float
    with_group: bool = False
    """True: the group of processes that this one leads ends with it, because no supervisor is left that ends it."""


def end_process(end: ProcessEnd) -> NoReturn:
    """Ends this process as Python would, except that nothing is taken apart. For the main thread.

    This is how `multiprocessing` ends the processes that it forks. A node that took its objects apart would first copy
    the memory that it shares with others; and a thread that still runs could not go on without them.
    """
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: os._exit(end.code))
    _start(lambda: _exit_late(end))
    for module, name in ((threading, "_shutdown"), (atexit, "_run_exitfuncs")):  # What `multiprocessing` calls, too.
        with contextlib.suppress(BaseException):
            getattr(module, name)()
    _exit(end)


def _exit(end: ProcessEnd) -> NoReturn:
    _has_ended.set()
    flush_streams()
    if end.with_group and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(end.code)


def limit_end(end: ProcessEnd) -> None:
    """Limits the time from the end of the main thread to the end of this process. Does not block."""

    def wait() -> None:
        threading.main_thread().join()
        _exit_late(end)

    _start(wait)


def _start(function: Callable[[], None]) -> None:
    threading.Thread(target=function, name="awoke-ending", daemon=True).start()


def _exit_late(end: ProcessEnd) -> None:
    """Ends this process if it has not ended in time, and logs what it waits for. Blocks until then."""
    if _has_ended.wait(end.within_s):
        return
    waits = "; ".join([*_processes(), *_threads()])
    logger.error("the process does not end within %s; it waits for: %s", duration(end.within_s), waits)
    _kill_children()
    _exit(end._replace(code=end.code or EXIT_LATE))


def flush_streams() -> None:
    """Writes what the standard streams hold. They may be closed, or replaced by anything."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _children() -> list[Any]:
    """Returns the processes of `multiprocessing` that run; only the calling process has any."""
    loaded = sys.modules.get("multiprocessing")
    return [] if loaded is None else loaded.active_children()


def _processes() -> list[str]:
    return [f"process {each.pid} ({each.name})" for each in _children()]


def _kill_children() -> None:
    for each in _children():
        with contextlib.suppress(Exception):
            each.kill()


def _threads() -> list[str]:
    """Returns the threads that a process waits for at its end, with what they run."""
    frames = sys._current_frames()
    waited = [each for each in threading.enumerate() if not each.daemon and each.ident in frames]
    return [f"thread {each.name!r}, {_place(frames[each.ident or 0])}" for each in waited]


def _place(frame: FrameType) -> str:
    """Returns file, line and function of the innermost call that is not Python's own waiting."""
    inner: FrameType | None = frame
    while inner is not None and inner.f_code.co_filename in (threading.__file__, __file__):
        inner = inner.f_back
    shown = inner or frame
    return f"{shown.f_code.co_filename}:{shown.f_lineno} in {shown.f_code.co_name}"
