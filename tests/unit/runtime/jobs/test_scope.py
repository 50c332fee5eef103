"""Background threads belong to an owner, end with it, and are seen when they fail or stay."""

from __future__ import annotations

import threading

import pytest

import awoke
from awoke.observe.ledger import Ledger
from awoke.runtime.jobs.scope import Scope, StopToken
from awoke.waiting.drive import drive
from tests.support.waiting import Collected, ahang


def scope(events: awoke.Events | None = None) -> Scope:
    return Scope("clicks[3]", 1, events or awoke.Events(), Ledger())


def test_a_background_thread_gets_a_token_and_is_named_after_its_owner() -> None:
    mine, started = scope(), Collected[str]()

    def flush_forever(buffer: str, stop: StopToken) -> None:
        started.add(f"{buffer} on {threading.current_thread().name}")
        stop.wait()

    mine.background(flush_forever, ("buffer",), "log", None)
    assert started.wait_for(1) == ["buffer on clicks[3]-flush_forever"]
    assert mine._ledger.counts()["clicks[3]"] == 1
    assert drive(mine.close(10)) == []
    assert "clicks[3]" not in mine._ledger.counts()


def test_a_coroutine_function_of_an_app_runs_on_a_loop_of_its_own_until_the_end() -> None:
    mine, told = scope(), Collected[str]()

    async def follow(topic: str) -> None:
        told.add(topic)
        try:
            await ahang()
        finally:
            told.add("cancelled")

    mine.background(follow, ("orders",), "log", None)
    assert told.wait_for(1) == ["orders"]
    assert drive(mine.close(10)) == []
    assert told.items == ["orders", "cancelled"]


def test_a_failure_of_a_coroutine_function_is_one_of_the_function() -> None:
    events, seen = awoke.Events(), Collected[awoke.Event]()
    events.subscribe("background.failed", seen.add)
    mine = scope(events)

    async def fail() -> None:
        raise ValueError("no topic")

    mine.background(fail, (), "log", None)
    (event,) = seen.wait_for(1)
    assert str(event.fields["error"]) == "no topic"
    assert drive(mine.close(10)) == []


def test_nothing_starts_in_a_scope_that_is_closed() -> None:
    mine = scope()
    drive(mine.close(1))
    with pytest.raises(awoke.ClosedError, match=r"clicks\[3\] has gone"):
        mine.background(lambda: None, (), "log", None)


def test_a_thread_that_does_not_end_in_time_is_named() -> None:
    mine, release = scope(), threading.Event()
    mine.background(release.wait, (), "log", "deaf")
    assert drive(mine.close(0.01)) == ["clicks[3]-deaf"]
    release.set()
    assert drive(mine.close(10)) == []


def test_a_failure_is_seen_and_ends_only_the_function() -> None:
    events, seen = awoke.Events(), Collected[awoke.Event]()
    events.subscribe("background.failed", seen.add)
    mine = scope(events)
    mine.background(lambda: 1 / 0, (), "log", "divide")
    (event,) = seen.wait_for(1)
    assert event.fields["owner"] == "clicks[3]"
    assert event.fields["restart_in_s"] is None
    assert isinstance(event.fields["error"], ZeroDivisionError)
    assert mine.failure is None
    drive(mine.close(10))


def test_a_failure_may_fail_the_owner() -> None:
    mine, failures = scope(), Collected[BaseException]()
    mine.on_failure(failures.add)
    mine.background(lambda: 1 / 0, (), "fail", "divide")
    failures.wait_for(1)
    assert isinstance(mine.failure, ZeroDivisionError)
    drive(mine.close(10))


def test_a_function_that_failed_runs_again_after_a_back_off() -> None:
    mine, tries = scope(), Collected[int]()

    def flaky(stop: StopToken) -> None:
        tries.add(len(tries.items))
        if len(tries.items) < 3:
            raise OSError("not yet")
        stop.wait()

    mine.background(flaky, (), "restart", None)
    tries.wait_for(3)
    assert drive(mine.close(10)) == []
    assert mine.failure is None


def test_a_back_off_ends_with_the_owner() -> None:
    events, seen = awoke.Events(), Collected[awoke.Event]()
    events.subscribe("background.failed", seen.add)
    mine = scope(events)
    mine.background(lambda: 1 / 0, (), "restart", None)
    seen.wait_until(lambda items: any((item.fields["restart_in_s"] or 0) > 1 for item in items))
    assert drive(mine.close(10)) == []
