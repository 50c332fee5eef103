"""An app beside an event loop: it starts and stops on threads, and a cancellation waits for them."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

import awoke
from awoke.runtime.process import embedding as module
from awoke.runtime.process.embedding import on_thread, serving

WITHIN_S = 30.0


async def test_a_function_runs_on_a_thread_of_its_name_and_gives_its_result() -> None:
    thread = await on_thread(threading.current_thread, "awoke-starting")
    assert thread.name == "awoke-starting"
    assert not thread.is_alive()


@pytest.mark.parametrize("error", [ValueError("no good"), SystemExit(3)])
async def test_an_error_is_raised_in_the_task(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await on_thread(fail, "awoke-starting")
    assert raised.value is error


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancellation_takes_effect_when_the_function_has_returned(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    began, release, ended = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        assert release.wait(WITHIN_S)
        ended.set()
        if fails:
            raise ValueError("which the cancellation hides")

    task = asyncio.create_task(on_thread(hold, "awoke-stopping"))
    assert await asyncio.to_thread(began.wait, WITHIN_S)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    release.set()
    await asyncio.wait([task])
    assert task.cancelled()
    assert ended.is_set()
    del task  # And with it the function's result.
    gc.collect()
    assert caplog.text == "", "asyncio logs an error that no one has retrieved"


class FakeRunner:
    """A runner that fails as the app says, and notes what is done with it."""

    def __init__(self, app: Any, on_fatal_error: Any) -> None:
        self.did: list[str] = app.did
        self._error, self._on_fatal_error = app.error, on_fatal_error
        self.fatal_error: BaseException | None = None

    def start(self) -> None:
        self.did.append("start")
        if self._error is not None:
            raise self._error

    def stop(self) -> bool:
        self.did.append("stop")
        return True

    def stop_soon(self) -> None:
        self.did.append("stop soon")

    def stop_app(self, error: BaseException) -> None:
        self.fatal_error = error
        self._on_fatal_error(error)


class FakeApp:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error, self.did = error, list[str]()
        self.used: dict[str, Any] = {}

    def use(self, **settings: Any) -> None:
        self.used = settings


@pytest.fixture(autouse=True)
def runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AppRunner", FakeRunner)


def block(app: FakeApp) -> Any:
    found: Any = app
    return serving(found, bootstrap_servers="kafka:9092", workers=3, embedded=False, kafka={"linger.ms": 0})


async def test_an_app_runs_as_long_as_the_block_with_its_arguments() -> None:
    app = FakeApp()
    async with block(app):
        assert app.did == ["start"]
    assert app.did == ["start", "stop"]
    assert app.used == {"bootstrap_servers": "kafka:9092", "workers": 3, "kafka": {"linger.ms": 0}}


async def test_a_start_that_fails_is_stopped_and_raised() -> None:
    app = FakeApp(awoke.ConfigError("no route"))
    with pytest.raises(awoke.ConfigError, match="no route"):
        async with block(app):
            pytest.fail("the block does not begin")
    assert app.did == ["start", "stop"]


async def test_a_block_that_raises_stops_the_app() -> None:
    app = FakeApp()
    with pytest.raises(ValueError, match="of the user"):
        async with block(app):
            raise ValueError("of the user")
    assert app.did == ["start", "stop"]


async def test_a_fatal_error_stops_the_app_and_ends_its_block() -> None:
    app = FakeApp()
    with pytest.raises(ValueError, match="no good"):
        async with block(app) as runner:
            runner.stop_app(ValueError("no good"))
            assert app.did == ["start", "stop soon"]
    assert app.did[-1] == "stop"
