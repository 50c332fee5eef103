"""The main thread hears words and signals, whichever thread they come on."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from awoke.runtime.process.inbox import Inbox


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with contextlib.closing(Inbox()) as inbox:
        yield inbox


def test_words_come_in_order(inbox: Inbox) -> None:
    for word in ("a", "b", "c"):
        inbox.put(word)
    assert [inbox.get() for _ in range(3)] == ["a", "b", "c"]


def test_a_word_of_another_thread_wakes_the_reader(inbox: Inbox) -> None:
    for number in range(200):
        thread = threading.Thread(target=inbox.put, args=(str(number),))
        thread.start()
        assert inbox.get() == str(number)
        thread.join()


def test_more_words_than_the_buffer_holds_are_all_heard(inbox: Inbox) -> None:
    for number in range(10_000):
        inbox.put(str(number))
    assert [inbox.get() for _ in range(10_000)] == [str(number) for number in range(10_000)]


def test_a_closed_inbox_takes_words_that_are_not_heard() -> None:
    inbox = Inbox()
    inbox.close()
    inbox.put("late")


def test_handlers_and_the_descriptor_are_restored(inbox: Inbox) -> None:
    before = signal.getsignal(signal.SIGTERM)
    restore = inbox.hear({signal.SIGTERM: "signal"})
    signal.raise_signal(signal.SIGTERM)
    assert inbox.get() == "signal"
    restore()
    assert signal.getsignal(signal.SIGTERM) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_another_thread_than_the_main_one_installs_no_handlers(inbox: Inbox) -> None:
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=inbox.hear, args=({signal.SIGTERM: "signal"},))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == before


ON_ANOTHER_THREAD = """
import signal, threading
from awoke.runtime.process.inbox import Inbox

inbox, reached = Inbox(), threading.Barrier(2)
inbox.hear({signal.SIGTERM: "signal"})

def send():
    for _ in range(300):
        reached.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=send, daemon=True).start()
for _ in range(300):
    reached.wait()
    assert inbox.get() == "signal"
print("heard")
"""


def test_a_signal_that_another_thread_gets_wakes_the_main_thread() -> None:
    """In a process of its own: handlers belong to the main thread, and a lost wake-up would hang it."""
    done = subprocess.run([sys.executable, "-c", ON_ANOTHER_THREAD], capture_output=True, text=True, timeout=30)
    assert done.stdout == "heard\n", done.stderr
