"""The threads of a process by owner, and those that outlive their owner."""

from __future__ import annotations

import asyncio
import threading

import pytest

from awoke.observe import ledger
from awoke.observe.ledger import APP, Ledger, ThreadEntry, current_work


def test_a_thread_that_user_code_started_is_written_down_with_the_place() -> None:
    book, release = Ledger(), threading.Event()
    ledger.install("shop")
    try:
        with book.acting_for("clicks[3]", 7):
            thread = threading.Thread(target=release.wait, name="forgotten", daemon=True)
            thread.start()
        other = threading.Thread(target=release.wait, daemon=True)
        other.start()
    finally:
        ledger.uninstall("shop")
    assert book.counts()["clicks[3]"] == 1
    (leaked,) = book.leaked("clicks[3]", 7, grace_s=0.01)
    assert leaked.name == "forgotten"
    assert "test_ledger.py" in leaked.started_at
    assert book.leaked("clicks[3]", 8, grace_s=0.01) == []
    release.set()
    thread.join()
    other.join()
    assert book.leaked("clicks[3]", 7) == []


def test_a_thread_of_awoke_that_starts_within_a_job_is_not_the_consumers() -> None:
    book, release = Ledger(), threading.Event()
    ledger.install("shop")
    try:
        with book.acting_for("clicks[3]", 7):
            thread = threading.Thread(target=release.wait, name="awoke-callbacks", daemon=True)
            thread.start()
    finally:
        ledger.uninstall("shop")
    assert book.counts().get("clicks[3]") is None
    assert book.leaked("clicks[3]", 7, grace_s=0.01) == []
    release.set()
    thread.join()


async def test_a_thread_of_an_event_loops_executor_is_not_the_consumers() -> None:
    book = Ledger()
    ledger.install("shop")
    try:
        with book.acting_for("clicks[3]", 7):
            name = await asyncio.to_thread(lambda: threading.current_thread().name)
    finally:
        ledger.uninstall("shop")
    assert name.startswith(ledger.OF_EVENT_LOOPS)
    assert book.leaked("clicks[3]", 7, grace_s=0.01) == []


def test_the_start_of_threads_is_as_it_was_when_none_watches() -> None:
    plain = threading.Thread.start
    ledger.install("shop")
    ledger.install("shop")
    assert threading.Thread.start is not plain
    ledger.uninstall("shop")
    assert threading.Thread.start is not plain
    ledger.uninstall("shop")
    assert threading.Thread.start is plain


@pytest.mark.parametrize("is_first", [True, False])
def test_another_tools_wrapper_stays_and_is_called(is_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry and Sentry wrap the start of threads that they find, before awoke does or after it."""
    book, seen = Ledger(), list[str]()

    def wrap() -> None:
        found = threading.Thread.start

        def start(self: threading.Thread) -> None:
            seen.append(self.name)
            found(self)

        monkeypatch.setattr(threading.Thread, "start", start)

    def owned(name: str) -> set[str]:
        """Starts a thread, and returns its owner as the book has it."""
        release = threading.Event()
        with book.acting_for("clicks[3]", 7):
            thread = threading.Thread(target=release.wait, name=name)
            thread.start()
        owners = {entry.owner for entry in book.entries() if entry.name == name}
        release.set()
        thread.join()
        return owners

    if is_first:
        wrap()
    ledger.install("shop")
    if not is_first:
        wrap()
    assert owned("while an app runs") == {"clicks[3]"}
    ledger.uninstall("shop")
    assert owned("afterwards") == {""}
    ledger.install("shop")
    assert owned("again") == {"clicks[3]"}
    ledger.uninstall("shop")
    assert seen == ["while an app runs", "afterwards", "again"]


def test_a_job_is_the_work_of_its_block_only() -> None:
    book = Ledger()
    assert current_work() is None
    with book.acting_for("clicks[3]", 7, "outer"):
        with book.acting_for("clicks[4]", 1, "inner"):
            assert current_work() == "inner"
        assert current_work() == "outer"
    assert current_work() is None


def test_a_task_that_outlives_its_job_keeps_nothing_of_it() -> None:
    async def run() -> object:
        ended = asyncio.Event()

        async def outlive() -> object:
            await ended.wait()
            return current_work()

        with Ledger().acting_for("clicks[3]", 7, "job"):
            task = asyncio.create_task(outlive())
            await asyncio.sleep(0)
        ended.set()
        return await task

    assert asyncio.run(run()) is None


def test_threads_of_awoke_and_of_others_have_an_owner_or_none() -> None:
    book, release = Ledger(), threading.Event()
    names = ("awoke-poller", "flush", "theirs")
    threads = [threading.Thread(target=release.wait, name=name, daemon=True) for name in names]
    book.write_down(threads[1], "clicks[3]", 7, "shop.py:3 in assigned")
    for thread in threads:
        thread.start()
    found = book.entries()
    assert ThreadEntry(APP, "awoke-poller", "") in found
    assert ThreadEntry("clicks[3]", "flush", "shop.py:3 in assigned") in found
    assert ThreadEntry("", "theirs", "") in found
    assert ThreadEntry("", "MainThread", "") in found
    release.set()
    for thread in threads:
        thread.join()
    assert "clicks[3]" not in book.counts()


def test_a_thread_that_is_about_to_start_is_not_forgotten() -> None:
    book, release = Ledger(), threading.Event()
    first, second = (threading.Thread(target=release.wait, daemon=True) for _ in range(2))
    book.write_down(first, "clicks[3]", 7, "here")
    book.write_down(second, "clicks[4]", 7, "there")
    first.start()
    assert book.counts()["clicks[3]"] == 1
    release.set()
    first.join()


def test_an_owner_does_not_wait_for_its_own_thread() -> None:
    book, leaked = Ledger(), list[list[ThreadEntry]]()
    thread = threading.Thread(target=lambda: leaked.append(book.leaked("clicks[3]", 7, grace_s=30.0)))
    book.write_down(thread, "clicks[3]", 7, "here")
    thread.start()
    thread.join(10)
    assert leaked == [[]]


def test_a_thread_that_ends_within_the_grace_has_not_leaked() -> None:
    book, release = Ledger(), threading.Event()
    thread = threading.Thread(target=release.wait, daemon=True)
    book.write_down(thread, "clicks[3]", 7, "here")
    thread.start()
    (leaked,) = book.leaked("clicks[3]", 7, grace_s=0.0)
    assert leaked == ThreadEntry("clicks[3]", thread.name, "here")
    release.set()
    assert book.leaked("clicks[3]", 7, grace_s=30.0) == []
    thread.join()


def test_the_app_of_running_code_is_its_ledgers_or_the_only_one_that_runs() -> None:
    assert ledger.current_app() is None
    ledger.install("shop")
    assert ledger.current_app() == "shop"
    ledger.install("bank")
    assert ledger.current_app() is None
    with Ledger("bank").acting_for("pay", 0):
        assert ledger.current_app() == "bank"
    ledger.uninstall("shop")
    ledger.uninstall("bank")
