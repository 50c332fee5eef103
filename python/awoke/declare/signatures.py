"""Reads the signatures of user code, whose annotations may name what does not exist, or not yet."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any


def signature_of(function: Callable[..., Any], *, follows_wrapped: bool = True) -> inspect.Signature:
    """Returns the signature of a function.

    Python 3.14 evaluates annotations when they are read, and earlier ones when the function is defined. There, one that
    names something unknown is a text, as under `from __future__ import annotations`.

    Raises:
        TypeError, ValueError: The function has no known signature.
    """
    try:
        return inspect.signature(function, follow_wrapped=follows_wrapped)
    except NameError:
        if sys.version_info >= (3, 14):
            from annotationlib import Format

            return inspect.signature(function, follow_wrapped=follows_wrapped, annotation_format=Format.STRING)
        raise
