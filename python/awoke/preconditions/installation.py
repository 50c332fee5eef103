"""Refuses an installation that cannot work, with one error that says what to do.

It must run where the rest of the package does not: on old versions of Python, and without the native module.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

PYTHON_MIN = (3, 11)
PLATFORMS = ("linux", "darwin")
NATIVE = "_native"


def check(folder: str) -> None:
    """Checks that the package in a folder is complete and fits this Python. Does not load the native module.

    Raises:
        ImportError: It cannot work here; the text says why, and what to do.
    """
    if sys.version_info < PYTHON_MIN:
        least, this = (".".join(map(str, version)) for version in (PYTHON_MIN, sys.version_info[:3]))
        raise ImportError(
            f"awoke needs Python {least} or later, and this is {this} ({sys.executable}): use a newer one"
        )
    if not os.path.exists(os.path.join(folder, "__init__.pyi")):
        raise ImportError(f"awoke is incomplete: {folder} has no __init__.pyi; {advice(folder)}")
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    if not any(os.path.exists(os.path.join(folder, NATIVE + suffix)) for suffix in suffixes):
        raise ImportError(why_absent(folder), name=f"awoke.{NATIVE}")


def why_absent(folder: str) -> str:
    """Returns why no native module in a folder fits this Python, and what to do."""
    if sys.platform not in PLATFORMS:
        return f"awoke has no native module for {sys.platform}: it runs on Linux"
    others = sorted(
        name for name in os.listdir(folder) if name.startswith(NATIVE + ".") and name.endswith((".so", ".pyd"))
    )
    if others:
        return (
            f"awoke's native module is for another Python or processor: {folder} has {', '.join(others)}, "
            f"and this Python needs {NATIVE}{importlib.machinery.EXTENSION_SUFFIXES[0]}; {advice(folder)}"
        )
    return f"awoke has no native module in {folder}; {advice(folder)}"


def explain(error: ImportError) -> None:
    """Raises an error that says what to do, if this one is about a native module that is there.

    Raises:
        ImportError: The system refuses the module, or it is that of another version of awoke.
    """
    if error.path is not None and os.path.basename(error.path).startswith(NATIVE + "."):
        text = f"awoke's native module cannot be used: {error}; {advice(os.path.dirname(error.path))}"
        raise ImportError(text, name=error.name, path=error.path) from error


def advice(folder: str) -> str:
    """Returns what to do about a package in this folder: build it in a checkout, or else install it again."""
    checkout = os.path.normpath(os.path.join(folder, "..", ".."))
    if os.path.exists(os.path.join(checkout, "Cargo.toml")):
        return f"build it: make build in {checkout}, or pip install {checkout}"
    return f"install it again with this Python: {sys.executable} -m pip install --force-reinstall --no-cache-dir awoke"
