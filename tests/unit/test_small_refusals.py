"""Code that would never run, or a setting that is never read, is refused where it is written."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

import pytest

import awoke
from awoke._native import Job
from awoke.declare.consumer import Hold, give
from awoke.declare.routing import Route
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc.call_options import OutgoingCall
from awoke.rpc.caller.client import shape_of
from awoke.rpc.caller.exchange import CallerForms, Planner
from awoke.runtime.jobs.instances import Instances

REPOSITORY = Path(__file__).resolve().parents[2]


class Ticking(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None: ...

    def tick(self) -> None: ...


def test_a_tick_without_an_interval_is_refused() -> None:
    app = awoke.App("shop")
    with pytest.raises(awoke.ConfigError, match=r"Ticking\.tick is never called .*: say tick_every_s"):
        app.consumer("orders")(Ticking)
    app.consumer("orders", tick_every_s=1.0)(Ticking)


class Unusable:
    """JSON can't be read as this."""

    def __init__(self, number: threading.Thread) -> None: ...


def test_a_result_that_could_not_be_read_is_refused_before_the_call() -> None:
    plan = Planner(1.0, frozenset(), False, None, CallerForms("shop", Schemas.none())).plan
    with pytest.raises(awoke.ConfigError, match=r"returns=.*Thread"):
        plan(OutgoingCall(method="quote", returns=threading.Thread), (), {})
    assert plan(OutgoingCall(method="quote", returns=int), (), {}).method == "quote"


class Shop(Protocol):
    def quote(self, sku: str) -> threading.Thread: ...


def test_a_client_whose_result_could_not_be_read_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match=r"Shop\.quote: returns=.*Thread"):
        shape_of("Shop.quote", "quote", Shop.quote)


class Losing(awoke.Consumer):
    heard: bool = False

    async def consume(self, batch: awoke.Batch[bytes]) -> None: ...

    async def lost(self) -> None:
        self.heard = True


def test_an_async_lost_is_awaited_after_a_job_that_outlived_its_assignment() -> None:
    leaks: list[str] = []

    def leaked(owner: str, generation: int) -> list[str]:
        leaks.append(owner)
        return []

    server: Any = SimpleNamespace(ledger=SimpleNamespace(leaked=leaked))
    instances = Instances(Route("orders", Losing, {}), server)
    consumer = Losing()
    give(consumer, Hold(assignment=cast("Any", SimpleNamespace(is_current=False))))
    instances._instances[("orders", 0, 1)] = consumer
    job = cast("Job", SimpleNamespace(topic="orders", partition=0, generation=1))

    asyncio.run(instances.let_go_of_fenced(job))
    assert consumer.heard
    assert leaks == ["orders[0]"], "after the hook, which may end its threads"
