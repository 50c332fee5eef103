"""Warns when a blocking method of a caller is used on an event loop's thread."""

from __future__ import annotations

import os
import sys
import warnings

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class BlockingCallWarning(RuntimeWarning):
    """A blocking method was used on the thread of a running event loop, which does nothing else meanwhile."""


def warn_blocking(method: str, instead: str) -> None:
    """Warns at the line outside of this package that blocks. Python shows a warning once for each such line."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    text = f"Caller.{method} blocks the event loop that runs on this thread: use {instead}"
    warnings.warn(text, BlockingCallWarning, stacklevel=level)
