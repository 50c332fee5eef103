"""The signals of the flights' console: they raise on the main thread, and not inside a block that must end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from examples.flights.ending import Ending, Signals

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def signals() -> Iterator[Signals]:
    before, wakeup = {each: signal.getsignal(each) for each in TAKEN}, signal.set_wakeup_fd(-1)
    found = Signals()
    found.open()
    signal.signal(signal.SIGTERM, found._take)  # Also where it is ignored.
    yield found
    for each, handler in before.items():
        signal.signal(each, handler)
    signal.set_wakeup_fd(wakeup)


def test_a_signal_raises_after_the_outermost_block_that_holds_it_and_once(signals: Signals) -> None:
    reached = list[str]()
    with pytest.raises(Ending), signals.held():
        with signals.held():
            os.kill(os.getpid(), signal.SIGTERM)
            reached.append("inner")
        reached.append("outer")
    with signals.held():
        os.kill(os.getpid(), signal.SIGTERM)
    signals.end()
    with signals.held():
        reached.append("ending")
    assert reached == ["inner", "outer", "ending"]


def test_a_block_of_another_thread_holds_nothing(signals: Signals) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with signals.held():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(30)
    with pytest.raises(Ending):
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    leave.set()
    thread.join(30)
    assert not thread.is_alive()
