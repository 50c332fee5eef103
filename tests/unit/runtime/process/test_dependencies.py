"""Functions of Depends that live as long as the process: their order, their errors, and what processes share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextvars import Context
from typing import Annotated, Any, cast

import pytest

import awoke
from awoke.declare.injection import Depends
from awoke.declare.injection.overrides import AppDependencies
from awoke.declare.lifecycle import Lifecycle
from awoke.declare.routing import Route
from awoke.observe.events import ShutdownFailed
from awoke.runtime.process.dependencies import ProcessDependencies, parameters_of_routes
from awoke.runtime.process.lifecycle import LifecycleRun
from awoke.settings import Settings
from tests.unit.runtime.fakes import FakeApp

said: list[Any] = []
loops: list[asyncio.Runner] = []


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Runs each test with an event loop, which lives until its end."""
    said.clear()
    with asyncio.Runner() as loop:
        loops[:] = [loop]
        yield


def on_the_loop(function: Callable[[], Any]) -> Future[Any]:
    """Stands for the runtime's event loop."""
    done: Future[Any] = Future()
    try:
        done.set_result(loops[0].run(function()))
    except Exception as error:
        done.set_exception(error)
    return done


def configuration(settings: Settings) -> str:
    said.append("configuration")
    return "configuration"


def pool(of: Annotated[str, Depends(configuration, scope="app")]) -> Iterator[str]:
    said.append("pool")
    yield f"pool of {of}"
    said.append("pool closed")


async def client(of: Annotated[str, Depends(pool, scope="process")]) -> AsyncIterator[str]:
    await asyncio.sleep(0)
    said.append("client")
    yield f"client of {of}"
    await asyncio.sleep(0)
    said.append("client closed")


def session() -> str:
    said.append("session")
    return "session"


def handle(
    message: Any, it: Annotated[str, Depends(pool, scope="process")], short: Annotated[str, Depends(session)]
) -> None: ...


async def handle_later(message: Any, it: Annotated[str, Depends(client, scope="process")]) -> None: ...


def of_assignment(message: Any, it: Annotated[str, Depends(session, scope="assignment")]) -> None: ...


class Case:
    """An app with handlers, and what lives as long as one process of it."""

    def __init__(self, *functions: Any, known: AppDependencies | None = None) -> None:
        self.events, self.failed = awoke.Events(), list[ShutdownFailed]()
        self.events.subscribe(ShutdownFailed, self.failed.append)
        self.known = known or AppDependencies(cast("Any", FakeApp(self.events)))
        routes = [Route(f"topic-{number}", each, {}) for number, each in enumerate(functions)]
        self.process = ProcessDependencies(self.known, routes, self.events, on_the_loop)

    @property
    def values(self) -> list[Any]:
        return list(self.process.values.made.values())


def test_what_lives_long_is_made_at_the_start_and_closed_at_the_stop() -> None:
    case = Case(handle, of_assignment)
    case.process.open()
    assert said == ["configuration", "pool"], "a session belongs to a job or to an assignment"
    assert case.values == ["configuration", "pool of configuration"]
    case.process.close()
    assert said[2:] == ["pool closed"]
    assert case.failed == []


def test_a_function_of_several_routes_is_called_once_and_async_ones_on_the_event_loop() -> None:
    case = Case(handle, handle, handle_later)
    case.process.open()
    assert said == ["configuration", "pool", "client"]
    assert case.values[-1] == "client of pool of configuration"
    case.process.close()
    assert said[3:] == ["client closed", "pool closed"]


def test_each_process_has_its_own_values_beside_those_of_the_app() -> None:
    case = Case(handle)
    other = Case(handle, known=case.known)
    case.known.share(parameters_of_routes([Route("orders", handle, {})]))
    assert said == ["configuration"], "as in the process that the others are forked from"
    case.process.open()
    other.process.open()
    assert said == ["configuration", "pool", "pool"]
    assert case.values[0] is other.values[0]
    case.process.close()
    other.process.close()


def test_an_app_without_functions_opens_and_closes_nothing() -> None:
    case = Case(lambda message: None)
    case.process.open()
    case.process.close()
    assert (said, case.values) == ([], [])


def refuses(of: Annotated[str, Depends(pool, scope="process")]) -> str:
    raise OSError("no database")


def handle_refused(message: Any, it: Annotated[str, Depends(refuses, scope="process")]) -> None: ...


async def refuses_later(of: Annotated[str, Depends(client, scope="process")]) -> str:
    raise OSError("no database")


async def handle_refused_later(message: Any, it: Annotated[str, Depends(refuses_later, scope="process")]) -> None: ...


@pytest.mark.parametrize(
    ("function", "closed"),
    [(handle_refused, ["pool closed"]), (handle_refused_later, ["client closed", "pool closed"])],
)
def test_a_start_that_fails_closes_what_it_has_opened(function: Any, closed: list[str]) -> None:
    case = Case(function)
    run = LifecycleRun(Lifecycle(), case.events, on_the_loop, Context())
    run.start_up()
    with pytest.raises(OSError, match="no database"):
        run.also(case.process.open, case.process.close, "dependencies")
    assert run.shut_down(threading.TIMEOUT_MAX) == []
    assert said[-len(closed) :] == closed


def broken() -> Iterator[str]:
    yield "broken"
    raise OSError("no connection")


def handle_broken(
    message: Any,
    it: Annotated[str, Depends(pool, scope="process")],
    other: Annotated[str, Depends(broken, scope="process")],
) -> None: ...


def test_a_function_that_fails_while_it_is_closed_is_an_event_and_the_others_are_closed() -> None:
    case = Case(handle_broken)
    case.process.open()
    case.process.close()
    assert said[-1] == "pool closed"
    assert [(each.function, str(each.error)) for each in case.failed] == [("broken", "no connection")]


async def other_later() -> str:
    return "other"


def other_of_message(message: awoke.Message[bytes]) -> str:
    return "other"


@pytest.mark.parametrize(
    ("function", "other", "words"),
    [
        (pool, other_later, "route 'topic-0': handle: depends on other_later, which is async def"),
        (session, other_later, "route 'topic-0': handle: depends on other_later, which is async def"),
        (pool, other_of_message, "override: other_of_message: has scope 'process', and its parameter 'message' lives"),
        (configuration, pool, "override: pool: scope 'app' takes a plain def"),
    ],
)
def test_another_function_that_does_not_suit_is_refused_before_any_is_called(
    function: Any, other: Any, words: str
) -> None:
    case = Case(handle)
    with case.known.override(function, other), pytest.raises(awoke.ConfigError, match=words):
        case.process.open()
    assert said == []
    case.process.close()


def test_another_function_has_its_place_in_a_run_within_the_block() -> None:
    case = Case(handle_later)
    with case.known.override(pool, session):
        case.process.open()
    assert case.values == ["session", "client of session"]
    case.process.close()
    assert said == ["session", "client", "client closed"]
