"""The stacks of user code that runs now, for the log: of threads, and of the coroutines that a task waits in."""

from __future__ import annotations

import faulthandler
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from awoke.text.frames import frames_text, stack_text
from awoke.waiting.drive import within

HAS_GIL = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""False: another thread's frames change while they are read, and the interpreter may crash."""

ENDED = "(ended meanwhile)"

WITHIN = within.__code__
"""It steps the coroutine that it runs by itself: the interpreter does not know which one it waits for."""


class Unfinished(NamedTuple):
    """User code that was called and has not returned."""

    what: str
    """Its name, with the message that it works on."""
    stack: str


def awaiting_frames(coroutine: Any) -> Iterator[FrameType]:
    """Yields the frames of a coroutine and of those that it waits for, the outermost first."""
    awaited = coroutine
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            yield frame
        if frame is not None and frame.f_code is WITHIN:
            awaited = frame.f_locals.get("flow")
        else:
            awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


def is_running(coroutine: Any) -> bool:
    """Tells whether a coroutine of another thread runs now, and does not wait."""
    return isinstance(coroutine, types.CoroutineType) and coroutine.cr_running


def stack_of_coroutine(coroutine: Any) -> str:
    """Returns the stack of a coroutine as text: what it waits in, or the stack of its thread where it runs now."""
    if not is_running(coroutine):
        return frames_text([traceback.extract_stack(frame, 1)[0] for frame in awaiting_frames(coroutine)]) or ENDED
    threads = (each for each in threading.enumerate() if _runs_in(each, coroutine.cr_frame))
    return next((stack_of(each) for each in threads), ENDED)


def _runs_in(thread: threading.Thread, wanted: FrameType | None) -> bool:
    """Tells whether a frame is one of those that a thread runs now."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame is not wanted:
        frame = frame.f_back
    return frame is not None


def stack_of(thread: threading.Thread) -> str:
    """Returns the stack of a thread as text, as a traceback prints it, from the user's first frame on."""
    if not HAS_GIL:
        return dumped_stack(thread)
    frame = sys._current_frames().get(thread.ident or 0)
    return stack_text(frame) if frame is not None else ENDED


def dumped_stack(thread: threading.Thread) -> str:
    """Returns the stack of a thread without its lines of code, the innermost call first.

    faulthandler stops all threads while it reads their stacks.
    """
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        stacks = file.read().split("\n\n")
    number = f"0x{thread.ident or 0:016x}"
    return next((each for each in stacks if number in each.partition("\n")[0]), ENDED)
