"""The readable state of a running app: health, readiness and status, with or without a group."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke.metrics.recorder import EndedJob, PartitionState, Recorder
from awoke.runtime.failures import Failures
from awoke.runtime.ledger import Ledger
from awoke.runtime.observed import Observed
from awoke.runtime.overdue import OverdueWatch
from awoke.runtime.refusals import GROUP, Refusals
from awoke.settings import Settings

STATES = [("orders", 1, 7, 5, 7, 10, None), ("orders", 0, None, 5, 5, None, (4, 2, 5, 2.5))]


class FakeMember:
    """A group member that has two partitions."""

    def partitions(self) -> list[Any]:
        return STATES

    def stuck(self) -> list[Any]:
        return [("orders", 3, "no offset", True)]

    def fetch_queue_bytes(self) -> int:
        return 4_096

    def fatal_error(self) -> None:
        return None


def observed(**parts: Any) -> Observed:
    """Returns the state of an app that has joined, with these parts instead of its own."""
    found: Any = Observed()
    found.app, found.settings, found.member = awoke.App("shop"), Settings(), FakeMember()
    found.responder = found.metrics = found.fatal_error = None
    found.ledger, found.overdue, found.paused = Ledger(), OverdueWatch(awoke.Events()), {}
    found.failures, found.is_quiet, found.began_s = Failures(), False, 0.0
    found.refusals = Refusals("shop", "shop.", lambda error: None)
    found.refusals.allow(GROUP)
    found.connections = SimpleNamespace(why_not_ready=lambda: None)
    found._pool = SimpleNamespace(counters=lambda: {"threads": {"jobs": 3}})
    vars(found).update(parts)
    result: Observed = found
    return result


def test_the_group_is_that_of_the_settings_or_else_named_after_the_app() -> None:
    assert observed().group == "shop"
    assert observed(settings=Settings(group="others")).group == "others"


def test_partitions_are_those_of_the_group_member() -> None:
    app = observed()
    assert app.partitions()[0] == PartitionState("orders", 1, 7, 5, 7, 10, None)
    assert (app.is_assigned("orders", 0), app.is_assigned("orders", 2), app.is_assigned("other", 0)) == (
        True,
        False,
        False,
    )
    assert app.fetch_queue_bytes() == 4_096
    assert app.stuck() == [("orders", 3, "no offset", True)]


def test_before_the_group_is_joined_there_is_nothing_to_tell() -> None:
    app = observed(member=None)
    assert (app.partitions(), app.stuck(), app.fetch_queue_bytes()) == ([], [], None)
    assert not app.is_assigned("orders", 0)
    assert (app.calls(), app.callers(), app.failing(), app.metrics_text()) == ({}, {}, [], b"")


def test_counters_of_remote_calls_are_there_where_the_app_has_methods() -> None:
    assert observed().counters() == {"threads": {"jobs": 3}}
    scheduler = SimpleNamespace(counters=lambda: {"jobs": 2})
    app = observed(responder=SimpleNamespace(scheduler=scheduler, counts=lambda: {"running": 1}))
    assert app.counters() == {"threads": {"jobs": 3}, "rpc": {"jobs": 2}}
    assert app.calls() == {"running": 1}


def test_callers_are_counted_by_service_with_their_open_calls() -> None:
    caller = SimpleNamespace(counters=lambda: {"begun": 5}, open_calls=lambda: 2)
    app = observed(app=SimpleNamespace(callers=lambda: {"stock": caller}))
    assert app.callers() == {"stock": {"begun": 5, "open": 2}}


def test_metrics_are_text_where_they_are_kept() -> None:
    recorder = Recorder()
    recorder.job_ended("orders", "handle", EndedJob(10, 1_000, 0.002, 0.02, "done"))
    assert b"awoke_messages_total" in observed(metrics=recorder).metrics_text()


DENIED = Refusals("shop", "shop.", lambda error: None)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({}, None),
        ({"fatal_error": ValueError("no good"), "is_quiet": True}, "it has a fatal error: no good"),
        ({"is_quiet": True, "member": None}, "quiet"),
        ({"member": None}, "not given it partitions"),
        ({"refusals": DENIED}, "not given it partitions"),
        ({"connections": SimpleNamespace(why_not_ready=lambda: "no broker connected")}, "no broker connected"),
    ],
    ids=["ready", "fatal error", "quiet", "not joined", "denied", "no broker"],
)
def test_an_app_that_processes_nothing_says_why(parts: dict[str, Any], why: str | None) -> None:
    found = observed(**parts).why_not_ready()
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")


def test_an_app_is_unhealthy_with_each_reason() -> None:
    assert observed(member=None).health() == (True, [])
    is_healthy, reasons = observed(fatal_error=ValueError("no good")).health()
    assert not is_healthy
    assert len(reasons) == 2, "it has a fatal error, and a partition is stuck"


def test_the_status_can_be_written_as_json_with_the_partitions_in_order() -> None:
    status = json.loads(json.dumps(observed().status()))
    assert [(each["partition"], each["lag"]) for each in status["partitions"]] == [(0, None), (1, 3)]
    assert (status["app"], status["group"], status["is_ready"], status["is_quiet"]) == ("shop", "shop", True, False)
    assert status["health"]["is_healthy"] is False
    assert status["uptime_s"] > 0
