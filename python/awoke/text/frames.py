"""Tells user code from awoke's and Python's own in stacks and tracebacks, which begin with the user's first frame."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Sequence
from types import FrameType, TracebackType

from awoke.text.printable import TEXT_MAX, bounded

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of awoke."""
LIBRARY = os.path.dirname(threading.__file__) + os.sep
"""The folder of Python's standard library."""
INSTALLED = (os.path.join(LIBRARY, "site-packages") + os.sep, os.path.join(LIBRARY, "dist-packages") + os.sep)


def is_of_awoke(filename: str) -> bool:
    """Tells whether a file belongs to awoke."""
    return filename.startswith(PACKAGE)


def is_of_user(filename: str) -> bool:
    """Tells whether a file belongs neither to awoke nor to Python's standard library: the user's, or a library's."""
    is_of_python = filename.startswith("<frozen") or (
        filename.startswith(LIBRARY) and not filename.startswith(INSTALLED)
    )
    return not is_of_python and not is_of_awoke(filename)


def stack_text(frame: FrameType) -> str:
    """Returns the stack of a frame as a traceback prints it: from the user's first frame on, or all if there is none.

    The process's main module calls awoke, or awoke's command does, before it runs user code: what is outside of the
    outermost frame of awoke's does not count as the user's.
    """
    return frames_text(traceback.extract_stack(frame))


def frames_text(frames: Sequence[traceback.FrameSummary]) -> str:
    """Returns frames, the outermost first, as `stack_text` does."""
    own = next((place for place, each in enumerate(frames) if is_of_awoke(each.filename)), 0)
    first = next((place for place in range(own, len(frames)) if is_of_user(frames[place].filename)), 0)
    return "".join(traceback.StackSummary.from_list(list(frames[first:])).format())


def from_user(trace: TracebackType | None) -> TracebackType | None:
    """Returns a traceback from its first frame on that is not awoke's; all of it if there is no such frame."""
    found = trace
    while found is not None and is_of_awoke(found.tb_frame.f_code.co_filename):
        found = found.tb_next
    return found or trace


def traceback_text(error: BaseException, trace: TracebackType | None) -> str:
    """Returns the traceback of an error for the log, `bounded`: each one from the user's first frame on.

    An error of awoke's that no user code has raised has no frames: its text says all. The same holds for its cause.
    """
    found = traceback.TracebackException(type(error), error, trace, compact=True)
    _shorten(found, error)
    return bounded("".join(bounded(each) for each in found.format()), 4 * TEXT_MAX).rstrip("\n")


def _shorten(found: traceback.TracebackException, error: BaseException) -> None:
    first = next((place for place, each in enumerate(found.stack) if is_of_user(each.filename)), None)
    is_own = type(error).__module__.partition(".")[0] == "awoke"
    if first is not None:
        found.stack = traceback.StackSummary.from_list(list(found.stack)[first:])
    elif is_own:
        found.stack = traceback.StackSummary.from_list([])
    for name, inner in (("__cause__", error.__cause__), ("__context__", error.__context__)):
        chained = getattr(found, name)
        if chained is None or inner is None:
            continue
        has_user = any(is_of_user(each.filename) for each in chained.stack)
        if is_own and not has_user:
            setattr(found, name, None)
        else:
            _shorten(chained, inner)
