"""The small interfaces to the runner and its groups: each has every part of them, and so has the app."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import awoke
from awoke.observe.metrics.recorder import GroupSource, Sources
from awoke.runtime.process import context
from awoke.runtime.process.context import (
    CommitContext,
    InstanceContext,
    OutputContext,
    Producing,
    RecoveryContext,
    RouteContext,
    RunnableApp,
)
from awoke.runtime.process.group_run import Process
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.watch.health import Watched, WatchedGroup
from tests.support.protocols import missing_parts, parts_of

OF_A_GROUP = [
    CommitContext,
    InstanceContext,
    OutputContext,
    RecoveryContext,
    RouteContext,
    WatchedGroup,
    GroupSource,
]


@pytest.mark.parametrize("protocol", OF_A_GROUP, ids=lambda each: str(each.__name__))
def test_a_group_has_what_each_part_of_the_runtime_needs(protocol: type[Any]) -> None:
    group: RouteContext = AppRunner(awoke.App("context")).own  # mypy compares the types of its parts.
    assert parts_of(protocol)
    assert missing_parts(protocol, group) == set()


@pytest.mark.parametrize("protocol", [Process, Sources, Watched], ids=lambda each: str(each.__name__))
def test_the_runner_has_what_its_groups_and_its_observers_need(protocol: type[Any]) -> None:
    runner = AppRunner(awoke.App("context"))
    assert parts_of(protocol)
    assert missing_parts(protocol, runner) == set()


def test_the_app_has_what_the_runtime_needs() -> None:
    app: RunnableApp = awoke.App("context")
    assert missing_parts(RunnableApp, app) == set()


def test_every_context_of_the_file_is_compared() -> None:
    declared = {each for _, each in inspect.getmembers(context, inspect.isclass) if each.__module__ == context.__name__}
    assert declared - {RunnableApp, Producing} <= set(OF_A_GROUP)
