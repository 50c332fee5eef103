"""The warning about a call that blocks an event loop names the line of the user's that calls."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from awoke.rpc.caller.blocking import PACKAGE, BlockingCallWarning, warn_blocking


def test_the_warning_names_the_line_that_blocks_and_what_to_use() -> None:
    with pytest.warns(BlockingCallWarning) as caught:
        warn_blocking("call", "await caller.acall(…)")
    (warning,) = caught
    assert warning.filename == __file__
    assert "Caller.call blocks the event loop" in str(warning.message)
    assert "use await caller.acall(…)" in str(warning.message)


def test_frames_of_the_package_are_not_the_line_that_blocks() -> None:
    names: dict[str, Any] = {"warn_blocking": warn_blocking}
    source = "def call():\n    warn_blocking('call', 'acall')\ndef proxy():\n    call()\n"
    exec(compile(source, f"{PACKAGE}caller/made_up.py", "exec"), names)
    with pytest.warns(BlockingCallWarning) as caught:
        names["proxy"]()
    assert [warning.filename for warning in caught] == [__file__]


def test_each_line_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn_blocking("call", "acall")
        warn_blocking("scatter", "ascatter")
    assert [str(warning.message).split()[0] for warning in caught] == ["Caller.call", "Caller.scatter"]
