"""Signals as bytes that a loop waits for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from awoke.observe.web.loop import Loop
from awoke.swarm.signals import SIGNALS, Signals


@pytest.fixture
def restored() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in SIGNALS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def test_a_signal_wakes_the_loop_and_is_named(restored: None) -> None:
    loop, heard = Loop(), list[int]()
    signals = Signals(loop, heard.append)
    signals.open()
    os.kill(os.getpid(), signal.SIGTSTP)
    loop.turn()
    assert heard == [signal.SIGTSTP]
    signals.close()
    loop.close()
