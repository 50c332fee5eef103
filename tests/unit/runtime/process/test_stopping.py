"""The waits of a stop end with their function, their time, or a second signal."""

from __future__ import annotations

import threading

import pytest

from awoke.runtime.process.stopping import InterruptibleWait


def test_a_wait_ends_with_its_function_its_time_or_a_second_signal() -> None:
    wait, end = InterruptibleWait(), threading.Event()

    def outlast() -> str:
        end.wait(30)
        return "done"

    assert wait.call(lambda: "done", "late") == "done"
    assert wait.call(outlast, "late", within_s=0.05) == "late"
    assert wait.interrupt() is True
    assert wait.interrupt() is False
    assert wait.call(lambda: "done", "late") == "done", "what does not block is done all the same"
    assert wait.call(outlast, "late", interrupted_s=0.05) == "late"
    end.set()
    with pytest.raises(ValueError, match="no good"):
        wait.call(lambda: int("no good"), 0)
    for thread in threading.enumerate():
        if thread.name == "awoke-stop-step":
            thread.join(30)
