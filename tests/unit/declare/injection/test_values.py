"""The values of a long scope: made once and in order, closed in reverse, with those of longer scopes in reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

import awoke
from awoke.declare.injection import Assignment, Depends
from awoke.declare.injection.parameters import Dependency, Parameter, dependency_of, in_order
from awoke.declare.injection.sources import OfApp, PerAssignment
from awoke.declare.injection.values import Scoped
from awoke.settings import Settings
from awoke.waiting.drive import run_now
from tests.unit.declare.injection.fakes import app, process

said: list[Any] = []


@pytest.fixture(autouse=True)
def quiet() -> None:
    said.clear()


def servers(settings: Settings) -> str:
    said.append("servers")
    return settings.bootstrap_servers


def pool(of: Annotated[str, Depends(servers)]) -> Iterator[str]:
    try:
        yield f"pool of {of}"
    finally:
        said.append("pool closed")


async def session(of: Annotated[str, Depends(pool)]) -> AsyncIterator[str]:
    await asyncio.sleep(0)
    try:
        yield f"session of {of}"
    finally:
        said.append("session closed")


async def client() -> str:
    await asyncio.sleep(0)
    return "client"


def at(assignment: Assignment) -> str:
    return f"{assignment.topic}[{assignment.partition}]"


def of(function: Any) -> Dependency:
    return dependency_of(Depends(function), "test")


async def make(scoped: Scoped, *functions: Any) -> None:
    for function in functions:
        for each in in_order([Parameter("it", of(function))]):
            await scoped.make(each)


def values(scoped: Scoped) -> list[Any]:
    return [value for key, value in scoped.made.items() if key is not Assignment]


def test_functions_are_called_with_the_values_of_those_that_they_need_and_once() -> None:
    async def run() -> Any:
        shop = app()
        scoped = process(shop)
        await make(scoped, session, client, session)
        (found, made) = values(scoped), said.copy()
        assert await scoped.close() == []
        return shop.settings.bootstrap_servers, found, made

    address, found, made = asyncio.run(run())
    assert found == [address, f"pool of {address}", f"session of pool of {address}", "client"]
    assert made == ["servers"]
    assert said == ["servers", "session closed", "pool closed"]


def test_a_shorter_scope_has_the_values_of_a_longer_one_and_closes_its_own_only() -> None:
    long = process()
    run_now(make(long, pool), "test")
    short = long.within(Assignment("orders", 3))
    run_now(make(short, pool, at), "test")
    assert said == ["servers"], "the pool was there"
    assert short.argument(of(at)) == "orders[3]"
    assert run_now(short.close(), "test") == []
    assert said == ["servers"]
    assert of(at).key not in long.made
    run_now(long.close(), "test")
    assert said == ["servers", "pool closed"]


def test_arguments_come_from_the_app_from_functions_and_from_the_assignment() -> None:
    shop = app()
    scoped = process(shop).within(Assignment("orders", 0))
    run_now(make(scoped, servers), "test")
    assert scoped.argument(OfApp(lambda app: app.producer)) is shop.producer
    assert scoped.argument(of(servers)) == shop.settings.bootstrap_servers
    assert scoped.argument(PerAssignment()) == Assignment("orders", 0)


def test_a_function_that_fails_leaves_what_was_made_before_it_to_be_closed() -> None:
    def refuse(of: Annotated[str, Depends(pool)]) -> str:
        raise OSError("no database")

    refuse.__annotations__["of"] = Annotated[str, Depends(pool)]
    scoped = process()
    with pytest.raises(OSError, match="no database") as refused:
        run_now(make(scoped, refuse), "test")
    assert said == ["servers"]
    assert run_now(scoped.close(refused.value), "test") == []
    assert said == ["servers", "pool closed"]


def test_a_generator_that_fails_before_its_yield_is_not_closed_again() -> None:
    def half() -> Iterator[str]:
        said.append("opened")
        if said:
            raise OSError("no database")
        yield "never"

    scoped = process()
    with pytest.raises(OSError, match="no database"):
        run_now(make(scoped, half), "test")
    assert run_now(scoped.close(), "test") == []
    assert said == ["opened"]


def test_what_fails_while_it_is_closed_is_returned_with_its_name() -> None:
    error = OSError("no connection")

    def broken() -> Iterator[str]:
        yield "broken"
        raise error

    scoped = process()
    run_now(make(scoped, pool, broken), "test")
    assert [(name.rpartition(".")[2], raised) for name, raised in run_now(scoped.close(), "test")] == [
        ("broken", error)
    ]
    assert said[-1] == "pool closed"


def test_a_function_that_returns_a_coroutine_has_not_run() -> None:
    with pytest.raises(awoke.HandlerDidNotRun, match="that nothing has awaited"):
        run_now(make(process(), lambda: client()), "test")
