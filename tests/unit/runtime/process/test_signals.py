"""A process from its start to its exit code: a signal stops it, a second ends the wait for jobs, a third ends it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke.errors import ProducerFenced
from awoke.runtime.process import signals as module
from awoke.runtime.process.inbox import Inbox
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.process.signals import run, wait_and_stop
from awoke.runtime.watch.stacks import Unfinished
from awoke.text.exit_codes import EXIT_AT_ONCE, EXIT_CLEAN, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_LATE
from tests.support.waiting import Collected

WITHIN_S = 30.0


class Exited(Exception):
    """Stands for the end of the process."""


class FakeServer:
    """A runner whose stop lasts until it may end, or waits no longer."""

    def __init__(self, *, is_clean: bool = True, needs_signal: bool = False) -> None:
        self._is_clean, self._needs_signal, self.may_end = is_clean, needs_signal, threading.Event()
        self.did = Collected[str]()
        self.fatal_error: BaseException | None = None

    def quiet(self) -> None:
        self.did.add("quiet")

    def stop_waiting(self) -> bool:
        is_first = "stop waiting" not in self.did.items
        self.did.add("stop waiting")
        if self._needs_signal:
            self.may_end.set()
        return is_first

    def unfinished(self) -> list[Unfinished]:
        return [Unfinished("handle, at orders[0] offset 3", "  in the bank\n")]

    def stop(self) -> bool:
        self.did.add("stop")
        assert self.may_end.wait(WITHIN_S)
        return self._is_clean


@pytest.fixture
def heard() -> Iterator[Inbox]:
    with contextlib.closing(Inbox()) as heard:
        yield heard


def stopped(server: FakeServer, heard: Inbox, *words: str) -> int:
    """Returns the exit code after these words."""
    for word in words:
        heard.put(word)
    return wait_and_stop(cast(AppRunner, server), heard)


@pytest.mark.parametrize("reason", ["signal", "fatal error", "asked to stop"])
def test_an_app_stops_for_each_reason(heard: Inbox, reason: str) -> None:
    server = FakeServer()
    server.may_end.set()
    assert stopped(server, heard, reason) == EXIT_CLEAN
    assert server.did.items == ["stop"]


def test_an_app_that_is_quiet_runs_on(heard: Inbox) -> None:
    server = FakeServer()
    server.may_end.set()
    stopped(server, heard, "quiet", "ignored", "quiet", "signal")
    assert server.did.items == ["quiet", "quiet", "stop"]


def test_a_stop_that_left_work_undone_has_its_exit_code(heard: Inbox) -> None:
    server = FakeServer(is_clean=False)
    server.may_end.set()
    assert stopped(server, heard, "signal") == EXIT_LATE


def test_an_app_with_a_fatal_error_has_its_exit_code(heard: Inbox, caplog: pytest.LogCaptureFixture) -> None:
    server = FakeServer()
    server.may_end.set()
    server.fatal_error = ValueError("no good")
    assert stopped(server, heard, "fatal error") == EXIT_FAILED
    assert "the app stopped after a fatal error: no good" in caplog.text


def test_a_second_signal_ends_the_wait_for_jobs(heard: Inbox, caplog: pytest.LogCaptureFixture) -> None:
    server = FakeServer(needs_signal=True)
    assert stopped(server, heard, "signal", "signal") == EXIT_CLEAN
    assert sorted(server.did.items) == ["stop", "stop waiting"]
    assert caplog.text.count("stopping at once") == 1


def test_a_quick_stop_waits_for_no_job(heard: Inbox) -> None:
    server = FakeServer()
    server.may_end.set()
    assert stopped(server, heard, "quick") == EXIT_CLEAN
    assert sorted(server.did.items) == ["stop", "stop waiting"]


def test_a_third_signal_ends_the_process_and_names_what_runs(
    heard: Inbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        raise Exited

    monkeypatch.setattr(module, "os", SimpleNamespace(_exit=end))
    server = FakeServer()
    with pytest.raises(Exited):
        stopped(server, heard, "signal", "signal", "quiet", "signal")
    assert codes == [EXIT_AT_ONCE]
    assert "handle, at orders[0] offset 3 has not ended, it is at:\n  in the bank" in caplog.text
    server.may_end.set()
    for thread in threading.enumerate():
        if thread.name == "awoke-stopping":
            thread.join(WITHIN_S)


def test_an_app_runs_on_embedded_brokers_until_it_is_stopped() -> None:
    app, found = awoke.App("embedded"), list[Any]()
    app.on("orders", output="out")(lambda message: message.value)

    def look_and_stop() -> None:
        with awoke.Admin(app.settings.bootstrap_servers) as admin:
            found.extend((each.name, len(each.partitions)) for each in admin.topics())
        app.stop()

    app.on_startup(look_and_stop)
    code = run(app, bootstrap_servers=None, workers=1, embedded=True, kafka={"linger.ms": 0})
    assert code == EXIT_CLEAN
    assert sorted(found) == [("orders", 4), ("out", 4)]


def test_an_app_that_was_stopped_before_its_start_ends_cleanly() -> None:
    app = awoke.App("stopped")
    app.on("orders")(lambda message: None)
    app.stop()
    assert run(app, bootstrap_servers="127.0.0.1:1", workers=None, embedded=False, kafka=None) == EXIT_CLEAN


def test_an_app_whose_transactional_id_another_one_has_is_not_to_be_started_again(heard: Inbox) -> None:
    server = FakeServer()
    server.may_end.set()
    server.fatal_error = ProducerFenced("another producer has it", 90, "PRODUCER_FENCED", False)
    assert stopped(server, heard, "fatal error") == EXIT_CONFIGURATION
