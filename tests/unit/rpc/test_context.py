"""The call that is executed on a thread or in a task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from awoke import rpc
from awoke.errors import ClosedError
from awoke.rpc.context import call_all, current


class FakeCall:
    """A call; knows whether its method has asked for it."""

    is_seen = False

    def mark_seen(self) -> None:
        self.is_seen = True


@pytest.fixture
def call() -> Iterator[FakeCall]:
    call = FakeCall()
    token = current.set(cast(Any, call))
    yield call
    current.reset(token)


def test_a_method_finds_its_call_and_may_then_be_told_of_its_end(call: FakeCall) -> None:
    assert not call.is_seen
    assert cast(Any, rpc.current_call()) is call
    assert call.is_seen


def test_a_task_and_a_thread_of_a_method_find_its_call(call: FakeCall) -> None:
    async def run() -> None:
        assert cast(Any, rpc.current_call()) is call
        assert cast(Any, await asyncio.to_thread(rpc.current_call)) is call

    asyncio.run(run())


def test_outside_of_a_method_there_is_no_call() -> None:
    with pytest.raises(ClosedError, match="no remote call is being executed here"):
        rpc.current_call()


def test_every_callback_of_a_cancelled_call_is_called(caplog: pytest.LogCaptureFixture) -> None:
    called: list[str] = []

    def fail() -> None:
        raise ValueError("no good")

    call_all([lambda: called.append("first"), fail, lambda: called.append("last")])
    assert called == ["first", "last"]
    assert "when a call is cancelled failed" in caplog.text
    assert "no good" in caplog.text
