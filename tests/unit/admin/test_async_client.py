"""The client that is awaited, and the one that blocks and has its methods."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import awoke

METHODS = [name for name in vars(awoke.Admin) if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_each_method_has_the_parameters_of_the_blocking_one(name: str) -> None:
    blocking, awaited = getattr(awoke.Admin, name), getattr(awoke.AsyncAdmin, name)
    assert inspect.iscoroutinefunction(awaited)
    assert not inspect.iscoroutinefunction(blocking)
    assert inspect.signature(blocking) == inspect.signature(awaited)
    if name != "close":
        assert blocking.__doc__ == awaited.__doc__


async def test_an_unreachable_broker_does_not_block_the_loop() -> None:
    async with awoke.AsyncAdmin("127.0.0.1:1") as admin:
        asked = [admin.brokers(0.3), admin.list_groups(0.3), admin.describe_configs("orders", 0.3)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in answers] == [awoke.BrokerUnreachable] * 3


async def test_leaving_its_context_closes_it() -> None:
    async with awoke.AsyncAdmin("127.0.0.1:1") as admin:
        pass
    with pytest.raises(awoke.ClosedError):
        await admin.list_groups()
