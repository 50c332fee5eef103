"""The readable state of a running app: health, readiness and status, with or without a group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke.declare.group_routes import OWN, GroupKey
from awoke.observe.ledger import Ledger
from awoke.observe.metrics.recorder import EndedJob, Recorder
from awoke.observe.partitions import PartitionState
from awoke.runtime.process.group_run import GroupRun
from awoke.runtime.process.refusals import GROUP, Refusals
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.watch.health import BlockedOutputs
from awoke.runtime.watch.observed import Observed
from awoke.settings import Settings

STATES = [("orders", 1, 7, 5, 7, 10, None), ("orders", 0, None, 5, 5, None, (4, 2, 5, 2.5))]


class FakeMember:
    """A group member that has two partitions."""

    def partitions(self) -> list[Any]:
        return STATES

    def stuck(self) -> list[Any]:
        return [("orders", 3, "no offset", True)]

    def unowned(self) -> list[Any]:
        return [("orders", 4), ("orders", 6)]

    def strangers(self) -> tuple[list[str], list[str]]:
        return ["mailing"], []

    def fetch_queue_bytes(self) -> int:
        return 4_096

    def fatal_error(self) -> None:
        return None


def handle(message: Any) -> None: ...


def group_of(app: awoke.App, key: GroupKey = OWN, **parts: Any) -> GroupRun:
    """Returns a group of an app that has joined, with these parts instead of its own."""
    group: Any = AppRunner(app).groups[list(app.groups).index(key)]
    group.member = FakeMember()
    group.refusals.allow(GROUP)
    vars(group).update(parts)
    found: GroupRun = group
    return found


def app_of(*groups: str | None) -> awoke.App:
    """Returns an app with a route of each of these groups."""
    app = awoke.App("shop")
    for group in groups:
        app.on("orders", group=group)(handle)
    return app


def observed(of_group: Mapping[str, Any] | None = None, **parts: Any) -> Observed:
    """Returns the state of an app that has joined, with these parts instead of its own and of its group's."""
    found: Any = Observed()
    found.app, found.settings = app_of(None), Settings()
    found.groups = [group_of(found.app, **(of_group or {}))]
    found.responder = found.metrics = found.fatal_error = None
    found.ledger, found.extensions = Ledger(), []
    found.is_quiet, found.began_s = False, 0.0
    found.connections = SimpleNamespace(why_not_ready=lambda: None)
    found.blocked_outputs = BlockedOutputs()
    found._pool = SimpleNamespace(counters=lambda: {"threads": {"jobs": 3}})
    vars(found).update(parts)
    result: Observed = found
    return result


def of_two_groups(of_audit: Mapping[str, Any] | None = None) -> Observed:
    """Returns the state of an app that has joined its own group and another one."""
    app = app_of(None, "audit")
    return observed(app=app, groups=[group_of(app), group_of(app, GroupKey("audit"), **(of_audit or {}))])


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
    (group,) = app.groups
    assert group.fetch_queue_bytes() == 4_096
    assert group.stuck() == [("orders", 3, "no offset", True)]
    assert group.unowned() == [("orders", 4), ("orders", 6)]
    assert group.strangers() == (["mailing"], [])


def test_partitions_are_those_of_all_groups() -> None:
    app = of_two_groups({"partitions": lambda: [PartitionState("clicks", 0, 7, 5, 7, 10, None)]})
    assert [each.topic for each in app.partitions()] == ["orders", "orders", "clicks"]
    assert app.is_assigned("clicks", 0)


def test_before_the_group_is_joined_there_is_nothing_to_tell() -> None:
    app = observed({"member": None})
    (group,) = app.groups
    assert (app.partitions(), group.stuck(), group.failing(), group.fetch_queue_bytes()) == ([], [], [], None)
    assert not app.is_assigned("orders", 0)
    assert (app.calls(), app.callers(), app.metrics_text()) == ({}, {}, b"")


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
    ("of_group", "parts", "why"),
    [
        ({}, {}, None),
        ({}, {"fatal_error": ValueError("no good"), "is_quiet": True}, "it has a fatal error: no good"),
        ({"member": None}, {"is_quiet": True}, "quiet"),
        ({"member": None}, {}, "its group has not given it partitions"),
        ({"refusals": DENIED}, {}, "its group has not given it partitions"),
        ({}, {"connections": SimpleNamespace(why_not_ready=lambda: "no broker connected")}, "no broker connected"),
    ],
    ids=["ready", "fatal error", "quiet", "not joined", "denied", "no broker"],
)
def test_an_app_that_processes_nothing_says_why(
    of_group: dict[str, Any], parts: dict[str, Any], why: str | None
) -> None:
    found = observed(of_group, **parts).why_not_ready()
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")


def test_an_app_is_ready_when_all_its_groups_are() -> None:
    assert of_two_groups().why_not_ready() is None
    assert of_two_groups({"member": None}).why_not_ready() == "its group audit has not given it partitions yet"


def test_a_group_without_routes_does_not_keep_an_app_from_being_ready() -> None:
    app = app_of("audit")
    state = observed(app=app, groups=[group_of(app, member=None), group_of(app, GroupKey("audit"))])
    assert state.why_not_ready() is None
    assert state.status()["groups"] == ["audit"]


def test_an_app_is_unhealthy_with_each_reason() -> None:
    assert observed({"member": None}).health() == (True, [])
    is_healthy, reasons = observed(fatal_error=ValueError("no good")).health()
    assert not is_healthy
    assert len(reasons) == 3, "it has a fatal error, a partition is stuck, and two have no owner"


def test_the_status_can_be_written_as_json_with_the_partitions_in_order() -> None:
    status = json.loads(json.dumps(observed().status()))
    assert [(each["partition"], each["lag"]) for each in status["partitions"]] == [(0, None), (1, 3)]
    assert (status["app"], status["group"], status["is_ready"], status["is_quiet"]) == ("shop", "shop", True, False)
    assert status["groups"] == ["shop"]
    assert status["health"]["is_healthy"] is False
    assert status["uptime_s"] > 0


def test_the_status_tells_the_partitions_of_each_group() -> None:
    status = of_two_groups().status()
    assert (status["group"], status["groups"]) == ("shop", ["shop", "audit"])
    places = [(each["group"], each["partition"]) for each in status["partitions"]]
    assert places == [("shop", 0), ("shop", 1), ("audit", 0), ("audit", 1)]
