"""The small interfaces to the runner: the runner has every part of them, and so has the app."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import awoke
from awoke.runtime import context
from awoke.runtime.context import (
    CommitContext,
    InstanceContext,
    OutputContext,
    Producing,
    RecoveryContext,
    RouteContext,
    RunnableApp,
)
from awoke.runtime.health import Watched
from awoke.runtime.job_watch import WatchContext
from awoke.runtime.runner import AppRunner
from tests.support.protocols import missing_parts, parts_of

OF_THE_RUNNER = [CommitContext, InstanceContext, OutputContext, RecoveryContext, RouteContext, Watched, WatchContext]


@pytest.mark.parametrize("protocol", OF_THE_RUNNER, ids=lambda each: str(each.__name__))
def test_the_runner_has_what_each_part_of_the_runtime_needs(protocol: type[Any]) -> None:
    runner: RouteContext = AppRunner(awoke.App("context"))  # mypy compares the types of its parts.
    assert parts_of(protocol)
    assert missing_parts(protocol, runner) == set()


def test_the_app_has_what_the_runtime_needs() -> None:
    app: RunnableApp = awoke.App("context")
    assert missing_parts(RunnableApp, app) == set()


def test_every_context_of_the_file_is_compared() -> None:
    declared = {each for _, each in inspect.getmembers(context, inspect.isclass) if each.__module__ == context.__name__}
    assert declared - {RunnableApp, Producing} <= set(OF_THE_RUNNER)
