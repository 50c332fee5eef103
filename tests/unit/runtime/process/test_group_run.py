"""The consumer groups of a running app: their events, names, settings and paused partitions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

import awoke
from awoke._native import HookJob, Job
from awoke.declare.group_routes import OWN, GroupKey, GroupRoutes
from awoke.observe.events import ClientError, PartitionPaused, PartitionsAssigned, PartitionsLost
from awoke.runtime.process.group_run import GroupEvents, GroupRun, settings_of
from awoke.runtime.process.refusals import GROUP
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.watch import health
from awoke.settings import Settings
from tests.support.clusters import MockCluster, unique
from tests.unit.runtime.fakes import FakeJob, FakePartition

WITHIN_S = 30.0
ERROR = ValueError("no good")
ASSIGNED = PartitionsAssigned(client="shop", partitions=[("orders", 0)])


def handle(message: Any) -> None: ...


def app_of(*groups: str | None, **settings: Any) -> awoke.App:
    """Returns an app with a route of `orders` in each of these groups."""
    app = awoke.App("shop", bootstrap_servers="127.0.0.1:1", **settings)
    for group in groups:
        app.on("orders", group=group)(handle)
    return app


def groups_of(app: awoke.App) -> Sequence[GroupRun]:
    return AppRunner(app).groups


def heard_of(events: awoke.Events) -> list[awoke.Event]:
    """Returns the list that gets each event."""
    heard: list[awoke.Event] = []
    events.subscribe("*", heard.append)
    return heard


def test_an_event_of_a_group_gets_its_name_for_the_group_and_for_the_app() -> None:
    of_app = awoke.Events()
    of_group = GroupEvents(of_app, "audit")
    by_app, by_group = heard_of(of_app), heard_of(of_group)
    of_group.emit(ASSIGNED)
    named = PartitionsAssigned(client="shop", partitions=[("orders", 0)], group="audit")
    assert (by_group, by_app) == ([named], [named])
    assert ASSIGNED.group == "", "the event itself is not changed"


def test_an_event_that_knows_no_group_stays_as_it_is() -> None:
    of_app = awoke.Events()
    by_app = heard_of(of_app)
    event = ClientError(client="shop", code=-195, code_name="_TRANSPORT", text="away", is_fatal=False)
    GroupEvents(of_app, "audit").emit(event)
    assert by_app == [event]


def test_an_event_of_the_app_or_of_another_group_does_not_reach_a_group() -> None:
    of_app = awoke.Events()
    own, audit = GroupEvents(of_app, "shop"), GroupEvents(of_app, "audit")
    by_audit = heard_of(audit)
    own.emit(ASSIGNED)
    of_app.emit(ASSIGNED)
    assert by_audit == []


def test_an_event_of_a_group_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    GroupEvents(awoke.Events(), "audit").emit(PartitionsLost(client="shop", partitions=[("orders", 0)]))
    assert len([each for each in caplog.records if "partitions.lost" in each.getMessage()]) == 1


def test_the_groups_of_an_app_are_named_and_its_own_is_the_first() -> None:
    app = app_of("audit", None)
    app.on("orders", partitions=[0])(handle)
    runner = AppRunner(app)
    assert [each.group for each in runner.groups] == ["shop", "audit", "shop.partitions"]
    assert runner.own is runner.groups[0]
    assert [each.is_own for each in runner.groups] == [True, False, False]
    assert [each.is_fixed for each in runner.groups] == [False, False, True]


def test_the_setting_names_the_apps_own_group_only() -> None:
    app = app_of("audit", None, group="billing")
    app.on("orders", partitions=[0])(handle)
    assert [each.group for each in groups_of(app)] == ["billing", "audit", "billing.partitions"]


def test_a_place_of_another_group_than_the_apps_own_names_it() -> None:
    own, audit = groups_of(app_of(None, "audit"))
    assert health.place(own, "orders", 3) == "orders[3]"
    assert health.place(audit, "orders", 3) == "orders[3] of group audit"


def test_a_group_owns_its_routes() -> None:
    app = app_of(None, "audit")
    own, audit = groups_of(app)
    of_own, of_audit = app.all_routes
    assert (own.owns(of_own), own.owns(of_audit)) == (True, False)
    assert (audit.owns(of_own), audit.owns(of_audit)) == (False, True)


@pytest.mark.parametrize(
    ("key", "transactional_id"),
    [(OWN, "tx"), (GroupKey("audit"), "tx.audit"), (GroupKey("other"), "tx.other")],
    ids=["own", "audit", "other"],
)
def test_each_group_has_a_transactional_id_of_its_own(key: GroupKey, transactional_id: str) -> None:
    settings = Settings(transactional_id="tx", workers=3)
    found = settings_of(settings, GroupRoutes(key))
    assert (found.transactional_id, found.workers) == (transactional_id, 3)


def test_without_a_transactional_id_the_settings_of_a_group_are_the_apps() -> None:
    settings = Settings()
    assert settings_of(settings, GroupRoutes(GroupKey("audit"))) is settings


def test_only_groups_with_routes_join() -> None:
    assert [each.group for each in AppRunner(app_of("audit")).joining] == ["audit"]
    assert [each.group for each in AppRunner(app_of("audit", None)).joining] == ["shop", "audit"]


def test_a_pattern_is_a_reason_to_join_before_it_has_matched() -> None:
    app = app_of()
    app.on(awoke.pattern("orders.*"), group="audit")(handle)
    assert [each.group for each in AppRunner(app).joining] == ["audit"]


def test_the_apps_own_group_joins_for_remote_calls() -> None:
    app = app_of("audit")
    app.rpc.method(handle)
    assert [each.group for each in AppRunner(app).joining] == ["shop", "audit"]


def test_two_groups_of_one_name_are_refused_at_the_start() -> None:
    app = app_of("shop.partitions")
    app.on("orders", partitions=[0])(handle)
    text = r"route 'orders': group='shop\.partitions' is the name for the offsets of named partitions; choose another"
    with pytest.raises(awoke.ConfigError, match=text):
        AppRunner(app).start()


@pytest.mark.parametrize("routes", [("shop",), (None, "shop"), ("audit", "shop")])
def test_the_name_of_the_apps_own_group_is_refused_at_the_start(routes: tuple[str | None, ...]) -> None:
    runner = AppRunner(app_of(*routes))
    with pytest.raises(awoke.ConfigError) as refused:
        runner.start()
    said = "route 'orders': group='shop' is the app's own group already; leave group=… out"
    assert (str(refused.value), refused.value.property) == (said, "group")
    assert runner.has_ended


def pause(group: GroupRun) -> FakePartition:
    """Pauses `orders[0]`, whose first message is exhausted."""
    job = FakeJob()
    group.failures.failed(cast(Job, job), ERROR, 0.0)
    group.pause_exhausted(cast(Job, job), ERROR)
    return job.assigned


class Paused:
    """An app of two groups, in both of which `orders[0]` is paused."""

    def __init__(self) -> None:
        self.app = app_of(None, "audit")
        self.runner = AppRunner(self.app)
        self.heard = heard_of(self.app.events)
        self.own, self.audit = (pause(group) for group in self.runner.groups)

    def paused(self) -> list[str]:
        """Returns the groups whose partition is paused."""
        return [group.group for group in self.runner.groups if group.paused]

    def told(self) -> list[tuple[str, str]]:
        """Returns the name and the group of each event."""
        return [(each.name, each.fields["group"]) for each in self.heard]


@pytest.fixture
def case() -> Paused:
    return Paused()


def test_a_pause_is_told_with_its_group(case: Paused) -> None:
    assert case.heard == [
        PartitionPaused(topic="orders", partition=0, error=ERROR, group="shop"),
        PartitionPaused(topic="orders", partition=0, error=ERROR, group="audit"),
    ]
    reasons = [reason.partition(":")[0] for reason in case.runner.health().reasons]
    assert reasons == ["orders[0] is paused", "orders[0] of group audit is paused"]


def test_a_partition_is_resumed_in_all_groups(case: Paused) -> None:
    assert case.runner.resume("orders", 0)
    assert case.paused() == []
    assert case.told()[2:] == [("partition.resumed", "shop"), ("partition.resumed", "audit")]
    assert not case.runner.resume("orders", 0)


def test_a_partition_is_resumed_in_the_group_of_this_name(case: Paused) -> None:
    assert case.runner.resume("orders", 0, "audit")
    assert (case.own.said, case.audit.said) == (["pause"], ["pause", "resume"])
    assert case.paused() == ["shop"]
    assert not case.runner.resume("orders", 0, "audit")
    assert case.runner.resume("orders", 0), "it is paused in the other one"


def test_a_group_that_the_app_does_not_have_is_an_error(case: Paused) -> None:
    asked: list[Callable[[], object]] = [
        lambda: case.runner.resume("orders", 0, "other"),
        lambda: case.runner.steer("other", skip_first),
        lambda: case.runner.blocking("orders", 0, "other"),
    ]
    for ask in asked:
        with pytest.raises(awoke.ConfigError, match="app 'shop' has no group 'other'; its groups are: shop, audit"):
            ask()
    assert case.paused() == ["shop", "audit"]


def skip_first(run: GroupRun) -> bool:
    return run.skip("orders", 0, 0)


def test_a_message_is_skipped_in_all_groups(case: Paused) -> None:
    assert case.runner.steer(None, skip_first)
    assert case.paused() == []
    assert case.own.said == case.audit.said == ["pause", "clear_backoff", "resume"]


def test_a_message_is_skipped_in_the_group_of_this_name(case: Paused) -> None:
    assert case.runner.steer("shop", skip_first)
    assert (case.own.said, case.audit.said) == (["pause", "clear_backoff", "resume"], ["pause"])
    assert case.paused() == ["audit"]


def test_the_messages_that_block_a_partition_are_told_once_in_order(case: Paused) -> None:
    later = FakeJob(10, is_of_lanes=True)
    later.remaining = 3
    case.runner.groups[1].failures.failed(cast(Job, later), ERROR, 0.0)
    assert case.runner.blocking("orders", 0) == [0, 7]
    assert case.runner.blocking("orders", 0, "shop") == [0]
    assert case.runner.blocking("orders", 0, "audit") == [0, 7]


def test_a_group_knows_its_jobs_by_their_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of(None, "audit")
    runner = AppRunner(app)
    works = [cast(Job | HookJob, job_of(route.number)) for route in [*app.all_routes, app.all_routes[0]]]
    monkeypatch.setattr(runner._pool, "running", lambda: works)
    own, audit = runner.groups
    assert own.running() == [works[0], works[2]]
    assert audit.running() == [works[1]]


def job_of(route_number: int) -> FakeJob:
    job = FakeJob()
    job.route_number = route_number
    return job


@pytest.fixture
def refused() -> Iterator[tuple[GroupRun, GroupRun, list[BaseException]]]:
    """Two groups of an app that listen, without members; and the errors that end the app."""
    errors: list[BaseException] = []
    own, audit = AppRunner(app_of(None, "audit"), errors.append).groups
    with contextlib.ExitStack() as stack:
        for group in (own, audit):
            group.open()
            stack.callback(group.close)
        yield own, audit, errors


def denied(code: int) -> ClientError:
    return ClientError(client="shop", code=code, code_name="DENIED", text="denied", is_fatal=False)


def test_a_denial_belongs_to_the_group_whose_client_was_refused(
    refused: tuple[GroupRun, GroupRun, list[BaseException]],
) -> None:
    own, audit, errors = refused
    audit._heard.emit(denied(GROUP))
    said = "group 'audit': not allowed; an ACL must allow READ on the group (DENIED)"
    assert (own.refusals.reasons(), audit.refusals.reasons()) == ([], [said])
    assert [str(error) for error in errors] == [said]


def test_a_group_is_allowed_when_it_has_got_partitions_itself(
    refused: tuple[GroupRun, GroupRun, list[BaseException]],
) -> None:
    own, audit, _ = refused
    own._heard.emit(ASSIGNED)
    assert (own.refusals.is_allowed(GROUP), audit.refusals.is_allowed(GROUP)) == (True, False)


def test_a_group_that_is_closed_listens_no_more(refused: tuple[GroupRun, GroupRun, list[BaseException]]) -> None:
    own, _, errors = refused
    own.close()
    own.close()
    own._heard.emit(denied(GROUP))
    assert errors == []


class Running:
    """An app with a route of one topic in each of these groups, and its runner."""

    def __init__(self, cluster: MockCluster, *groups: str | None) -> None:
        self.topic = unique("orders")
        cluster.create_topic(self.topic, 1)
        self.app = awoke.App(unique("shop"), bootstrap_servers=cluster.bootstrap_servers)
        for group in groups:
            self.app.on(self.topic, group=group)(handle)
        self.heard = heard_of(self.app.events)
        self.runner = AppRunner(self.app)


def test_each_group_with_routes_has_a_member(mock_cluster: MockCluster) -> None:
    case = Running(mock_cluster, None, "audit")
    case.runner.start()
    assert [group.member is not None for group in case.runner.groups] == [True, True]
    assert case.runner.stop(WITHIN_S)
    (started,) = (each for each in case.heard if each.name == "app.started")
    assert (started.fields["group"], started.fields["topics"]) == (f"{case.app.name}, audit", [case.topic])


def test_a_group_without_routes_has_no_member(mock_cluster: MockCluster) -> None:
    case = Running(mock_cluster, "audit")
    case.runner.start()
    assert [group.member is None for group in case.runner.groups] == [True, False]
    assert case.runner.stop(WITHIN_S)
